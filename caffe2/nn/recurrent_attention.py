"""Decoder cells that look at all outputs of an encoder in each step (Bahdanau, Cho, Bengio, 2014).

encoder_outputs are (S, N, E), S steps of the encoder; weights over S give a context (1, N, E).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from caffe2.graph.errors import UsageError
from caffe2.nn.brew import brew
from caffe2.nn.model_helper import ModelHelper
from caffe2.nn.parameters import Initializer
from caffe2.nn.recurrent_cells import LSTMCell, MILSTMCell, RNNCell, States


class AttentionType:
    """How the weights are computed."""

    Regular, Recurrent, Dot, SoftCoverage = range(4)


def s(scope: str, name: str) -> str:
    return f"{scope}/{name}"


def _linear(model: ModelHelper, blob: Any, name: str, dim_in: int, dim_out: int) -> Any:
    return brew.fc(model, blob, name, dim_in=dim_in, dim_out=dim_out, axis=2)


def _decoder_part(
    model: ModelHelper, state: Any, state_dim: int, encoder_output_dim: int, scope: str
) -> Any:
    """The decoder's state as wide as an output of the encoder: (1, N, E)."""
    name = s(scope, "weighted_decoder_hidden_state")
    return _linear(model, state, name, state_dim, encoder_output_dim)


def _weights(model: ModelHelper, logits: Any, encoder_lengths: Any, scope: str) -> Any:
    """Weights (N, S, 1) that are 0 behind the ends of the sequences."""
    if encoder_lengths is not None:
        masked = "masked_attention_logits"
        logits = model.net.SequenceMask([logits, encoder_lengths], [masked], mode="sequence")
    return model.net.Softmax(logits, s(scope, "attention_weights_3d"), axis=1)


def _context(
    model: ModelHelper, transposed: Any, weights: Any, encoder_output_dim: int, scope: str
) -> Any:
    """The mean of the encoder's outputs with these weights: (1, N, E)."""
    name = s(scope, "attention_weighted_encoder_context")
    context = model.net.BatchMatMul([transposed, weights], name)
    shaped, _ = model.net.Reshape(
        context, [context, f"{name}_old_shape"], shape=[1, -1, encoder_output_dim]
    )
    return shaped


def _attend(
    model: ModelHelper,
    encoder_output_dim: int,
    transposed: Any,
    weighted_encoder_outputs: Any,
    decoder_part: Any,
    encoder_lengths: Any,
    scope: str,
    **hints: Any,
) -> tuple[Any, Any, list[Any]]:
    """Context and weights from v tanh(encoder + decoder), and blobs that can be computed again."""
    net = model.net
    total = net.Add(
        [weighted_encoder_outputs, decoder_part],
        s(scope, "decoder_hidden_encoder_outputs_sum"),
        broadcast=1,
        **hints,
    )
    net.Tanh(total, total)
    logits = brew.fc(
        model,
        total,
        s(scope, "attention_logits"),
        dim_in=encoder_output_dim,
        dim_out=1,
        axis=2,
        freeze_bias=True,
    )
    logits = net.Transpose(logits, s(scope, "attention_logits_transposed"), axes=[1, 0, 2])
    weights = _weights(model, logits, encoder_lengths, scope)
    context = _context(model, transposed, weights, encoder_output_dim, scope)
    return context, weights, [total]


def apply_regular_attention(
    model: ModelHelper,
    encoder_output_dim: int,
    encoder_outputs_transposed: Any,
    weighted_encoder_outputs: Any,
    decoder_hidden_state_t: Any,
    decoder_hidden_state_dim: int,
    scope: str,
    encoder_lengths: Any = None,
) -> tuple[Any, Any, list[Any]]:
    """Weights softmax(v tanh(W encoder + U decoder)).

    encoder_outputs_transposed: (N, E, S).  weighted_encoder_outputs: (S, N, E).  Gives the context
    (1, N, E), the weights (N, S, 1) and the blobs that may be computed again for the gradient.
    """
    part = _decoder_part(
        model, decoder_hidden_state_t, decoder_hidden_state_dim, encoder_output_dim, scope
    )
    part = model.net.Squeeze(part, part, dims=[0])
    return _attend(
        model,
        encoder_output_dim,
        encoder_outputs_transposed,
        weighted_encoder_outputs,
        part,
        encoder_lengths,
        scope,
        use_grad_hack=1,
    )


