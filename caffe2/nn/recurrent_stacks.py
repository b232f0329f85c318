"""Cells made of cells: layers on top of each other, and dropout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from caffe2.graph.blob import BlobReference
from caffe2.graph.errors import UsageError
from caffe2.graph.scope import NameScope
from caffe2.nn.model_helper import ModelHelper
from caffe2.nn.recurrent_cells import RNNCell, States, scoped


class DropoutCell(RNNCell):
    """A cell whose output, not its states, has dropout (Zaremba, Sutskever, Vinyals, 2014)."""

    def __init__(
        self,
        internal_cell: RNNCell,
        dropout_ratio: float | None = None,
        use_cudnn: bool = False,
        is_test: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.internal_cell = internal_cell
        self.dropout_ratio = dropout_ratio
        self.is_test = is_test
        self.initializer = self.initializer or internal_cell.initializer
        self._masks = 0
        self.prepare_input = internal_cell.prepare_input  # type: ignore[method-assign]
        self.get_state_names = internal_cell.get_state_names  # type: ignore[method-assign]
        self.get_output_state_index = (  # type: ignore[method-assign]
            internal_cell.get_output_state_index
        )
        self.get_output_dim = internal_cell.get_output_dim  # type: ignore[method-assign]

    def _apply(self, *args: Any, **kwargs: Any) -> States:
        states = self.internal_cell._apply(*args, **kwargs)
        self.recompute_blobs = self.internal_cell.recompute_blobs
        return states

    def _prepare_output(self, model: ModelHelper, states: States) -> Any:
        return self._dropout(model, self.internal_cell._prepare_output(model, states))

    def _prepare_output_sequence(self, model: ModelHelper, states: States) -> Any:
        return self._dropout(model, self.internal_cell._prepare_output_sequence(model, states))

    def _dropout(self, model: ModelHelper, output: Any) -> Any:
        if self.dropout_ratio is None or self.forward_only:
            return output
        name = f"{output}_with_dropout_mask_{self._masks}"
        self._masks += 1
        dropped, _ = model.net.Dropout(
            output,
            [BlobReference(name), BlobReference(f"{name}_mask")],
            ratio=float(self.dropout_ratio),
            is_test=int(self.is_test),
        )
        return dropped


class MultiRNNCellInitializer:
    """The initial states of all layers, by the initializers of their cells."""

    def __init__(self, cells: Sequence[RNNCell]) -> None:
        self.cells = cells

    def create_states(self, model: ModelHelper) -> list[Any]:
        states: list[Any] = []
        for index, cell in enumerate(self.cells):
            if cell.initializer is None:
                raise UsageError("Either initial states or initializer have to be set")
            with NameScope(f"layer_{index}"), scoped(cell.name):
                states.extend(cell.initializer.create_states(model))
        return states


class MultiRNNCell(RNNCell):
    """Layers of cells, the output of each the input of the next.

    residual_output_layers: indices of layers to whose output that of the layer below is added.
    The states are those of the first cell, then those of the second, ...
    """

    def __init__(
        self,
        cells: Sequence[RNNCell],
        residual_output_layers: Iterable[int] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.cells = list(cells)
        self.residual_output_layers = set(residual_output_layers or ())
        wrong = [k for k in self.residual_output_layers if not 0 < k < len(self.cells)]
        if wrong:
            raise UsageError(f"there is no layer below layers {wrong}; residual ones need it")
        self.initializer = self.initializer or MultiRNNCellInitializer(self.cells)
        self.state_counts = [len(cell.get_state_names()) for cell in self.cells]

    @contextmanager
    def layer_scoper(self, layer_id: int) -> Iterator[None]:
        """The NameScope of the blobs of a layer."""
        with NameScope(self._layer_name(layer_id)):
            yield

    def _layer_name(self, layer_id: int) -> str:
        return self.scope(f"layer_{layer_id}")

    def prepare_input(self, model: ModelHelper, input_blob: Any) -> Any:
        with scoped(self.name):
            return self.cells[0].prepare_input(model, input_blob)

    def _apply(
        self,
        model: ModelHelper,
        input_t: Any,
        seq_lengths: Any,
        states: States,
        timestep: Any,
        extra_inputs: Sequence[tuple[Any, int]] | None = None,
    ) -> States:
        found: list[Any] = []
        output: Any = None
        for index, (cell, layer_states) in enumerate(
            zip(self.cells, self._by_layer(states), strict=True)
        ):
            with self.layer_scoper(index):
                if index > 0:
                    input_t = cell.prepare_input(model, output)
                extra = extra_inputs if index == 0 else None
                new = cell._apply(model, input_t, seq_lengths, layer_states, timestep, extra)
                found.extend(new)
                if index == len(self.cells) - 1:
                    break
                below, output = output, cell._prepare_output(model, new)
                if index in self.residual_output_layers:
                    output = model.net.Sum([output, below], self.scope(f"residual_output_{index}"))
        self.recompute_blobs = [blob for cell in self.cells for blob in cell.recompute_blobs]
        return found

    def _by_layer(self, states: States, each: int = 1) -> list[States]:
        """The states of each layer, `each` blobs for every one."""
        layers, first = [], 0
        for count in self.state_counts:
            layers.append(states[first : first + each * count])
            first += each * count
        return layers

    def get_state_names(self) -> list[str]:
        return [
            f"{self._layer_name(index)}/{name}"
            for index, cell in enumerate(self.cells)
            for name in cell.get_state_names()
        ]

    def get_output_state_index(self) -> int:
        return sum(self.state_counts[:-1]) + self.cells[-1].get_output_state_index()

    @property
    def output_indices(self) -> list[int]:
        """The states of which the output is made: of the last layer, and of those below it whose
        output is added."""
        return [
            sum(self.state_counts[:k]) + self.cells[k].get_output_state_index()
            for k in range(self._first_of_output(), len(self.cells))
        ]

    def _first_of_output(self) -> int:
        first = len(self.cells) - 1
        while first in self.residual_output_layers:
            first -= 1
        return first

    def get_output_dim(self) -> int:
        return self.cells[-1].get_output_dim()

    def _prepare_output(self, model: ModelHelper, states: States) -> Any:
        layers = self._by_layer(states)
        return self._with_residual(model, layers, "_prepare_output", "residual_output")

    def _prepare_output_sequence(self, model: ModelHelper, states: States) -> Any:
        layers = self._by_layer(states, 2)
        return self._with_residual(
            model, layers, "_prepare_output_sequence", "residual_output_sequence"
        )

    def _with_residual(
        self, model: ModelHelper, layers: list[States], prepare: str, name: str
    ) -> Any:
        last = len(self.cells) - 1
        output = getattr(self.cells[last], prepare)(model, layers[last])
        first = self._first_of_output()
        if first == last:
            return output
        below = [getattr(self.cells[k], prepare)(model, layers[k]) for k in range(first, last)]
        return model.net.Sum([*below, output], self.scope(name))
