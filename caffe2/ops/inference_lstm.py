# mypy: disable-error-code="misc, no-any-return"
"""Layers of LSTM units over whole sequences, forward alone."""

from __future__ import annotations

import numpy as np

from caffe2.ops.arguments import Bool, Int, OperatorError
from caffe2.ops.datatypes import FLOAT
from caffe2.ops.declaration import NO_GRADIENT, Array, OpView, Spec, operator
from caffe2.ops.shapes import require_rank


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


@operator(
    "InferenceLSTM",
    inputs="X hidden_0 cell_0 weights*",
    outputs="output hidden cell",
    args={
        "num_layers": Int(1, min=1),
        "has_biases": Bool(False),
        "batch_first": Bool(False),
        "bidirectional": Bool(False),
    },
    types={"X": FLOAT, "hidden_0": FLOAT, "cell_0": FLOAT, "weights": FLOAT},
)
class InferenceLSTM:
    """num_layers layers of LSTM units (Hochreiter and Schmidhuber, 1997; Gers et al., 2000), each
    of which reads the sequence that the one before has given.

        i, f, g, o = W_x x_t + b_x + W_h h_(t - 1) + b_h
        c_t = sigmoid(f) * c_(t - 1) + sigmoid(i) * tanh(g)
        h_t = sigmoid(o) * tanh(c_t)

    X: float (T, N, features), with batch_first (N, T, features).
    hidden_0, cell_0: float (num_layers * D, N, H); D is 2 with bidirectional, where every layer
    also reads from the end, else 1.  hidden, cell: the last states, with the same shape.
    weights: for each layer, and for each direction in it, W_x (4 H, its features), W_h (4 H, H)
    and with has_biases b_x (4 H,) and b_h (4 H,).
    output: float (T, N, D * H), with batch_first (N, T, D * H): h_t of the last layer.
    """

    gradient = NO_GRADIENT

    def shape(
        X: Spec, hidden_0: Spec, cell_0: Spec, *weights: Spec, op: OpView
    ) -> tuple[Spec, Spec, Spec]:
        args = op.args
        directions, each = 1 + args.bidirectional, 2 + 2 * args.has_biases
        cells = args.num_layers * directions
        if len(weights) != cells * each:
            problem = f"has {len(op.inputs)} inputs; {args.num_layers} layers of {directions}"
            raise OperatorError("", f"{problem} direction(s) have 3 and {each} each")
        require_rank("X", X, 3)
        require_rank("hidden_0", hidden_0, 3)
        batch, units = X.shape[0 if args.batch_first else 1], hidden_0.shape[2]
        for name, spec in (("hidden_0", hidden_0), ("cell_0", cell_0)):
            _require(name, spec, (cells, batch, units))
        for k in range(cells):
            taken = X.shape[2] if k < directions else directions * units
            shapes = ((4 * units, taken), (4 * units, units), (4 * units,), (4 * units,))
            for i in range(each):
                index = k * each + i
                name = f"input {3 + index} ('{op.input(3 + index)}')"
                _require(name, weights[index], shapes[i])
        return Spec((*X.shape[:2], directions * units), X.dtype), hidden_0, cell_0

    def reference(
        X: Array, hidden_0: Array, cell_0: Array, *weights: Array, op: OpView
    ) -> tuple[Array, Array, Array]:
        args = op.args
        directions, each = 1 + args.bidirectional, 2 + 2 * args.has_biases
        x = (X.swapaxes(0, 1) if args.batch_first else X).astype(np.float64)
        hidden, cell = hidden_0.astype(np.float64), cell_0.astype(np.float64)
        for layer in range(args.num_layers):
            found = []
            for direction in range(directions):
                k = layer * directions + direction
                w_x, w_h, *biases = weights[k * each : (k + 1) * each]
                sequence = x[::-1] if direction else x
                outputs = np.zeros((*x.shape[:2], hidden.shape[2]))
                for t, x_t in enumerate(sequence):
                    gates = x_t @ w_x.T + hidden[k] @ w_h.T + sum(biases)
                    i, f, g, o = np.split(gates, 4, axis=1)
                    cell[k] = _sigmoid(f) * cell[k] + _sigmoid(i) * np.tanh(g)
                    outputs[t] = hidden[k] = _sigmoid(o) * np.tanh(cell[k])
                found.append(outputs[::-1] if direction else outputs)
            x = np.concatenate(found, axis=2)
        y = x.swapaxes(0, 1) if args.batch_first else x
        return y.astype(X.dtype), hidden.astype(X.dtype), cell.astype(X.dtype)


def _require(name: str, spec: Spec, shape: tuple[int, ...]) -> None:
    if spec.shape != shape:
        raise OperatorError(name, f"has shape {spec.shape}; {shape} is needed")