def apply_recurrent_attention(
    model: ModelHelper,
    encoder_output_dim: int,
    encoder_outputs_transposed: Any,
    weighted_encoder_outputs: Any,
    decoder_hidden_state_t: Any,
    decoder_hidden_state_dim: int,
    attention_weighted_encoder_context_t_prev: Any,
    scope: str,
    encoder_lengths: Any = None,
) -> tuple[Any, Any, list[Any]]:
    """The same, with the context of the step before as a further part of the sum."""
    net = model.net
    before = _linear(
        model,
        attention_weighted_encoder_context_t_prev,
        s(scope, "weighted_prev_attention_context"),
        encoder_output_dim,
        encoder_output_dim,
    )
    before = net.Squeeze(before, before, dims=[0])
    part = _decoder_part(
        model, decoder_hidden_state_t, decoder_hidden_state_dim, encoder_output_dim, scope
    )
    part = net.Squeeze(part, part, dims=[0])
    part = net.Add([before, part], s(scope, "decoder_hidden_encoder_outputs_sum_tmp"))
    return _attend(
        model,
        encoder_output_dim,
        encoder_outputs_transposed,
        weighted_encoder_outputs,
        part,
        encoder_lengths,
        scope,
    )


def apply_dot_attention(
    model: ModelHelper,
    encoder_output_dim: int,
    encoder_outputs_transposed: Any,
    decoder_hidden_state_t: Any,
    decoder_hidden_state_dim: int,
    scope: str,
    encoder_lengths: Any = None,
) -> tuple[Any, Any, list[Any]]:
    """Weights softmax(encoder . decoder), the state made as wide as the encoder where it is not."""
    net, part = model.net, decoder_hidden_state_t
    if decoder_hidden_state_dim != encoder_output_dim:
        part = _decoder_part(model, part, decoder_hidden_state_dim, encoder_output_dim, scope)
    part = net.Squeeze(part, s(scope, "squeezed_weighted_decoder_hidden_state"), dims=[0])
    net.ExpandDims(part, part, dims=[2])
    logits = net.BatchMatMul(
        [encoder_outputs_transposed, part], s(scope, "attention_logits"), trans_a=1
    )
    weights = _weights(model, logits, encoder_lengths, scope)
    context = _context(model, encoder_outputs_transposed, weights, encoder_output_dim, scope)
    return context, weights, []


def apply_soft_coverage_attention(
    model: ModelHelper,
    encoder_output_dim: int,
    encoder_outputs_transposed: Any,
    weighted_encoder_outputs: Any,
    decoder_hidden_state_t: Any,
    decoder_hidden_state_dim: int,
    scope: str,
    encoder_lengths: Any,
    coverage_t_prev: Any,
    coverage_weights: Any,
) -> tuple[Any, Any, list[Any], Any]:
    """Regular attention that knows its coverage, the sum of all weights so far (See, Liu and
    Manning, 2017, arXiv 1704.04368).

    Weights softmax(v tanh(W encoder + coverage * coverage_weights + U decoder)).
    coverage_t_prev: (1, N, S).  coverage_weights: (E).  Gives what apply_regular_attention does,
    and the coverage after this step, (1, N, S).
    """
    net = model.net
    part = _decoder_part(
        model, decoder_hidden_state_t, decoder_hidden_state_dim, encoder_output_dim, scope
    )
    part = net.Squeeze(part, part, dims=[0])
    encoder_part = net.Add(
        [weighted_encoder_outputs, part], s(scope, "decoder_hidden_encoder_outputs_sum_tmp")
    )
    coverage = net.Transpose(coverage_t_prev, s(scope, "coverage_transposed"), axes=[2, 1, 0])
    covered = net.Mul([coverage, coverage_weights], s(scope, "coverage_part"))
    context, weights, again = _attend(
        model,
        encoder_output_dim,
        encoder_outputs_transposed,
        encoder_part,
        covered,
        encoder_lengths,
        scope,
    )
    of_step = net.Transpose(weights, s(scope, "attention_weights_transposed"), axes=[2, 0, 1])
    coverage_t = net.Add([coverage_t_prev, of_step], s(scope, "coverage_t"))
    return context, weights, again, coverage_t


