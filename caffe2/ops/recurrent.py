# mypy: disable-error-code="misc, no-any-return"
"""Recurrent nets: a net that runs once for each step of its input, and the units of its cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from caffe2.ops.arguments import Bool, Float, Int, Ints, Net, OperatorError, Str, Strs
from caffe2.ops.datatypes import FLOAT, INT32
from caffe2.ops.declaration import (
    SHOULD_NOT_DO_GRADIENT,
    Array,
    GradientContext,
    NativeOnly,
    OpView,
    Spec,
    operator,
)

_RUNS_NETS = NativeOnly("it runs nets, on blobs that a NumPy body does not see")
_STATE, _LENGTHS = np.dtype(np.float32), np.dtype(np.int32)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


# ------------------------------------------------------------------- units


class _Unit:
    """The inputs of a unit, sorted: `states` (1, N, D) each, gates (1, N, g * D), and the rest."""

    def __init__(self, op: OpView, inputs: Sequence[Any], states: int, gates: int) -> None:
        names = op.declaration.inputs.names
        given = [value for value in inputs if value is not None]
        wanted = len(names) - 1 + op.args.sequence_lengths
        if len(given) != wanted:
            problem = f"has {len(given)} inputs; with this sequence_lengths they are {wanted}"
            raise OperatorError("", problem)
        self.states, self.gates = given[:states], given[states]
        after = states + 1
        self.lengths = given[after] if op.args.sequence_lengths else None
        self.time = given[after + op.args.sequence_lengths]
        self.rest = given[after + op.args.sequence_lengths + 1 :]
        self.drop = op.args.drop_states
        self.n_gates, self.names, self.n_states = gates, names, states

    def check(self) -> None:
        state = self.states[-1]
        name = self.names[self.n_states - 1]
        if len(state.shape) != 3 or state.shape[0] != 1:
            raise OperatorError(name, f"has shape {state.shape}; (1, sequences, units) is needed")
        _, rows, units = state.shape
        if self.gates.shape != (1, rows, self.n_gates * units):
            problem = f"has shape {self.gates.shape}; needed is {(1, rows, self.n_gates * units)}"
            raise OperatorError(self.names[self.n_states], problem)
        for spec in (*self.states, *self.rest):
            if spec != state:
                raise OperatorError("", f"an input has {spec}; like the state it must be {state}")
        for spec, shape in ((self.time, None), (self.lengths, (rows,))):
            if spec is not None and spec.dtype != _LENGTHS:
                raise OperatorError("", f"an input is {spec.dtype}; int32 is needed")
            if spec is not None and shape is not None and spec.shape != shape:
                raise OperatorError("", f"sequence lengths of shape {spec.shape}, not {shape}")
        if int(np.prod(self.time.shape)) != 1:
            raise OperatorError("", f"the timestep has shape {self.time.shape}, not one value")

    def over(self) -> Array:
        """(1, N, 1): which sequences have ended."""
        if self.lengths is None:
            return np.zeros((1, self.gates.shape[1], 1), bool)
        return (self.time.ravel()[0] >= self.lengths)[None, :, None]

    def split(self) -> list[Array]:
        return np.split(self.gates, self.n_gates, axis=2)

    def keep(self, new: Array, old: Array) -> Array:
        """`new` for sequences that go on, `old` or 0 for the others."""
        return np.where(self.over(), old * (not self.drop), new)


_UNIT_ARGS = {"drop_states": Bool(False), "sequence_lengths": Bool(True)}
_LSTM_ARGS = {**_UNIT_ARGS, "forget_bias": Float(0.0)}
_LSTM_TYPES = dict.fromkeys(("hidden_t_prev", "cell_t_prev", "gates"), FLOAT)
_GRU_TYPES = dict.fromkeys(("hidden_t_prev", "gates"), FLOAT)


def _gates(unit: _Unit, forget_bias: float) -> tuple[Array, Array, Array, Array]:
    input_, forget, output, candidate = unit.split()
    forget = forget + np.float32(forget_bias)
    return _sigmoid(input_), _sigmoid(forget), _sigmoid(output), np.tanh(candidate)


@operator(
    "LSTMUnit",
    inputs="hidden_t_prev cell_t_prev gates seq_lengths timestep?",
    outputs="hidden_t cell_t",
    args=_LSTM_ARGS,
    types={**_LSTM_TYPES, "seq_lengths": INT32, "timestep": INT32},
)
class LSTMUnit:
    """One step of a layer of LSTM units (Hochreiter and Schmidhuber, 1997; Gers et al., 2000).

        cell_t = sigmoid(f + forget_bias) * cell_t_prev + sigmoid(i) * tanh(g)
        hidden_t = sigmoid(o) * tanh(cell_t)

    hidden_t_prev, cell_t_prev, hidden_t, cell_t: float (1, N, D).  gates: float (1, N, 4 D), for
    each sequence i, f, o and g.  seq_lengths: int32 (N,); timestep: int32, one value.  Of sequences
    that have ended (timestep >= length) the states stay, or become 0 with drop_states.
    sequence_lengths=0: no sequence ends, and the fourth and last input is the timestep.
    """

    def shape(
        hidden_t_prev: Spec,
        cell_t_prev: Spec,
        gates: Spec,
        seq_lengths: Spec,
        timestep: Spec,
        *,
        op: OpView,
    ) -> tuple[Spec, Spec]:
        inputs = (hidden_t_prev, cell_t_prev, gates, seq_lengths, timestep)
        _Unit(op, inputs, 2, 4).check()
        return cell_t_prev, cell_t_prev

    def reference(
        hidden_t_prev: Array,
        cell_t_prev: Array,
        gates: Array,
        seq_lengths: Array,
        timestep: Array,
        *,
        op: OpView,
    ) -> tuple[Array, Array]:
        unit = _Unit(op, (hidden_t_prev, cell_t_prev, gates, seq_lengths, timestep), 2, 4)
        i, f, o, g = _gates(unit, op.args.forget_bias)
        cell = f * cell_t_prev + i * g
        return unit.keep(o * np.tanh(cell), hidden_t_prev), unit.keep(cell, cell_t_prev)

    def gradient(op: GradientContext) -> Any:
        return op.make(
            "LSTMUnitGradient",
            [*op.inputs, *op.outputs, op.grad(0), op.grad(1)],
            [op.input_grad(0), op.input_grad(1), op.input_grad(2)],
        )


_LSTM_GRADIENT = (
    "hidden_t_prev cell_t_prev gates seq_lengths timestep hidden_t cell_t hidden_t_grad cell_t_grad"
)


@operator(
    "LSTMUnitGradient",
    inputs=_LSTM_GRADIENT + "?",
    outputs="hidden_t_prev_grad cell_t_prev_grad gates_grad",
    args=_LSTM_ARGS,
    types=_LSTM_TYPES,
)
class LSTMUnitGradient:
    """The gradient of LSTMUnit, from its inputs, its outputs and their gradients.

    hidden_t_prev, cell_t_prev, hidden_t, cell_t and all their gradients: float (1, N, D).  gates,
    gates_grad: float (1, N, 4 D).  seq_lengths: int32 (N,), left out with sequence_lengths=0;
    timestep: int32, one value.
    """

    def shape(
        hidden_t_prev: Spec,
        cell_t_prev: Spec,
        gates: Spec,
        seq_lengths: Spec,
        timestep: Spec,
        hidden_t: Spec,
        cell_t: Spec,
        hidden_t_grad: Spec,
        cell_t_grad: Spec,
        *,
        op: OpView,
    ) -> tuple[Spec, Spec, Spec]:
        given = (hidden_t_prev, cell_t_prev, gates, seq_lengths, timestep)
        _Unit(op, (*given, hidden_t, cell_t, hidden_t_grad, cell_t_grad), 2, 4).check()
        return cell_t_prev, cell_t_prev, gates

    def reference(
        hidden_t_prev: Array,
        cell_t_prev: Array,
        gates: Array,
        seq_lengths: Array,
        timestep: Array,
        hidden_t: Array,
        cell_t: Array,
        hidden_t_grad: Array,
        cell_t_grad: Array,
        *,
        op: OpView,
    ) -> tuple[Array, Array, Array]:
        given = (hidden_t_prev, cell_t_prev, gates, seq_lengths, timestep)
        unit = _Unit(op, (*given, hidden_t, cell_t, hidden_t_grad, cell_t_grad), 2, 4)
        _, cell, d_hidden, d_cell = unit.rest
        i, f, o, g = _gates(unit, op.args.forget_bias)
        squashed = np.tanh(cell)
        d = d_cell + d_hidden * o * (1 - squashed**2)
        parts = [
            d * g * i * (1 - i),
            d * cell_t_prev * f * (1 - f),
            d_hidden * squashed * o * (1 - o),
            d * i * (1 - g**2),
        ]
        d_gates = np.where(unit.over(), 0, np.concatenate(parts, axis=2)).astype(gates.dtype)
        return unit.keep(np.zeros_like(d), d_hidden), unit.keep(d * f, d_cell), d_gates


@operator(
    "GRUUnit",
    inputs="hidden_t_prev gates seq_lengths timestep?",
    outputs="hidden_t",
    args=_UNIT_ARGS,
    types={**_GRU_TYPES, "seq_lengths": INT32, "timestep": INT32},
)
class GRUUnit:
    """The last part of one step of a layer of gated recurrent units (Cho et al., 2014).

        hidden_t = sigmoid(z) * hidden_t_prev + (1 - sigmoid(z)) * tanh(c)

    hidden_t_prev, hidden_t: float (1, N, D).  gates: float (1, N, 3 D), for each sequence the reset
    gate, which whoever makes c has used, the update gate z, and the candidate c.  seq_lengths,
    timestep, drop_states, sequence_lengths: as for LSTMUnit.
    """

    def shape(
        hidden_t_prev: Spec, gates: Spec, seq_lengths: Spec, timestep: Spec, *, op: OpView
    ) -> Spec:
        _Unit(op, (hidden_t_prev, gates, seq_lengths, timestep), 1, 3).check()
        return hidden_t_prev

    def reference(
        hidden_t_prev: Array, gates: Array, seq_lengths: Array, timestep: Array, *, op: OpView
    ) -> Array:
        unit = _Unit(op, (hidden_t_prev, gates, seq_lengths, timestep), 1, 3)
        _, update, candidate = unit.split()
        update = _sigmoid(update)
        return unit.keep(update * hidden_t_prev + (1 - update) * np.tanh(candidate), hidden_t_prev)

    def gradient(op: GradientContext) -> Any:
        return op.make(
            "GRUUnitGradient",
            [*op.inputs, op.output(0), op.grad(0)],
            [op.input_grad(0), op.input_grad(1)],
        )


@operator(
    "GRUUnitGradient",
    inputs="hidden_t_prev gates seq_lengths timestep hidden_t hidden_t_grad?",
    outputs="hidden_t_prev_grad gates_grad",
    args=_UNIT_ARGS,
    types=_GRU_TYPES,
)
class GRUUnitGradient:
    """The gradient of GRUUnit, from its inputs, its output and the gradient of that.

    hidden_t_prev, hidden_t and their gradients: float (1, N, D).  gates, gates_grad: float
    (1, N, 3 D).  seq_lengths: int32 (N,), left out with sequence_lengths=0; timestep: int32, one
    value.
    """

    def shape(
        hidden_t_prev: Spec,
        gates: Spec,
        seq_lengths: Spec,
        timestep: Spec,
        hidden_t: Spec,
        hidden_t_grad: Spec,
        *,
        op: OpView,
    ) -> tuple[Spec, Spec]:
        given = (hidden_t_prev, gates, seq_lengths, timestep, hidden_t, hidden_t_grad)
        _Unit(op, given, 1, 3).check()
        return hidden_t_prev, gates

    def reference(
        hidden_t_prev: Array,
        gates: Array,
        seq_lengths: Array,
        timestep: Array,
        hidden_t: Array,
        hidden_t_grad: Array,
        *,
        op: OpView,
    ) -> tuple[Array, Array]:
        given = (hidden_t_prev, gates, seq_lengths, timestep, hidden_t, hidden_t_grad)
        unit = _Unit(op, given, 1, 3)
        d = unit.rest[1]
        _, update, candidate = unit.split()
        update, candidate = _sigmoid(update), np.tanh(candidate)
        parts = [
            np.zeros_like(d),
            d * (hidden_t_prev - candidate) * update * (1 - update),
            d * (1 - update) * (1 - candidate**2),
        ]
        d_gates = np.where(unit.over(), 0, np.concatenate(parts, axis=2)).astype(gates.dtype)
        return unit.keep(d * update, d), d_gates


# ------------------------------------------------------------------- nets


def _links(prefix: str) -> dict[str, Any]:
    return {
        f"{prefix}_internal": Strs(),
        f"{prefix}_external": Strs(),
        f"{prefix}_offset": Ints(),
        f"{prefix}_window": Ints(min=0),
    }


_NETWORK_ARGS = {
    "step_net": Net(),
    "backward_step_net": Net(),
    "timestep": Str("timestep"),
    "recurrent_states": Strs(),
    "initial_recurrent_state_ids": Ints(min=0),
    "alias_src": Strs(),
    "alias_dst": Strs(),
    "alias_offset": Ints(),
    **_links("link"),
    **_links("backward_link"),
    "param": Ints(min=0),
    "param_grads": Strs(),
    "outputs_with_grads": Ints(min=0),
    "recompute_blobs_on_backward": Strs(),
    "enable_rnn_executor": Bool(False),
    "rnn_executor.num_threads": Int(0),
    "rnn_executor.max_cuda_streams": Int(0),
    "rnn_executor_debug": Bool(False),
}


@operator(
    "RecurrentNetwork",
    inputs="sequence blobs*?",
    outputs="results step_workspaces*",
    helpers=[-1],
    args=_NETWORK_ARGS,
    kind="control",
)
class RecurrentNetwork:
    """Runs step_net once for each step of a batch of sequences.

    sequence: (T, N, ...).  The other inputs are further sequences, initial states and what the step
    net reads.  In step t, counted in the blob `timestep` (int32), the blob link_internal[k] of the
    step net is rows t + link_offset[k] (link_window[k] of them, by default 1) of link_external[k]:
    an input, or one of the recurrent_states.  A state is a float sequence of T rows that the step
    net writes, after those from input initial_recurrent_state_ids[k]: (rows, N, D), (N, D), or (D)
    for the whole batch.  All other blobs of the step net are its own in each step.

    outputs: alias_dst[k], the rows of state alias_src[k] from alias_offset[k] on (negative: counted
    from the end), in the memory of the state; between them, by their own names, whole states; and
    last the step workspaces, which hold the blobs of each step for the gradient.  They are kept
    where a backward_step_net is given, except those of recompute_blobs_on_backward, which that net
    computes again.

    Nets are nets or quoted text.  The gradient of the first sequence, of the inputs `param` and of
    the initial states is computed from those of the outputs_with_grads.  Arguments of the executor
    have no effect.
    """

    reference = _RUNS_NETS

    def shape(sequence: Spec, *blobs: Spec, op: OpView) -> tuple[Spec | None, ...]:
        inputs, args, states = (sequence, *blobs), op.args, {}
        if len(sequence.shape) < 2:
            raise OperatorError("sequence", f"has shape {sequence.shape}; (T, N, ...) is needed")
        for name, index in zip(
            args.recurrent_states, args.initial_recurrent_state_ids, strict=False
        ):
            initial = inputs[index].shape if index < len(inputs) else ()
            rows = sequence.shape[0] + (initial[0] if len(initial) == 3 else 1)
            states[name] = (rows, sequence.shape[1], *initial[-1:])
        aliases = iter(zip(args.alias_src, args.alias_offset, strict=False))
        found: list[Spec | None] = []
        for output in op.outputs[:-1]:
            name, offset = (output, 0) if output in states else next(aliases, ("", 0))
            rows, *rest = states.get(name, (0,))
            found.append(Spec((rows - offset if offset >= 0 else -offset, *rest), _STATE))
        return (*found, None)

    def gradient(op: GradientContext) -> Any:
        args = op.args
        if not args.outputs_with_grads:
            raise OperatorError("argument 'outputs_with_grads'", "is empty")
        given = [op.grad(index) for index in args.outputs_with_grads]
        wanted = (0, *args.param, *args.initial_recurrent_state_ids)
        return op.make(
            "RecurrentNetworkGradient",
            [*given, *op.inputs, *op.outputs],
            [op.input_grad(index) for index in wanted],
        )


@operator(
    "RecurrentNetworkGradient",
    inputs="blobs*",
    outputs="gradients*",
    args=_NETWORK_ARGS,
    kind="control",
)
class RecurrentNetworkGradient:
    """The gradient of RecurrentNetwork: runs backward_step_net for each step, from the last one on.

    Inputs are the gradients of the outputs_with_grads, then the inputs, then the outputs of the
    forward operator; outputs the gradients of its first input, its inputs `param` and its initial
    states.  backward_link_* are links as there, on `<state>_grad` and the gradients of sequences;
    param_grads[k] (default: the input's name and `_grad`), which the step net writes, is summed
    over the steps.
    """

    reference = _RUNS_NETS

    def shape(*blobs: Spec, op: OpView) -> tuple[None, ...]:
        return (None,) * len(op.outputs)


@operator(
    "RecurrentNetworkBlobFetcher",
    inputs="step_workspaces",
    outputs="blob_names",
    args={"prefix": Str("")},
    kind="control",
)
class RecurrentNetworkBlobFetcher:
    """Copies the blobs of each step of a RecurrentNetwork out, to `<prefix>_<blob><step>`.

    step_workspaces: the last output of RecurrentNetwork.  blob_names: strings (K,), the new blobs.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = NativeOnly("step workspaces are no tensor")

    def shape(step_workspaces: Any) -> None:
        return None


@operator(
    "rnn_internal_apply_link",
    inputs="timestep sequence",
    outputs="step sequence_out",
    args={"offset": Int(0), "window": Int(1, min=0)},
    types={"timestep": INT32},
    enforced_inplace=[(1, 1)],
)
class ApplyLink:
    """step = rows timestep + offset, `window` of them, of the sequence, in its memory.

    timestep: int32, one value.  sequence: any tensor, which stays as it is.
    """

    def shape(timestep: Spec, sequence: Spec, *, op: OpView) -> tuple[Spec, Spec]:
        return Spec((op.args.window, *sequence.shape[1:]), sequence.dtype), sequence

    def reference(timestep: Array, sequence: Array, *, op: OpView) -> tuple[Array, Array]:
        first = _row(timestep, sequence, op.args.window, op)
        return sequence[first : first + op.args.window], sequence


@operator(
    "rnn_internal_accumulate_gradient_input",
    inputs="timestep step sequence",
    outputs="sum",
    args={"offset": Int(0)},
    types={"timestep": INT32, "step": FLOAT, "sequence": FLOAT},
    enforced_inplace=[(2, 0)],
)
class AccumulateGradientInput:
    """sum = sequence, with step added to its row timestep + offset.

    timestep: int32, one value.  sequence, sum: float.  step: float, as many values as a row.
    """

    def shape(timestep: Spec, step: Spec, sequence: Spec) -> Spec:
        return sequence

    def reference(timestep: Array, step: Array, sequence: Array, *, op: OpView) -> Array:
        first = _row(timestep, sequence, 1, op)
        if step.size != sequence[first].size:
            raise OperatorError("step", f"has shape {step.shape}, unlike a row of the sequence")
        found = sequence.copy()
        found[first] += step.reshape(found[first].shape)
        return found


def _row(timestep: Array, sequence: Array, window: int, op: OpView) -> int:
    if timestep.size != 1:
        raise OperatorError("timestep", f"has shape {timestep.shape}; one value is needed")
    first = int(timestep.ravel()[0]) + op.args.offset
    if sequence.ndim == 0 or not 0 <= first <= sequence.shape[0] - window:
        raise OperatorError(
            "sequence", f"has shape {sequence.shape} and no {window} rows at {first}"
        )
    return first
