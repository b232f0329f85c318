"""Serving a saved net."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy.typing as npt

from caffe2 import _native, passes
from caffe2.graph.checksum import check_seal
from caffe2.graph.errors import UsageError
from caffe2.graph.files import load_message
from caffe2.graph.model import unresolved
from caffe2.graph.nesting import reads, touching_operators, undeclared_operators
from caffe2.graph.reading import read_message
from caffe2.ops.declaration import TOUCHES
from caffe2.proto import caffe2_pb2
from caffe2.runtime.devices import note_devices
from caffe2.runtime.engine import new_workspace
from caffe2.runtime.feeding import feed
from caffe2.runtime.values import WorkspaceValues

Array = npt.NDArray[Any]


class Predictor:
    """A net with its parameters, ready to answer.

    init_net     fills the parameters, run once
    predict_net  computes `external_output` from `external_input`: inputs and parameters
    optimize     whether predict_net is rewritten to do less work (see `caffe2.passes`)
    allow        what operators may touch outside of the engine, of "files", "code" and "network":
                 nothing unless allowed, as nets may come from anywhere

    What operators read and init_net does not fill has to be given to each run; `needed` names it.
    A net that declares no inputs at all takes what its operators read.  Exported nets may also
    fill an input with a value that stands for it.  What is given for a blob that init_net
    fills, be it an input or a parameter, stays there until it is given anew.  Both nets are NetDef
    messages, their serialized bytes, or objects with a `Proto()`.

    The predictor has a workspace of its own, in which the blobs between inputs and outputs are not
    to be seen: they share memory, and operators do the work of those after them on the way.

    ValueError for bytes that are no NetDef and for nets that do not fit together, before any of
    them runs; EngineError when a net fails.  Calls from several threads take turns.
    """

    def __init__(
        self,
        init_net: Any,
        predict_net: Any,
        engine: _native.Engine | None = None,
        optimize: bool = True,
        allow: Collection[str] = (),
    ):
        init, content = _outline(init_net)
        self._open(
            init,
            _net_def(predict_net, "predict_net"),
            lambda workspace: workspace.run_net_once(content),
            engine,
            optimize,
            allow,
        )

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        engine: _native.Engine | None = None,
        optimize: bool = True,
        allow: Collection[str] = (),
        check: bool = False,
    ) -> Predictor:
        """A predictor of a model in one file: a ModelDef of init_net and predict_net.

        Of a file that `caffe2 optimize` or `caffe2.graph.model_file.save_model` wrote, the weights
        are used where they lie, without a copy.  Such a file may be replaced while it is in use,
        but not written over.  Arguments and errors as above; OSError for what cannot be read and
        UsageError, which is a ValueError, for what is no model.

        check  whether all of the file is read to compare its checksum, as `caffe2 verify` does
        """
        if check:
            check_seal(Path(path).read_bytes(), os.fspath(path))
        try:
            file = _native.ModelFile(os.fspath(path))
        except _native.EngineError:
            # Text, or an error, which is explained here.
            model = load_message(caffe2_pb2.ModelDef, path)
            if len(model.net) != 2:
                raise UsageError(
                    f"{path} holds {len(model.net)} net(s); two are needed: one that fills the "
                    "parameters, one that predicts"
                ) from None
            return cls(model.net[0], model.net[1], engine, optimize, allow)
        predictor = cls.__new__(cls)
        predictor._open(
            read_message(caffe2_pb2.NetDef, file.init_outline(), f"{path}, net 0,"),
            read_message(caffe2_pb2.NetDef, file.predict(), f"{path}, net 1,"),
            file.run_init,
            engine,
            optimize,
            allow,
        )
        return predictor

    def _open(
        self,
        init: caffe2_pb2.NetDef,
        predict: caffe2_pb2.NetDef,
        fill: Callable[[_native.Workspace], None],
        engine: _native.Engine | None,
        optimize: bool,
        allow: Collection[str],
    ) -> None:
        """init: without the values that `fill` gives to the parameters."""
        _check_operators({"init_net": init, "predict_net": predict}, allow)
        filled = {name for op in init.op for name in op.output}
        if not predict.external_input:
            predict.external_input.extend(unresolved(predict, ()))
        self.inputs: list[str] = list(dict.fromkeys(predict.external_input))
        used = reads(predict).union(predict.external_output)
        self.needed: list[str] = [n for n in self.inputs if n not in filled and n in used]
        self.outputs: list[str] = list(predict.external_output)
        self._check(init, predict, filled)
        note_devices(init)
        note_devices(predict)
        self._workspace = new_workspace(engine)
        self._workspace.allow_files("files" in allow)
        self._lock = threading.Lock()
        fill(self._workspace)
        for name in self.inputs:
            self._workspace.create_blob(name)
        self._folded: set[str] = set()
        if optimize:
            predict = self._optimized(predict, filled)
        if not predict.name:
            predict.name = "predict_net"
        self._name = predict.name
        self._workspace.create_net(
            predict.SerializeToString(), hide_intermediates=True, own_inputs=True
        )
        listed = self.needed or [name for name in self.inputs[:1] if name not in self._folded]
        self._prepared: Any = self._workspace.prepare(self._name, listed, self.outputs)

    def _optimized(self, predict: caffe2_pb2.NetDef, filled: set[str]) -> caffe2_pb2.NetDef:
        # What init_net fills may stand for an input, so only weights are taken as constant.
        values = WorkspaceValues(self._workspace, filled)
        optimized, _ = passes.optimize(
            predict,
            values,
            self.outputs,
            without=["fold_constants", "drop_dead_code"],
            owned=True,
        )
        self._folded = filled.intersection(self.inputs).difference(optimized.external_input)
        for name in self._folded:
            self._workspace.delete_blob(name)
        return optimized

    def _check(self, init: caffe2_pb2.NetDef, predict: caffe2_pb2.NetDef, filled: set[str]) -> None:
        missing = unresolved(init, ())
        if missing:
            raise ValueError(
                f"init_net reads blobs that it does not fill before: {', '.join(missing)}. "
                "Were the two nets swapped?"
            )
        if not self.outputs:
            raise ValueError("predict_net names no external_output, so it has no answer to give")
        missing = unresolved(predict, filled | set(self.inputs), self.outputs)
        if missing:
            declared = ", ".join(name for name in self.inputs if name not in filled)
            raise ValueError(
                f"predict_net uses blobs that nothing provides: {', '.join(missing)}; "
                f"its inputs are {declared or 'none'}, init_net fills "
                f"{', '.join(sorted(filled)) or 'none'}. Were the two nets swapped?"
            )

    def run(self, inputs: Sequence[Any] | Mapping[str, Any]) -> list[Array]:
        """The outputs for `inputs`: a list for `needed`, in its order, or arrays by name.

        A dictionary may name any blob of external_input.  Where init_net fills all of them, a list
        is for the first ones, as in the original.  Values are what FeedBlob takes.  An array that
        the net only reads is not copied: it must not be written to before this returns.

        TypeError for an array in place of a list; ValueError when inputs are missing or unknown or
        there are too many.
        """
        if type(inputs) is list:  # the usual case, at once
            with self._lock:
                found: list[Array] | None = self._prepared.run(inputs)
            if found is not None:
                return found
        named = self._named(inputs)
        with self._lock:
            self._run(named)
            return [cast(Array, self._workspace.fetch(name)) for name in self.outputs]

    def _run(self, named: Mapping[str, Any]) -> None:
        for name, value in named.items():
            feed(self._workspace, name, value)
        self._workspace.run_net(self._name)

    def time_operators(
        self, inputs: Sequence[Any] | Mapping[str, Any], runs: int = 10
    ) -> list[tuple[str, str, float]]:
        """Type, first output and milliseconds of each operator that runs, on average over `runs`
        runs: 0 for those whose work another one does on the way.  Inputs and errors as in `run`,
        which happens once before."""
        named = self._named(inputs)
        with self._lock:
            self._run(named)  # with copies, which stay
            times = self._workspace.time_operators(self._name, runs)
            net = caffe2_pb2.NetDef.FromString(self._workspace.net_def(self._name))
        operators = [(op.type, next(iter(op.output), "")) for op in net.op]
        return [(*operator, ms) for operator, ms in zip(operators, times, strict=True)]

    def _named(self, inputs: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any]:
        if isinstance(inputs, (str, bytes, bytearray, memoryview)) or hasattr(inputs, "__array__"):
            raise TypeError(
                f"run takes a list or a dictionary of arrays, not one {type(inputs).__name__}; "
                "for one input x, write run([x])"
            )
        if isinstance(inputs, Mapping):
            names, values = list(inputs), list(inputs.values())
        else:
            values = list(inputs)
            names = self.needed or self.inputs[: len(values)]
        missing = set(self.needed) - set(names)
        if missing or len(names) != len(values) or not set(names) <= set(self.inputs):
            given = ", ".join(map(str, names)) if isinstance(inputs, Mapping) else str(len(values))
            taken = ", ".join(self.needed)
            if not taken:
                taken = f"any of {', '.join(self.inputs) or 'none'}, by name or the first in a list"
            if self.needed == self.inputs and len(values) < len(self.needed):
                taken += ", of which init_net fills none"
            raise ValueError(f"inputs given: {given or 'none'}; this net takes: {taken}")
        for name in names:
            if name in self._folded:
                raise ValueError(
                    f"parameter '{name}' has become a part of another one; "
                    "a Predictor made with optimize=False takes it"
                )
        return dict(zip(names, values, strict=True))


def _outline(init_net: Any) -> tuple[caffe2_pb2.NetDef, bytes]:
    """A net without the values of its fills, which may be large, and its bytes with them."""
    net = init_net.Proto() if hasattr(init_net, "Proto") else init_net
    content = net.SerializeToString() if isinstance(net, caffe2_pb2.NetDef) else net
    if content == b"":  # that nothing is filled is no error, as in the original
        return caffe2_pb2.NetDef(), content
    if isinstance(content, bytes):
        # What goes wrong here is text, or is explained below.
        with contextlib.suppress(_native.EngineError, UsageError):
            outline = _native.without_values(content)
            return read_message(caffe2_pb2.NetDef, outline, "init_net"), content
    whole = _net_def(init_net, "init_net")
    return whole, whole.SerializeToString()


def _net_def(net: Any, what: str) -> caffe2_pb2.NetDef:
    if hasattr(net, "Proto"):
        net = net.Proto()
    if isinstance(net, caffe2_pb2.NetDef):
        copy = caffe2_pb2.NetDef()
        copy.CopyFrom(net)
        return copy
    if not isinstance(net, bytes):
        raise TypeError(f"{what} must be a NetDef or its bytes, not {type(net).__name__}")
    return read_message(caffe2_pb2.NetDef, net, what)


def _check_operators(nets: Mapping[str, caffe2_pb2.NetDef], allow: Collection[str]) -> None:
    unknown = set(allow) - set(TOUCHES)
    if unknown:
        raise ValueError(
            f"allow names {', '.join(sorted(unknown))}; there are {', '.join(TOUCHES)}"
        )
    missing = [
        f"{kind} ({what} {', '.join(places)})"
        for what, net in nets.items()
        for kind, places in undeclared_operators(net).items()
    ]
    if missing:
        raise ValueError(f"operators that do not exist here: {'; '.join(missing)}")
    touching = [
        f"{what} {line}" for what, net in nets.items() for line in touching_operators(net, allow)
    ]
    if touching:
        raise ValueError(
            f"{'; '.join(touching)}, which a Predictor allows only when told so (allow=[...])"
        )
