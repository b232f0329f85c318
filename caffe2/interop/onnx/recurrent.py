"""Nodes that are recurrent layers: LSTM, GRU and RNN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from caffe2.graph.blob import BlobReference
from caffe2.graph.operator import CreateOperator
from caffe2.graph.scope import EmptyDeviceScope
from caffe2.interop.onnx.node import Converter, Node
from caffe2.ops.datatypes import DataType
from caffe2.proto import caffe2_pb2

_INT32 = int(DataType.INT32)


class _Layer:
    """What the three kinds of nodes have in common.

    The weights are constant: `W` (directions, gates * units, features), `R` (directions,
    gates * units, units), `B` (directions, 2, gates * units).
    """

    def __init__(self, node: Node, gates: int, functions: Sequence[str]) -> None:
        self.node = node
        direction = node.take("direction", "forward")
        self.reversed = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}.get(
            direction
        ) or node.refuse(f"direction={direction} is not known")
        count = len(self.reversed)
        self.functions = node.take("activations") or [*functions] * count
        self.functions = [
            each.decode() if isinstance(each, bytes) else each for each in self.functions
        ]
        node.ignore("hidden_size")
        for name in ("clip", "activation_alpha", "activation_beta"):
            if node.take(name):
                node.refuse(f"{name} has no counterpart")
        self.batch_first = node.take("layout", 0)
        if node.has_input(4):
            node.refuse("sequence_lens has no counterpart: all sequences have one length")
        self.W, self.R = node.constant_input(1), node.constant_input(2)
        self.units = self.R.shape[2]
        bias = node.constant_input(3)
        if bias is None:
            bias = np.zeros((count, 2 * gates * self.units), self.W.dtype)
        self.B = bias.reshape(count, 2, gates * self.units)
        self.x = node.inputs[0]
        if self.batch_first:
            self.x = node.step("Transpose", [self.x], axes=[1, 0, 2])

    def expect_functions(self, *functions: str) -> None:
        if self.functions != [*functions] * len(self.reversed):
            self.node.refuse(f"activations={self.functions} have no counterpart; {functions} have")

    def state(self, index: int) -> str:
        """The states before the first step, (directions, batch, units): an input, or zeros."""
        node = self.node
        if node.has_input(index):
            given = node.inputs[index]
            return node.step("Transpose", [given], axes=[1, 0, 2]) if self.batch_first else given
        ends = [self.constant(what, np.array([size])) for what, size in self._ends()]
        batch = node.step("Shape", [self.x], axes=[1])
        shape = node.emit(
            "Concat", [ends[0], batch, ends[1]], [node.new("shape"), node.new("split")], axis=0
        )
        return node.step("ConstantFill", [shape], input_as_shape=1, value=0.0)

    def _ends(self) -> list[tuple[str, int]]:
        return [("directions", len(self.reversed)), ("units", self.units)]

    def constant(self, what: str, array: npt.NDArray[Any]) -> str:
        return self.node.graph.constant(self.node.new(what), array)

    def give(self, sequence: str, *states: str) -> None:
        """Names the results: a sequence (steps, directions, batch, units), and the last states,
        (directions, batch, units)."""
        outputs = self.node.outputs
        orders = [[2, 0, 1, 3], *[[1, 0, 2]] * len(states)]
        for name, found, order in zip(outputs, (sequence, *states), orders, strict=False):
            if name and self.batch_first:
                self.node.emit("Transpose", [found], name, axes=order)
            elif name:
                self.node.emit("Copy", [found], name)


def _blocks(array: npt.NDArray[Any], order: Sequence[int]) -> npt.NDArray[Any]:
    """The blocks of gates in another order."""
    parts = np.split(array, len(order))
    return np.concatenate([parts[k] for k in order])


def _lstm(node: Node) -> None:
    """One InferenceLSTM.  ONNX has the gates in the order input, output, forget, candidate."""
    layer = _Layer(node, 4, ("Sigmoid", "Tanh", "Tanh"))
    layer.expect_functions("Sigmoid", "Tanh", "Tanh")
    node.expect("input_forget", [0])
    if node.has_input(7):
        node.refuse("peepholes (input P) have no counterpart")
    weights, order = [], (0, 2, 3, 1)
    for k in range(len(layer.reversed)):
        weights += [
            layer.constant(f"{what}{k}", _blocks(array, order))
            for what, array in (
                ("W", layer.W[k]),
                ("R", layer.R[k]),
                ("Wb", layer.B[k, 0]),
                ("Rb", layer.B[k, 1]),
            )
        ]
    backwards = layer.reversed == [True]
    x = _backwards(node, layer.x) if backwards else layer.x
    inputs = [x, layer.state(5), layer.state(6), *weights]
    joined, hidden, cell = (node.new(what) for what in ("joined", "hidden", "cell"))
    both = len(layer.reversed)
    node.emit(
        "InferenceLSTM",
        inputs,
        [joined, hidden, cell],
        num_layers=1,
        has_biases=1,
        bidirectional=both - 1,
    )
    if backwards:
        joined = _backwards(node, joined)
    apart = node.emit(
        "Reshape", [joined], [node.new("apart"), node.new("old")], shape=[0, 0, both, layer.units]
    )
    layer.give(node.step("Transpose", [apart], axes=[0, 2, 1, 3]), hidden, cell)


class _Step:
    """The net of one step, whose blobs have names that the graph has not."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.net = caffe2_pb2.NetDef(name=node.new("step"), type="simple")
        self.state, self.x, self.result = (node.new(what) for what in ("before", "x_t", "h"))

    def emit(self, op_type: str, inputs: Sequence[str], output: str = "", **arguments: Any) -> str:
        return self.emit_several(
            op_type, inputs, [output or self.node.new(op_type.lower())], **arguments
        )[0]

    def emit_several(
        self, op_type: str, inputs: Sequence[str], outputs: Sequence[str], **arguments: Any
    ) -> Sequence[str]:
        with EmptyDeviceScope():
            op = CreateOperator(
                op_type, list(map(BlobReference, inputs)), list(map(BlobReference, outputs)),
                **arguments,
            )  # fmt: skip
        self.net.op.append(op)
        return outputs

    def split(self, blob: str, count: int) -> Sequence[str]:
        return self.emit_several(
            "Split", [blob], [self.node.new(f"part{k}") for k in range(count)], axis=2
        )