class AttentionCell(RNNCell):
    """A decoder cell that gets, besides its input, the context of the step before.

    Its states are those of the decoder cell, the context, and with SoftCoverage the coverage; its
    output is the decoder's output and the context side by side.
    """

    def __init__(
        self,
        encoder_output_dim: int,
        encoder_outputs: Any,
        encoder_lengths: Any,
        decoder_cell: RNNCell,
        decoder_state_dim: int,
        attention_type: int,
        weighted_encoder_outputs: Any,
        attention_memory_optimization: bool,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if attention_type not in range(4):
            known = "Regular, Recurrent, Dot, SoftCoverage"
            raise UsageError(f"attention type {attention_type} is none of {known}")
        self.encoder_output_dim = encoder_output_dim
        self.encoder_outputs = encoder_outputs
        self.encoder_lengths = encoder_lengths
        self.decoder_cell = decoder_cell
        self.decoder_state_dim = decoder_state_dim
        self.attention_type = attention_type
        self.weighted_encoder_outputs = weighted_encoder_outputs
        self.attention_memory_optimization = attention_memory_optimization
        self.encoder_outputs_transposed: Any = None
        self.coverage_weights: Any = None
        self._weights: Any = None
        # Its own states: the context, and the coverage.
        self._own = 2 if attention_type == AttentionType.SoftCoverage else 1

    def get_attention_weights(self) -> Any:
        """The weights (N, S, 1) of the last step that was made."""
        return self._weights

    def prepare_input(self, model: ModelHelper, input_blob: Any) -> Any:
        """What is the same for all steps: the encoder's outputs in the forms that are needed."""
        if self.encoder_outputs_transposed is None:
            name = self.scope("encoder_outputs_transposed")
            self.encoder_outputs_transposed = model.net.Transpose(
                self.encoder_outputs, name, axes=[1, 2, 0]
            )
        if self.weighted_encoder_outputs is None and self.attention_type != AttentionType.Dot:
            width = self.encoder_output_dim
            self.weighted_encoder_outputs = _linear(
                model, self.encoder_outputs, self.scope("weighted_encoder_outputs"), width, width
            )
        if self._own == 2 and self.coverage_weights is None:
            self.coverage_weights = model.create_param(
                self.scope("coverage_weights"),
                [self.encoder_output_dim],
                Initializer("ConstantFill", value=1.0),
            )
        return self.decoder_cell.prepare_input(model, input_blob)

    def build_initial_coverage(self, model: ModelHelper) -> Any:
        """The coverage before the first step: zeros (1, N, S)."""
        net, name = model.net, self.scope("initial_coverage")
        one = net.Slice(self.encoder_outputs, f"{name}_like", starts=[0, 0, 0], ends=[-1, -1, 1])
        one = net.Transpose(one, f"{name}_transposed", axes=[2, 1, 0])
        return net.ConstantFill(one, name, value=0.0)

    def apply_override(
        self,
        model: ModelHelper,
        input_t: Any,
        seq_lengths: Any,
        states: States,
        timestep: Any,
        extra_inputs: Sequence[tuple[Any, int]] | None = None,
    ) -> States:
        decoder_before, context_before = states[: -self._own], states[-self._own]
        extra = [(context_before, self.encoder_output_dim), *(extra_inputs or ())]
        decoder = self.decoder_cell._apply(
            model, input_t, seq_lengths, decoder_before, timestep, extra
        )
        output = self.decoder_cell._prepare_output(model, decoder)
        common = (model, self.encoder_output_dim, self.encoder_outputs_transposed)
        state = (output, self.decoder_state_dim)
        scope = self.name or "attention"
        # Context, weights, blobs that can be computed again, and the coverage where there is one.
        found: tuple[Any, ...]
        if self.attention_type == AttentionType.SoftCoverage:
            found = apply_soft_coverage_attention(
                *common,
                self.weighted_encoder_outputs,
                *state,
                scope,
                self.encoder_lengths,
                states[-1],
                self.coverage_weights,
            )
        elif self.attention_type == AttentionType.Dot:
            found = apply_dot_attention(*common, *state, scope, self.encoder_lengths)
        elif self.attention_type == AttentionType.Recurrent:
            found = apply_recurrent_attention(
                *common,
                self.weighted_encoder_outputs,
                *state,
                context_before,
                scope,
                self.encoder_lengths,
            )
        else:
            found = apply_regular_attention(
                *common, self.weighted_encoder_outputs, *state, scope, self.encoder_lengths
            )
        context, self._weights, again, *coverage = found
        self.recompute_blobs = list(self.decoder_cell.recompute_blobs)
        if self.attention_memory_optimization:
            self.recompute_blobs += again
        # A state under a name of this cell: the decoder's output has a second use, above.
        decoder = list(decoder)
        index = self.decoder_cell.get_output_state_index()
        decoder[index] = model.net.Copy(decoder[index], self.scope("hidden_t_external"))
        return [*decoder, context, *coverage]

    def get_state_names(self) -> list[str]:
        names = list(self.decoder_cell.get_state_names())
        names[self.decoder_cell.get_output_state_index()] = self.scope("hidden_t_external")
        coverage = [self.scope("coverage_t")] if self._own == 2 else []
        return [*names, self.scope("attention_weighted_encoder_context_t"), *coverage]

    def get_output_dim(self) -> int:
        return self.decoder_state_dim + self.encoder_output_dim

    def get_output_state_index(self) -> int:
        return self.decoder_cell.get_output_state_index()

    def _joined(self, model: ModelHelper, output: Any, context: Any, name: str) -> Any:
        names = [self.scope(name), self.scope(f"_{name}_concat_dims")]
        return model.net.Concat([output, context], names, axis=2)[0]

    def _prepare_output(self, model: ModelHelper, states: States) -> Any:
        output = self.decoder_cell._prepare_output(model, states[: -self._own])
        return self._joined(model, output, states[-self._own], "state_and_context_combination")

    def _prepare_output_sequence(self, model: ModelHelper, states: States) -> Any:
        own = 2 * self._own  # all values and the last one of each
        output = self.decoder_cell._prepare_output_sequence(model, states[:-own])
        return self._joined(model, output, states[-own], "states_and_context_combination")


class LSTMWithAttentionCell(AttentionCell):
    """An LSTM decoder with attention."""

    decoder_class: type[LSTMCell] = LSTMCell

    def __init__(
        self,
        encoder_output_dim: int,
        encoder_outputs: Any,
        encoder_lengths: Any,
        decoder_input_dim: int,
        decoder_state_dim: int,
        name: str,
        attention_type: int,
        weighted_encoder_outputs: Any,
        forget_bias: float,
        lstm_memory_optimization: bool,
        attention_memory_optimization: bool,
        forward_only: bool = False,
    ) -> None:
        decoder = self.decoder_class(
            input_size=decoder_input_dim,
            hidden_size=decoder_state_dim,
            forget_bias=forget_bias,
            memory_optimization=lstm_memory_optimization,
            name=f"{name}/decoder",
            forward_only=False,
            drop_states=False,
        )
        super().__init__(
            encoder_output_dim=encoder_output_dim,
            encoder_outputs=encoder_outputs,
            encoder_lengths=encoder_lengths,
            decoder_cell=decoder,
            decoder_state_dim=decoder_state_dim,
            name=name,
            attention_type=attention_type,
            weighted_encoder_outputs=weighted_encoder_outputs,
            attention_memory_optimization=attention_memory_optimization,
            forward_only=forward_only,
        )


class MILSTMWithAttentionCell(LSTMWithAttentionCell):
    """The same with multiplicative integration, for encoders whose sequences have one length."""

    decoder_class = MILSTMCell

    def __init__(
        self, encoder_output_dim: int, encoder_outputs: Any, *args: Any, **kwargs: Any
    ) -> None:
        super().__init__(encoder_output_dim, encoder_outputs, None, *args, **kwargs)


def LSTMWithAttention(
    model: ModelHelper,
    decoder_inputs: Any,
    decoder_input_lengths: Any,
    initial_decoder_hidden_state: Any,
    initial_decoder_cell_state: Any,
    initial_attention_weighted_encoder_context: Any,
    encoder_output_dim: int,
    encoder_outputs: Any,
    encoder_lengths: Any,
    decoder_input_dim: int,
    decoder_state_dim: int,
    scope: str,
    attention_type: int = AttentionType.Regular,
    outputs_with_grads: Sequence[int] = (0, 4),
    weighted_encoder_outputs: Any = None,
    lstm_memory_optimization: bool = False,
    attention_memory_optimization: bool = False,
    forget_bias: float = 0.0,
    forward_only: bool = False,
) -> tuple[Any, ...]:
    """Adds an LSTM decoder with attention.

    decoder_inputs: (T, N, decoder_input_dim).  encoder_outputs: (S, N, encoder_output_dim), whose
    lengths are encoder_lengths, int32 (N), or None.  weighted_encoder_outputs: a linear layer on
    them, which is added when it is not given.

    Gives all values and the last one of hidden state, cell state, context and, with SoftCoverage,
    coverage.
    """
    cell = LSTMWithAttentionCell(
        encoder_output_dim=encoder_output_dim,
        encoder_outputs=encoder_outputs,
        encoder_lengths=encoder_lengths,
        decoder_input_dim=decoder_input_dim,
        decoder_state_dim=decoder_state_dim,
        name=scope,
        attention_type=attention_type,
        weighted_encoder_outputs=weighted_encoder_outputs,
        forget_bias=forget_bias,
        lstm_memory_optimization=lstm_memory_optimization,
        attention_memory_optimization=attention_memory_optimization,
        forward_only=forward_only,
    )
    initial: tuple[Any, ...] = (
        initial_decoder_hidden_state,
        initial_decoder_cell_state,
        initial_attention_weighted_encoder_context,
    )
    if attention_type == AttentionType.SoftCoverage:
        initial = (*initial, cell.build_initial_coverage(model))
    _, results = cell.apply_over_sequence(
        model, decoder_inputs, decoder_input_lengths, initial, outputs_with_grads
    )
    return results
