"""What passes work on: a net, and the values of its constants."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from typing import Any, TypeAlias

import numpy.typing as npt

from caffe2 import ops
from caffe2.graph.nesting import every_operator, nets_of
from caffe2.ops.declaration import OpView
from caffe2.proto import caffe2_pb2

Array: TypeAlias = npt.NDArray[Any]


class InferenceModel:
    """A net that predicts, with the values that are the same in every run.

    net      a copy of the NetDef, which passes change
    params   values of blobs by name; those that the net writes are not constant
    outputs  the blobs that are wanted of it
    owned    whether nobody else wants `params`
    nested   the blobs that nets inside its operators read or write, and those that arguments of
             such operators name; passes leave them alone

    Blobs may be written several times; "the value" of operator i is what it writes, until the blob
    is written again.
    """

    def __init__(
        self,
        net: caffe2_pb2.NetDef,
        params: MutableMapping[str, Array],
        outputs: Iterable[str] | None = None,
        owned: bool = False,
    ) -> None:
        self.net = caffe2_pb2.NetDef()
        self.net.CopyFrom(net)
        self.params = params
        self.owned = owned
        self.outputs = list(net.external_output if outputs is None else outputs)
        self.nested: set[str] = set()
        for op in net.op:
            for _, inner in nets_of(op):
                for _, place in every_operator(inner):
                    self.nested.update((*place.input, *place.output))
                for arg in op.arg:
                    self.nested.update(text.decode(errors="replace") for text in arg.strings)

    @property
    def op(self) -> Any:
        return self.net.op

    def view(self, index: int) -> OpView | None:
        """The operator with its arguments; None when nobody declared its type."""
        op = self.op[index]
        return ops.find(op.type).view_of(op) if ops.declared(op.type) else None

    def constant(self, name: str) -> Array | None:
        """The value of a blob that no operator writes; None when there is none."""
        if name not in self.params or name in self.nested:
            return None
        if any(name in op.output for op in self.op):
            return None
        return self.params.get(name)  # a blob of another kind has no value

    def add_param(self, like: str, value: Array) -> str:
        """The name of a new constant, made from an existing one."""
        taken = {*self.params, *self.net.external_input}
        taken.update(*(op.output for op in self.op))
        name, number = f"{like}_folded", 2
        while name in taken:
            name, number = f"{like}_folded_{number}", number + 1
        self.params[name] = value
        self.net.external_input.append(name)
        return name

    def let_go(self, name: str) -> None:
        """Deletes a constant that is owned and that nothing reads any more."""
        if not self.owned or name not in self.params or name in {*self.nested, *self.outputs}:
            return
        if any(name in op.input or name in op.control_input for op in self.op):
            return
        del self.params[name]
        kept = [other for other in self.net.external_input if other != name]
        self.net.external_input[:] = kept

    def writer(self, index: int, name: str) -> int | None:
        """The operator before `index` that wrote what `index` would read as `name`."""
        for i in range(index - 1, -1, -1):
            if name in self.op[i].output:
                return i
        return None

    def readers(self, index: int, name: str) -> list[int]:
        """The operators that read the value of `index`; the net's length stands for the caller, for
        operators in nested nets, and for the next run, which finds what an input was left with."""
        found = [len(self.op)] if name in self.nested else []
        for i in range(index + 1, len(self.op)):
            if name in self.op[i].input or name in self.op[i].control_input:
                found.append(i)
            if name in self.op[i].output:
                return found
        kept = name in self.outputs or name in self.net.external_input
        return found + ([len(self.op)] if kept else [])

    def mentions(self, name: str, first: int, last: int) -> bool:
        """Whether an operator in [first, last) reads or writes a blob."""
        return name in self.nested or any(
            name in op.input or name in op.output or name in op.control_input
            for op in self.op[first:last]
        )

    def writes_into(self, index: int, last: int, renamed: str) -> bool:
        """Whether output 0 of `index` may be called as that of `last`, the only reader of it."""
        op = self.op[index]
        return (
            len(op.output) >= 1
            and self.readers(index, op.output[0]) == [last]
            and (op.output[0] == renamed or not self.mentions(renamed, index + 1, last))
            and renamed not in op.output[1:]
            and (renamed not in op.input or op.output[0] == renamed)
        )
