"""Arguments that ask for a kernel."""

from __future__ import annotations

from typing import Any


def engine_arguments(kwargs: dict[str, Any]) -> dict[str, Any]:
    """A layer's arguments with `use_cudnn` turned into the engine, unless one is named.

    Only devices with cuDNN look at that engine; elsewhere it means the usual kernel.
    """
    arguments = {name: value for name, value in kwargs.items() if name != "use_cudnn"}
    if kwargs.get("use_cudnn"):
        arguments.setdefault("engine", "CUDNN")
    return arguments


def plain_arguments(kwargs: dict[str, Any]) -> dict[str, Any]:
    """A layer's arguments without those that models give every layer."""
    every = ("order", "use_cudnn", "cudnn_exhaustive_search")
    return {name: value for name, value in kwargs.items() if name not in every}