def _each_direction(
    layer: _Layer,
    weights: Callable[[int], dict[str, npt.NDArray[Any]]],
    body: Callable[[_Step, dict[str, str]], None],
) -> None:
    """A RecurrentNetwork for each direction: `body` appends the operators of a step, which reads
    W x + b ("W" and "b" of `weights`) and the state, and the other weights by their names."""
    node, every, last = layer.node, [], []
    start = layer.state(5)
    count = len(layer.reversed)
    starts = [start]
    if count > 1:
        starts = [node.new(f"start{k}") for k in range(count)]
        node.emit("Split", [start], starts, axis=0)
    for k, backwards in enumerate(layer.reversed):
        names = {what: layer.constant(f"{what}{k}", a) for what, a in weights(k).items()}
        x = _backwards(node, layer.x) if backwards else layer.x
        x = node.step("FC", [x, names.pop("W"), names.pop("b")], axis=2)
        step = _Step(node)
        body(step, names)
        states, results = node.new("states"), [node.new(what) for what in ("all", "last")]
        node.emit(
            "RecurrentNetwork",
            [x, starts[k], *names.values()],
            [*results, node.new("step_workspaces")],
            step_net=step.net,
            timestep=node.new("timestep"),
            recurrent_states=[states],
            initial_recurrent_state_ids=[1],
            link_internal=[step.state, step.result, step.x],
            link_external=[states, states, x],
            link_offset=[0, 1, 0],
            alias_src=[states, states],
            alias_dst=results,
            alias_offset=[1, -1],
        )
        every.append(_backwards(node, results[0]) if backwards else results[0])
        last.append(results[1])
    sequence, hidden = (
        node.emit("Concat", parts, [node.new(what), node.new("split")], axis=axis, add_axis=add)
        for what, parts, axis, add in (("every", every, 1, 1), ("hidden", last, 0, 0))
    )
    layer.give(sequence, hidden)


def _backwards(node: Node, sequence: str) -> str:
    """A sequence (steps, batch, values) from its end on."""
    batch = node.step("Shape", [sequence], axes=[1])
    ones = node.step("ConstantFill", [batch], input_as_shape=1, value=1, dtype=_INT32)
    steps = node.step("Cast", [node.step("Shape", [sequence], axes=[0])], to=_INT32)
    lengths = node.step("Mul", [ones, steps])
    return node.step("ReversePackedSegs", [sequence, lengths])


def _rnn(node: Node) -> None:
    layer = _Layer(node, 1, ("Tanh",))
    function = layer.functions[0]
    if function not in ("Tanh", "Relu", "Sigmoid"):
        node.refuse(f"activations={layer.functions} have no counterpart")
    layer.expect_functions(function)

    def weights(k: int) -> dict[str, npt.NDArray[Any]]:
        return {"W": layer.W[k], "b": layer.B[k, 0], "R": layer.R[k], "Rb": layer.B[k, 1]}

    def body(step: _Step, names: dict[str, str]) -> None:
        again = step.emit("FC", [step.state, names["R"], names["Rb"]], axis=2)
        step.emit(function, [step.emit("Sum", [again, step.x])], step.result)

    _each_direction(layer, weights, body)


def _gru(node: Node) -> None:
    """Gates in the order update (z), reset (r), candidate (h)."""
    layer = _Layer(node, 3, ("Sigmoid", "Tanh"))
    layer.expect_functions("Sigmoid", "Tanh")
    linear_first = node.take("linear_before_reset", 0)

    def weights(k: int) -> dict[str, npt.NDArray[Any]]:
        r, rb, n = layer.R[k], layer.B[k, 1], 2 * layer.units
        return {
            "W": layer.W[k], "b": layer.B[k, 0],
            "Rzr": r[:n], "Rbzr": rb[:n], "Rh": r[n:], "Rbh": rb[n:],
        }  # fmt: skip

    def body(step: _Step, names: dict[str, str]) -> None:
        xz, xr, xh = step.split(step.x, 3)
        again = step.emit("FC", [step.state, names["Rzr"], names["Rbzr"]], axis=2)
        rz, rr = step.split(again, 2)
        z = step.emit("Sigmoid", [step.emit("Sum", [xz, rz])])
        r = step.emit("Sigmoid", [step.emit("Sum", [xr, rr])])
        if linear_first:
            linear = step.emit("FC", [step.state, names["Rh"], names["Rbh"]], axis=2)
            rh = step.emit("Mul", [r, linear])
        else:
            reset = step.emit("Mul", [r, step.state])
            rh = step.emit("FC", [reset, names["Rh"], names["Rbh"]], axis=2)
        candidate = step.emit("Tanh", [step.emit("Sum", [xh, rh])])
        kept = step.emit("Mul", [z, step.emit("Sub", [step.state, candidate])])
        step.emit("Sum", [candidate, kept], step.result)

    _each_direction(layer, weights, body)


CONVERTERS: dict[str, Converter] = {"GRU": _gru, "LSTM": _lstm, "RNN": _rnn}
