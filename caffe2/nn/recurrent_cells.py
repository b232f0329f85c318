"""Cells of recurrent nets: what happens in one step, and how steps become a sequence.

A cell names its states; `apply_over_sequence` runs it over sequences (T, N, D) by the operator
RecurrentNetwork.  `caffe2.nn.recurrent_layers` has the cells with their usual wiring as functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from caffe2.graph.blob import BlobReference
from caffe2.graph.errors import UsageError
from caffe2.graph.scope import NameScope
from caffe2.nn.brew import brew
from caffe2.nn.model_helper import ModelHelper
from caffe2.nn.parameters import Initializer
from caffe2.nn.recurrent import recurrent_net

States = Sequence[Any]


def scoped(name: str | None) -> AbstractContextManager[None]:
    """The NameScope of a cell; a cell without a name has none."""
    return NameScope(name) if name else nullcontext()


class RNNCell:
    """Base of all cells.

    name          the first part of the names of its blobs, or None
    forward_only  no gradient is wanted
    initializer   makes the initial states where none are given (`create_states(model)`)

    A cell defines `apply_override` and `get_state_names_override`, and usually `prepare_input`.
    """

    def __init__(
        self, name: str | None = None, forward_only: bool = False, initializer: Any = None
    ) -> None:
        self.name = name
        self.forward_only = forward_only
        self.recompute_blobs: list[Any] = []
        self._initializer = initializer

    @property
    def initializer(self) -> Any:
        return self._initializer

    @initializer.setter
    def initializer(self, value: Any) -> None:
        self._initializer = value

    def scope(self, name: str) -> str:
        return f"{self.name}/{name}" if self.name else name

    def apply_over_sequence(
        self,
        model: ModelHelper,
        inputs: Any,
        seq_lengths: Any = None,
        initial_states: States | None = None,
        outputs_with_grads: Sequence[int] | None = None,
    ) -> tuple[Any, tuple[Any, ...]]:
        """Runs the cell over `inputs`, (T, N, D).

        seq_lengths         the blob with the lengths of the sequences, int32 (N), or None
        initial_states      one blob for each state; by default the initializer makes them
        outputs_with_grads  which of the results gradients come for; by default the output

        Gives the output, (T, N, ...), and for each state all of its values and the last one.
        """
        if initial_states is None:
            if self.initializer is None:
                raise UsageError("Either initial states or initializer have to be set")
            with scoped(self.name):
                initial_states = self.initializer.create_states(model)
        prepared = self.prepare_input(model, inputs)
        step_model = ModelHelper(name=self.name or "rnn", param_model=model)
        input_t, timestep = step_model.net.AddScopedExternalInputs("input_t", "timestep")
        names = [f"{name}_prev" for name in self.get_state_names()]
        before = step_model.net.AddScopedExternalInputs(*names)
        before = before if isinstance(before, list) else [before]
        after = self._apply(step_model, input_t, seq_lengths, before, timestep)
        known = set(step_model.net.Proto().external_output)
        step_model.net.AddExternalOutputs(*(s for s in after if str(s) not in known))
        if outputs_with_grads is None:
            outputs_with_grads = [2 * self.get_output_state_index()]
        results = recurrent_net(
            net=model.net,
            cell_net=step_model.net,
            inputs=[(input_t, prepared)],
            initial_cell_inputs=list(zip(before, initial_states, strict=True)),
            links=dict(zip(before, after, strict=True)),
            timestep=timestep,
            scope=self.name,
            outputs_with_grads=outputs_with_grads,
            recompute_blobs_on_backward=self.recompute_blobs,
            forward_only=self.forward_only,
        )
        return self._prepare_output_sequence(model, results), results

    def apply(
        self, model: ModelHelper, input_t: Any, seq_lengths: Any, states: States, timestep: Any
    ) -> States:
        """One step on an input as it comes, (1, N, D): the new states."""
        return self._apply(model, self.prepare_input(model, input_t), seq_lengths, states, timestep)

    def _apply(
        self,
        model: ModelHelper,
        input_t: Any,
        seq_lengths: Any,
        states: States,
        timestep: Any,
        extra_inputs: Sequence[tuple[Any, int]] | None = None,
    ) -> States:
        """One step on a prepared input."""
        return self.apply_override(model, input_t, seq_lengths, states, timestep, extra_inputs)

    def apply_override(
        self,
        model: ModelHelper,
        input_t: Any,
        seq_lengths: Any,
        states: States,
        timestep: Any,
        extra_inputs: Sequence[tuple[Any, int]] | None = None,
    ) -> States:
        """What a cell does in one step.  extra_inputs: further blobs (1, N, D) and their D."""
        raise NotImplementedError(f"{type(self).__name__} does not say what a step is")

    def prepare_input(self, model: ModelHelper, input_blob: Any) -> Any:
        """What can be done with the input for all steps at once."""
        return input_blob

    def get_output_state_index(self) -> int:
        """Which state is the output."""
        return 0

    def get_state_names(self) -> list[str]:
        return self.get_state_names_override()

    def get_state_names_override(self) -> list[str]:
        raise NotImplementedError(f"{type(self).__name__} does not name its states")

    def get_output_dim(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} does not say how wide its output is")

    def _prepare_output(self, model: ModelHelper, states: States) -> Any:
        """The output of one step."""
        return states[self.get_output_state_index()]

    def _prepare_output_sequence(self, model: ModelHelper, states: States) -> Any:
        """The output of all steps, from all and last values of the states."""
        return states[2 * self.get_output_state_index()]


class LSTMInitializer:
    """Initial states of an LSTM that are parameters, at first 0."""

    def __init__(self, hidden_size: int) -> None:
        self.hidden_size = hidden_size

    def create_states(self, model: ModelHelper) -> list[BlobReference]:
        return [
            model.create_param(
                f"initial_{state}_state", [self.hidden_size], Initializer("ConstantFill", value=0.0)
            )
            for state in ("hidden", "cell")
        ]


class _HiddenCell(RNNCell):
    """Cells whose output is a hidden state, and whose input goes through a linear layer first."""

    gates = 1  # rows of the layer for each unit

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        forget_bias: float,
        memory_optimization: bool,
        drop_states: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.forget_bias = float(forget_bias)
        self.memory_optimization = memory_optimization
        self.drop_states = drop_states

    def prepare_input(self, model: ModelHelper, input_blob: Any) -> Any:
        """The linear layer `i2h` on the input."""
        return self._linear(model, input_blob, "i2h", self.input_size, self.gates)

    def _linear(
        self, model: ModelHelper, blob: Any, name: str, dim_in: int, gates: int | None = None
    ) -> Any:
        width = (gates or self.gates) * self.hidden_size
        return brew.fc(model, blob, self.scope(name), dim_in=dim_in, dim_out=width, axis=2)

    def _recurrent(
        self,
        model: ModelHelper,
        hidden: Any,
        name: str,
        extra_inputs: Sequence[tuple[Any, int]] | None,
    ) -> Any:
        """The linear layer `name` on the last hidden state and what else there is."""
        width = self.hidden_size
        if extra_inputs:
            blobs = [hidden, *(blob for blob, _ in extra_inputs)]
            joined = [
                self.scope("gates_concatenated_input_t"),
                self.scope("_gates_concatenated_input_t_concat_dims"),
            ]
            hidden, _ = model.net.Concat(blobs, joined, axis=2)
            width += sum(size for _, size in extra_inputs)
        return self._linear(model, hidden, name, width)

    def _unit(
        self,
        model: ModelHelper,
        op_type: str,
        states: States,
        gates: Any,
        seq_lengths: Any,
        timestep: Any,
        outputs: Sequence[str],
    ) -> Any:
        inputs = [*states, gates, *([] if seq_lengths is None else [seq_lengths]), timestep]
        return model.net.__getattr__(op_type)(
            inputs,
            [self.scope(name) for name in outputs],
            forget_bias=self.forget_bias,
            drop_states=self.drop_states,
            sequence_lengths=seq_lengths is not None,
        )

    def _may_recompute(self, *blobs: Any) -> None:
        if self.memory_optimization:
            self.recompute_blobs = list(blobs)

    def get_state_names_override(self) -> list[str]:
        return [self.scope("hidden_t")]

    def get_output_dim(self) -> int:
        return self.hidden_size


class BasicRNNCell(_HiddenCell):
    """hidden_t = f(W x_t + R hidden_t_prev + b) (Elman, 1990), with `activation` tanh or relu."""

    def __init__(self, *args: Any, activation: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if activation not in ("relu", "tanh"):
            raise UsageError(f"BasicRNN with activation {activation!r}; it can be relu or tanh")
        self.activation = activation

    def apply_override(
        self,
        model: ModelHelper,
        input_t: Any,
        seq_lengths: Any,
        states: States,
        timestep: Any,
        extra_inputs: Sequence[tuple[Any, int]] | None = None,
    ) -> States:
        (before,) = states
        net = model.net
        gates = self._recurrent(model, before, "gates_t", extra_inputs)
        net.Sum([gates, input_t], gates)
        activate = net.Tanh if self.activation == "tanh" else net.Relu
        if seq_lengths is None:
            return (activate(gates, self.scope("hidden_t")),)
        # Of a sequence that is over the old state counts, or 0.
        new = activate(gates, self.scope("hidden_t_unmasked"))
        valid = self._mask(model, "GT", seq_lengths, timestep, "valid")
        kept = net.Mul([new, valid], self.scope("hidden_valid"), broadcast=1, axis=1)
        if self.drop_states:
            return (kept,)
        over = self._mask(model, "LE", seq_lengths, timestep, "invalid")
        old = net.Mul([before, over], self.scope("hidden_invalid"), broadcast=1, axis=1)
        return (net.Add([kept, old], self.scope("hidden_t")),)

    def _mask(
        self, model: ModelHelper, compare: str, seq_lengths: Any, timestep: Any, name: str
    ) -> Any:
        """1 where the comparison of lengths and the step holds, else 0: float (N)."""
        make = model.net.__getattr__(compare)
        flags = make([seq_lengths, timestep], self.scope(f"{name}_b"), broadcast=1)
        mask = model.net.Cast(flags, self.scope(name), to="float")
        return model.net.StopGradient(mask, mask)


class LSTMCell(_HiddenCell):
    """Long short-term memory; see the operator LSTMUnit.  States: hidden and cell."""

    gates = 4
    outputs = ("hidden_state", "cell_state")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        forget_bias: float,
        memory_optimization: bool,
        drop_states: bool = False,
        initializer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            input_size,
            hidden_size,
            forget_bias,
            memory_optimization,
            drop_states,
            initializer=initializer or LSTMInitializer(hidden_size),
            **kwargs,
        )

    def apply_override(
        self,
        model: ModelHelper,
        input_t: Any,
        seq_lengths: Any,
        states: States,
        timestep: Any,
        extra_inputs: Sequence[tuple[Any, int]] | None = None,
    ) -> States:
        gates = self._make_gates(model, input_t, states[0], extra_inputs)
        result: States = self._unit(
            model, "LSTMUnit", states, gates, seq_lengths, timestep, self.outputs
        )
        return result

    def _make_gates(
        self,
        model: ModelHelper,
        input_t: Any,
        hidden: Any,
        extra_inputs: Sequence[tuple[Any, int]] | None,
    ) -> Any:
        gates = self._recurrent(model, hidden, "gates_t", extra_inputs)
        model.net.Sum([gates, input_t], gates)
        self._may_recompute(gates)
        return gates

    def get_input_params(self) -> dict[str, str]:
        return {"weights": self.scope("i2h") + "_w", "biases": self.scope("i2h") + "_b"}

    def get_recurrent_params(self) -> dict[str, str]:
        return {"weights": self.scope("gates_t") + "_w", "biases": self.scope("gates_t") + "_b"}

    def get_state_names_override(self) -> list[str]:
        return [self.scope("hidden_t"), self.scope("cell_t")]


def _normalized(cell: _HiddenCell, model: ModelHelper, gates: Any) -> Any:
    """Layer normalization (Ba, Kiros, Hinton, 2016) of the gates."""
    width = cell.gates * cell.hidden_size
    name = cell.scope("gates_t_norm")
    scale = model.create_param(f"{name}_scale", [width], Initializer("ConstantFill", value=1.0))
    bias = model.create_param(f"{name}_bias", [width], Initializer("ConstantFill", value=0.0))
    normalized, _, _ = model.net.LayerNorm(
        [gates, scale, bias],
        [name, f"{name}_mean", f"{name}_std"],
        axis=-1,
        epsilon=1e-4,
        elementwise_affine=1,
    )
    return normalized


class LayerNormLSTMCell(LSTMCell):
    """LSTM whose gates are normalized in each step."""

    outputs = ("hidden_t", "cell_t")

    def _make_gates(self, model: ModelHelper, *args: Any) -> Any:
        return _normalized(self, model, super()._make_gates(model, *args))


class MILSTMCell(LSTMCell):
    """LSTM with multiplicative integration (Wu et al., 2016): the gates are
    alpha * Wx * Rh + beta1 * Rh + beta2 * Wx + b."""

    outputs = ("hidden_t_intermediate", "cell_t")

    def _make_gates(
        self,
        model: ModelHelper,
        input_t: Any,
        hidden: Any,
        extra_inputs: Sequence[tuple[Any, int]] | None,
    ) -> Any:
        net, shape = model.net, [self.gates * self.hidden_size]
        before = self._recurrent(model, hidden, "prev_t", extra_inputs)
        values = {"alpha": 1.0, "beta1": 1.0, "beta2": 1.0, "b": 0.0}
        alpha, beta1, beta2, bias = (
            model.create_param(self.scope(name), shape, Initializer("ConstantFill", value=value))
            for name, value in values.items()
        )
        factor = net.ElementwiseLinear(
            [input_t, alpha, beta1], self.scope("alpha_by_input_t_plus_beta_h"), axis=2
        )
        product = net.Mul([factor, before], self.scope("alpha_by_input_t_plus_beta_h_by_prev_t"))
        rest = net.ElementwiseLinear(
            [input_t, beta2, bias], self.scope("beta_i_by_input_t_plus_b"), axis=2
        )
        gates = net.Sum([product, rest], self.scope("gates_t"))
        self._may_recompute(gates)
        return gates


class LayerNormMILSTMCell(MILSTMCell):
    """MILSTM whose gates are normalized in each step."""

    def _make_gates(self, model: ModelHelper, *args: Any) -> Any:
        return _normalized(self, model, super()._make_gates(model, *args))


class GRUCell(_HiddenCell):
    """Gated recurrent unit (Cho et al., 2014); see the operator GRUUnit.

    linear_before_reset: the reset gate works behind the linear layer on the hidden state, not
    before it.
    """

    gates = 3

    def __init__(self, *args: Any, linear_before_reset: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.linear_before_reset = linear_before_reset

    def apply_override(
        self,
        model: ModelHelper,
        input_t: Any,
        seq_lengths: Any,
        states: States,
        timestep: Any,
        extra_inputs: Sequence[tuple[Any, int]] | None = None,
    ) -> States:
        if extra_inputs:
            raise UsageError("a GRU cell takes no extra inputs")
        (before,) = states
        net, size = model.net, self.hidden_size
        parts = ("reset", "update", "output")
        from_input = net.Split(input_t, [self.scope(f"input_t_{part}") for part in parts], axis=2)
        reset = self._linear(model, before, "reset_gate_t", size, 1)
        update = self._linear(model, before, "update_gate_t", size, 1)
        net.Sum([reset, from_input[0]], reset)
        opened = net.Sigmoid(reset, self.scope("reset_gate_t_sigmoid"))
        if self.linear_before_reset:
            output = self._linear(model, before, "output_gate_t", size, 1)
            output = net.Mul([opened, output], self.scope("output_gate_t_mul"))
        else:
            modified = net.Mul([opened, before], self.scope("modified_hidden_t_prev"))
            output = self._linear(model, modified, "output_gate_t", size, 1)
        net.Sum([update, from_input[1]], update)
        output = net.Sum([output, from_input[2]], self.scope("output_gate_t_summed"))
        joined = [self.scope("gates_t"), self.scope("_gates_t_concat_dims")]
        gates, _ = net.Concat([reset, update, output], joined, axis=2)
        hidden = self._unit(model, "GRUUnit", states, gates, seq_lengths, timestep, ["hidden_t"])
        self._may_recompute(gates)
        return (hidden,)

    def get_output_dim(self) -> int:
        return self.hidden_size
