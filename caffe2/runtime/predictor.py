"""Serving a saved net."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from caffe2 import _native
from caffe2.proto import caffe2_pb2
from caffe2.runtime.engine import new_workspace

Array = npt.NDArray[Any]


class Predictor:
    """A net with its parameters, ready to answer.

    init_net     fills the parameters, run once
    predict_net  computes `external_output` from `external_input`: inputs and parameters

    What init_net does not fill has to be given to each run; `needed` names it.  Exported nets may
    also fill an input with a value that stands for it: what was given then stays until it is given
    anew.  Both nets are NetDef messages, their serialized bytes, or objects with a `Proto()`.

    The predictor has a workspace of its own.  ValueError for bytes that are no NetDef and for nets
    that do not fit together; EngineError when a net fails.  Calls from several threads take turns.
    """

    def __init__(self, init_net: Any, predict_net: Any, engine: _native.Engine | None = None):
        init, predict = _net_def(init_net, "init_net"), _net_def(predict_net, "predict_net")
        self._workspace = new_workspace(engine)
        self._lock = threading.Lock()
        self._workspace.run_net_once(init.SerializeToString())
        filled = set(self._workspace.blobs())
        self.inputs: list[str] = list(predict.external_input)
        self.needed: list[str] = [name for name in self.inputs if name not in filled]
        self.outputs: list[str] = list(predict.external_output)
        self._check(predict, filled)
        for name in self.needed:
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
                f"its inputs are {', '.join(self.needed) or 'none'}, init_net fills "
                f"{', '.join(sorted(filled)) or 'none'}. Were the two nets swapped?"
            )

    def run(self, inputs: Sequence[Array] | Mapping[str, Array]) -> list[Array]:
        """The outputs for `inputs`: arrays by name, or in the order of external_input.

        Where external_input does not begin with the inputs, a list is for `needed`, in its order.
        ValueError when an input is missing, unknown or there are too many.
        """
        named = self._named(inputs)
        with self._lock:
            for name, value in named.items():
                self._workspace.feed(name, np.asarray(value))
            self._workspace.run_net(self._name)
            return [cast(Array, self._workspace.fetch(name)) for name in self.outputs]

    def _named(self, inputs: Sequence[Array] | Mapping[str, Array]) -> dict[str, Array]:
        if isinstance(inputs, Mapping):
            names, values = list(inputs), list(inputs.values())
        else:
            values = list(inputs)
            names = self.inputs[: len(values)]
            if not set(self.needed) <= set(names):
                names = self.needed
        missing = set(self.needed) - set(names)
        if missing or len(names) != len(values) or not set(names) <= set(self.inputs):
            given = ", ".join(inputs) if isinstance(inputs, Mapping) else str(len(values))
            raise ValueError(
                f"inputs given: {given or 'none'}; this net takes: "
                f"{', '.join(self.needed) or 'any of ' + ', '.join(self.inputs)}"
            )
        return dict(zip(names, values, strict=True))


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
