"""Serving a saved net."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from caffe2 import _native
from caffe2.proto import caffe2_pb2
from caffe2.runtime.engine import new_workspace

Array = npt.NDArray[Any]


class Predictor:
    """A net with its parameters, ready to answer.

    init_net     fills the parameters, run once
    predict_net  computes `external_output` from the blobs of `external_input` that init_net does
                 not fill, which are the inputs, in this order

    Both are NetDef messages, their serialized bytes, or objects with a `Proto()`.  The predictor
    has a workspace of its own.  ValueError for bytes that are no NetDef and for nets that do not
    fit together; EngineError when a net fails.  Calls from several threads take turns.
    """

    def __init__(self, init_net: Any, predict_net: Any, engine: _native.Engine | None = None):
        init, predict = _net_def(init_net, "init_net"), _net_def(predict_net, "predict_net")
        self._workspace = new_workspace(engine)
        self._lock = threading.Lock()
        self._workspace.run_net_once(init.SerializeToString())
        filled = set(self._workspace.blobs())
        self.inputs: list[str] = [name for name in predict.external_input if name not in filled]
        self.outputs: list[str] = list(predict.external_output)
        self._check(predict, filled)
        for name in self.inputs:
            self._workspace.create_blob(name)
        if not predict.name:
            predict.name = "predict_net"
        self._name = predict.name
        self._workspace.create_net(predict.SerializeToString())

    def _check(self, predict: caffe2_pb2.NetDef, filled: set[str]) -> None:
        if not self.outputs:
            raise ValueError("predict_net names no external_output, so it has no answer to give")
        known = filled | set(self.inputs)
        unresolved: list[str] = []
        for op in predict.op:
            unresolved += [name for name in op.input if name not in known]
            known.update(op.output)
            known.update(unresolved)
        unresolved += [name for name in self.outputs if name not in known]
        if unresolved:
            raise ValueError(
                f"predict_net uses blobs that nothing provides: {', '.join(unresolved)}; "
                f"its inputs are {', '.join(self.inputs) or 'none'}, init_net fills "
                f"{', '.join(sorted(filled)) or 'none'}. Were the two nets swapped?"
            )

    def run(self, inputs: Sequence[Array] | Mapping[str, Array]) -> list[Array]:
        """The outputs for `inputs`: arrays in the order of `self.inputs`, or by name.

        ValueError when there are too few, too many or unknown ones.
        """
        named = self._named(inputs)
        with self._lock:
            for name, value in named.items():
                self._workspace.feed(name, np.asarray(value))
            self._workspace.run_net(self._name)
            return [self._workspace.fetch(name) for name in self.outputs]

    def _named(self, inputs: Sequence[Array] | Mapping[str, Array]) -> dict[str, Array]:
        if isinstance(inputs, Mapping):
            named = dict(inputs)
        else:
            if len(inputs) != len(self.inputs):
                raise ValueError(
                    f"{len(inputs)} inputs given; this net takes {len(self.inputs)}: "
                    f"{', '.join(self.inputs)}"
                )
            named = dict(zip(self.inputs, inputs, strict=True))
        if set(named) != set(self.inputs):
            raise ValueError(
                f"inputs given: {', '.join(named) or 'none'}; this net takes: "
                f"{', '.join(self.inputs) or 'none'}"
            )
        return named


def _net_def(net: Any, what: str) -> caffe2_pb2.NetDef:
    if hasattr(net, "Proto"):
        net = net.Proto()
    copy = caffe2_pb2.NetDef()
    if isinstance(net, caffe2_pb2.NetDef):
        copy.CopyFrom(net)
        return copy
    if not isinstance(net, bytes):
        raise TypeError(f"{what} must be a NetDef or its bytes, not {type(net).__name__}")
    try:
        copy.ParseFromString(net)
    except Exception as error:
        raise ValueError(f"{what} is no serialized NetDef: {error}") from None
    if not copy.op:
        raise ValueError(f"{what} holds no operators: a truncated or foreign file?")
    return copy
