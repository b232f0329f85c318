"""Layers; see `caffe2.nn.brew`."""

from typing import Any

from caffe2.nn.brew import brew as _brew


def __getattr__(name: str) -> Any:
    return getattr(_brew, name)


def __dir__() -> list[str]:
    return dir(_brew)
