"""A model: the net that fills its parameters, and the net that predicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from caffe2 import ops
from caffe2.graph.nesting import nets_of, reads
from caffe2.graph.shapes import infer_shapes
from caffe2.ops.declaration import Spec
from caffe2.proto import caffe2_pb2

# Of blobs with weights as kernels read them; known to native/operators/packed_weights.cc.
PACKED_SUFFIX = "#packed"


def unresolved(
    net: caffe2_pb2.NetDef, known: Iterable[str], wanted: Sequence[str] = ()
) -> list[str]:
    """What the operators of a net read, and what is wanted of it, that nobody wrote before."""
    known, found = set(known), dict[str, None]()
    for op in net.op:
        found.update((name, None) for name in op.input if name not in known)
        known.update(op.output)
    found.update((name, None) for name in wanted if name not in known)
    return list(found)


def last_blobs(net: caffe2_pb2.NetDef) -> list[str]:
    """The answers of a net that does not name them: what no operator reads after it was written.
    Outputs that are there for gradients, or by convention, are none (see `helpers` of
    declarations)."""
    read, found = set[str](), list[str]()
    written = set[str]()
    for op in reversed(net.op):
        helpers = ops.find(op.type).helpers_of(op) if ops.declared(op.type) else ()
        for name in reversed(op.output):
            if name not in read and name not in written and name not in helpers:
                found.append(name)
        written.update(op.output)
        read.difference_update(op.output)
        read.update(op.input, *(reads(inner) for _, inner in nets_of(op)))
    return found[::-1]


@dataclass(frozen=True)
class Model:
    """A net that predicts, and the one that fills its parameters (empty where there is none).
    They stay as they are as long as the model is in use."""

    init: caffe2_pb2.NetDef
    predict: caffe2_pb2.NetDef

    @cached_property
    def filled(self) -> list[str]:
        """The blobs that the init net writes."""
        return list(dict.fromkeys(name for op in self.init.op for name in op.output))

    @cached_property
    def stand_in(self) -> list[str]:
        """The first input, where tensors are filled for all: its value only stands for one that
        is given, unless that is several values."""
        declared = list(self.predict.external_input)
        if not declared or not set(declared) <= set(self.filled):
            return []
        given = {op.output[0] for op in self.init.op if op.output and _has_values(op)}
        return declared[:1] if declared[0] in self._filled_specs.keys() - given else []

    @cached_property
    def _filled_specs(self) -> dict[str, Spec]:
        return infer_shapes(self.init, {})[0]

    @cached_property
    def declared(self) -> list[str]:
        """The declared inputs, or what is read where none are."""
        return list(self.predict.external_input) or self.inputs

    @cached_property
    def inputs(self) -> list[str]:
        """What is read and neither written before nor filled, and a filled one that stands for
        values that are given."""
        stand_in = self.stand_in
        found = dict.fromkeys([*stand_in, *unresolved(self.predict, set(self.filled))])
        inner = {n for op in self.predict.op for _, net in nets_of(op) for n in reads(net)}
        wanted = inner.intersection(self.predict.external_input).difference(self.filled)
        found.update((name, None) for name in self.predict.external_input if name in wanted)
        return list(found)

    @cached_property
    def outputs(self) -> list[str]:
        """The declared outputs, or the last blobs where none are."""
        return list(self.predict.external_output) or last_blobs(self.predict)

    @cached_property
    def unread(self) -> list[str]:
        """Parameters that nobody reads."""
        used = reads(self.predict).union(self.predict.external_output, self.stand_in)
        used |= reads(self.init)
        used |= {name + PACKED_SUFFIX for name in used}
        return [name for name in self.filled if name not in used]

    def known(self, given: Mapping[str, Spec]) -> dict[str, Spec]:
        """Shapes and types of what is filled and of what is given."""
        filled = self._filled_specs.items()
        return {name: spec for name, spec in filled if name not in self.stand_in} | dict(given)

    @cached_property
    def notes(self) -> list[str]:
        """What is no error and yet may be a sign of one, a line for each."""
        found = []
        if not self.predict.external_output:
            taken = ", ".join(self.outputs) or "none"
            found.append(f"the net names no external_output; its last blobs are taken: {taken}")
        if self.unread:
            found.append(
                f"{len(self.unread)} of {len(self.filled)} parameters are read by nobody: "
                f"{some(self.unread)}"
            )
        return found


def _has_values(op: caffe2_pb2.OperatorDef) -> bool:
    """Whether it is given more than one value."""
    values = [arg for arg in op.arg if arg.name == "values"]
    return any(len(arg.floats) + len(arg.ints) + len(arg.strings) > 1 for arg in values)


def some(names: Sequence[str], most: int = 5) -> str:
    """`a, b, c`; the first few of many names."""
    return ", ".join([*names[:most], *["..."] * (len(names) > most)])
