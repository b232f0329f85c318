"""Rewrites of nets by name: the passes of `caffe2.passes`, one at a time, and one of the original
Caffe2."""

from __future__ import annotations

from typing import Any

from caffe2.passes import INFERENCE, InferenceModel
from caffe2.proto import caffe2_pb2
from caffe2.runtime.machine import BenchmarkNet
from caffe2.runtime.names import StringifyBlobName
from caffe2.runtime.workspace import CreateNet, RunNetOnce


def _conv_to_nnpack(model: InferenceModel) -> list[str]:
    """Asks for NNPACK where a Conv names no engine or CUDNN: a hint, which changes nothing here."""
    for op in model.net.op:
        if op.type == "Conv" and op.engine in ("", "CUDNN"):
            op.engine = "NNPACK"
    return []


_TRANSFORMS = {**INFERENCE, "ConvToNNPack": _conv_to_nnpack}


def transform_exists(key: str) -> bool:
    """Whether there is a rewrite of this name."""
    return key in _TRANSFORMS


def ApplyTransform(transform_key: Any, net: Any) -> caffe2_pb2.NetDef:
    """The net (a Net or NetDef), rewritten by a pass of `caffe2.passes`, or by "ConvToNNPack".

    No blob is taken as constant, so passes that fold weights find nothing to do; see
    `caffe2.python.optimize_for_inference` for these.  RuntimeError for an unknown name.
    """
    key = StringifyBlobName(transform_key)
    if not transform_exists(key):
        raise RuntimeError(
            f"Transform not found in registry: {key}; there are {', '.join(_TRANSFORMS)}"
        )
    model = InferenceModel(net.Proto() if hasattr(net, "Proto") else net, {})
    _TRANSFORMS[key](model)
    return model.net


def ApplyTransformIfFaster(
    transform_key: Any,
    net: Any,
    init_net: Any,
    *,
    warmup_runs: int = 5,
    main_runs: int = 10,
    improvement_threshold: float = 1.01,
) -> caffe2_pb2.NetDef:
    """The rewritten net when it is faster by `improvement_threshold` (1.01: 1 %), else the net.

    Both run `warmup_runs` and `main_runs` times in the current workspace, after init_net.
    RuntimeError for an unknown name.
    """
    before = net.Proto() if hasattr(net, "Proto") else net
    after = ApplyTransform(transform_key, net)
    if after == before:
        return after
    RunNetOnce(init_net)
    times = []
    for candidate in (before, after):
        named = caffe2_pb2.NetDef()
        named.CopyFrom(candidate)
        CreateNet(named, overwrite=True)
        times.append(BenchmarkNet(named.name, warmup_runs, main_runs, False)[0])
    return after if times[0] > times[1] * improvement_threshold else before
