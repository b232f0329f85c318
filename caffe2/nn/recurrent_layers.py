"""Layers over sequences: LSTM, GRU and others, ready to use, and their cells unrolled."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from caffe2.graph.blob import BlobReference, ScopedBlobReference
from caffe2.graph.errors import UsageError
from caffe2.graph.scope import CurrentNameScope
from caffe2.nn.model_helper import ModelHelper
from caffe2.nn.recurrent_cells import (
    BasicRNNCell,
    GRUCell,
    LayerNormLSTMCell,
    LayerNormMILSTMCell,
    LSTMCell,
    MILSTMCell,
    RNNCell,
    States,
)
from caffe2.nn.recurrent_stacks import MultiRNNCell


class UnrolledCell(RNNCell):
    """A cell as T copies of its step, without the operator RecurrentNetwork; sequences have T
    steps."""

    def __init__(self, cell: RNNCell, T: int) -> None:
        super().__init__(cell.name, cell.forward_only, cell.initializer)
        self.cell = cell
        self.T = T

    def apply_over_sequence(
        self,
        model: ModelHelper,
        inputs: Any,
        seq_lengths: Any = None,
        initial_states: States | None = None,
        outputs_with_grads: Sequence[int] | None = None,
    ) -> tuple[Any, tuple[Any, ...]]:
        cell, net = self.cell, model.net
        if initial_states is None:
            raise UsageError("an unrolled cell needs initial states")
        prepared = cell.prepare_input(model, inputs)
        names = [BlobReference(f"{prepared}_timestep_{t}") for t in range(self.T)]
        pieces = net.Split(prepared, names, axis=0)
        pieces = pieces if isinstance(pieces, tuple) else (pieces,)
        step = ModelHelper(name=self.name or "rnn", param_model=model)
        input_t, timestep = step.net.AddScopedExternalInputs("input_t", "timestep")
        before = [ScopedBlobReference(f"{name}_prev") for name in cell.get_state_names()]
        after = cell._apply(step, input_t, seq_lengths, before, timestep)
        states, history = list(initial_states), []
        for t, piece in enumerate(pieces):
            time = model.param_init_net.ConstantFill(
                [], _in_step("timestep", t), shape=[1], value=t, dtype=2
            )
            known = {str(input_t): str(piece), str(timestep): str(time)}
            known.update(zip(map(str, before), map(str, states), strict=True))
            for op in step.net.Proto().op:
                copy = type(op)()
                copy.CopyFrom(op)
                copy.input[:] = [known.get(name, name) for name in op.input]
                known.update({name: str(_in_step(_unscoped(name), t)) for name in op.output})
                copy.output[:] = [known[name] for name in op.output]
                net.extend_ops([copy])
            states = [BlobReference(known[str(blob)], net) for blob in after]
            history.append(states)
        results: list[Any] = []
        for blob, *steps in zip(after, *history, strict=True):
            joined = [BlobReference(f"{blob}_concat"), BlobReference(f"{blob}_concat_info")]
            results += [net.Concat(steps, joined, axis=0)[0], steps[-1]]
        wanted = outputs_with_grads
        if wanted is None:
            wanted = [2 * cell.get_output_state_index()]
        for index, result in enumerate(results):
            if index not in wanted:
                net.ZeroGradient(result, [])
        return cell._prepare_output_sequence(model, results), tuple(results)


def _unscoped(name: str) -> str:
    return name.removeprefix(CurrentNameScope())


def _in_step(name: str, t: int) -> BlobReference:
    return ScopedBlobReference(f"timestep_{t}/{name}")


def _here(blobs: Any) -> Any:
    """Names, alone or in a list, as blobs of the current scope: the scopes of cells add nothing."""
    if isinstance(blobs, str):
        return ScopedBlobReference(blobs)
    return [_here(blob) for blob in blobs] if isinstance(blobs, (list, tuple)) else blobs


def _layer(
    cell_class: type[RNNCell],
    model: ModelHelper,
    input_blob: Any,
    seq_lengths: Any,
    initial_states: States | None,
    dim_in: int,
    dim_out: int | Sequence[int],
    scope: str | None = None,
    outputs_with_grads: Sequence[int] = (0,),
    return_params: bool = False,
    memory_optimization: bool = False,
    forget_bias: float = 0.0,
    forward_only: bool = False,
    drop_states: bool = False,
    return_last_layer_only: bool = True,
    static_rnn_unroll_size: int | None = None,
    **cell_kwargs: Any,
) -> tuple[Any, ...]:
    """Adds a recurrent layer, or several on top of each other.

    input_blob              (T, N, dim_in)
    seq_lengths             int32 (N): the states of a sequence that is over stay; or None
    initial_states          the states of each layer, e.g. hidden and cell: (N, D), (1, N, D) or
                            (D); None: parameters, where the cell has such
    dim_out                 width of the layer, or of each layer
    scope                   first part of the names
    outputs_with_grads      which results of the last layer gradients come for
    return_params           gives the names of the parameters as well, in a dict
    memory_optimization     the gates are computed again for the gradient instead of kept
    forget_bias             added to the forget gate
    forward_only            no gradient is wanted
    drop_states             the states of a sequence that is over become 0
    return_last_layer_only  gives the states of the last layer alone
    static_rnn_unroll_size  T, for as many copies of the step instead of one operator

    Gives, for each state, all values (T, N, D) and the last one (1, N, D).
    """
    sizes = list(dim_out) if isinstance(dim_out, (list, tuple)) else [dim_out]
    several = len(sizes) > 1
    cells: list[RNNCell] = []
    for wide, high in zip([dim_in, *sizes], sizes, strict=False):
        name = None if several else scope
        cells.append(
            cell_class(  # type: ignore[call-arg]
                input_size=wide,
                hidden_size=high,
                forget_bias=forget_bias,
                memory_optimization=memory_optimization,
                name=name,
                forward_only=forward_only,
                drop_states=drop_states,
                **cell_kwargs,
            )
        )
    cell = cells[0]
    if several:
        cell = MultiRNNCell(cells, name=scope, forward_only=forward_only)
    per_layer = 2 * len(cells[0].get_state_names())
    skipped = per_layer * (len(cells) - 1)
    if static_rnn_unroll_size is not None:
        cell = UnrolledCell(cell, static_rnn_unroll_size)
    _, results = cell.apply_over_sequence(
        model,
        _here(input_blob),
        _here(seq_lengths),
        _here(initial_states),
        outputs_with_grads=[skipped + index for index in outputs_with_grads],
    )
    found = tuple(results[skipped:] if return_last_layer_only else results)
    if return_params:
        parameters = {
            "input": cells[0].get_input_params(),  # type: ignore[attr-defined]
            "recurrent": cells[0].get_recurrent_params(),  # type: ignore[attr-defined]
        }
        return (*found, parameters)
    return found


LSTM = partial(_layer, LSTMCell)
BasicRNN = partial(_layer, BasicRNNCell)
MILSTM = partial(_layer, MILSTMCell)
LayerNormLSTM = partial(_layer, LayerNormLSTMCell)
LayerNormMILSTM = partial(_layer, LayerNormMILSTMCell)
GRU = partial(_layer, GRUCell)


def layered_LSTM(
    model: ModelHelper,
    input_blob: Any,
    seq_lengths: Any,
    initial_states: States | None,
    dim_in: int,
    dim_out: Sequence[int],
    scope: str | None,
    outputs_with_grads: Sequence[int] = (0,),
    **kwargs: Any,
) -> tuple[Any, ...]:
    """Several LSTM layers; see `LSTM`."""
    return LSTM(
        model,
        input_blob,
        seq_lengths,
        initial_states,
        dim_in,
        dim_out,
        scope,
        outputs_with_grads,
        **kwargs,
    )


_GATES = ("input_gate", "forget_gate", "output_gate", "cell")


def GetLSTMParamNames() -> dict[str, list[str]]:
    """The names of the parts of an LSTM's parameters, in the order of the gates."""
    return {kind: [f"{gate}_{kind[0]}" for gate in _GATES] for kind in ("weights", "biases")}


def InitFromLSTMParams(lstm_pblobs: Any, param_values: Any) -> None:
    """Feeds the parameters of an LSTM (what `return_params` gave) from the values of each gate.

    param_values: {"input": {"input_gate_w": array, ..., "cell_b": array}, "recurrent": ...}
    """
    import numpy as np

    from caffe2.runtime import workspace

    for part, values in param_values.items():
        for kind, names in GetLSTMParamNames().items():
            arrays = [np.asarray(values[name], np.float32) for name in names]
            workspace.FeedBlob(lstm_pblobs[part][kind], np.concatenate(arrays, axis=0))
