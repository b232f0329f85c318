# mypy: disable-error-code="misc, no-any-return"
"""Adagrad fused with the gradient of a sum over segments of rows: the gradient of each row is never
written out."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import Float, Int, OperatorError
from caffe2.ops.datatypes import FLOAT, INT32, INTS
from caffe2.ops.declaration import Array, OpView, Spec, operator
from caffe2.ops.shapes import require_rank, require_same_shape, require_single, size
from caffe2.ops.updates import check_rows, like, mean_square, numbers, require_row_values, wide

_ARGS = {
    "epsilon": Float(1e-5, min=0),
    "weight_decay": Float(0.0),
    "block_size": Int(0, min=0),
}


def _is(op: OpView, word: str) -> bool:
    return word in op.type


class _Fused:
    """One step of Adagrad for the rows that {sum} has read, straight from the gradient of its
    output.

    For each index of segment s, one after the other, with row = indices[k]{weight}:
    g = {g} + weight_decay * param[row]
    moment[row] += {square}
    param[row]  += lr / (sqrt(moment[row]) + epsilon) * g

    param: float, rows, and moment: float, {moment}; changed in place.
    indices: int32 or int64 (n,).  grad: float (segments, columns...).
    lr: float with one element, negative to go down.
    lengths: int32 (segments,), the indices of each; they sum to n.{aux}
    block_size: without effect here.
    """

    def shape(
        param: Spec,
        moment: Spec,
        indices: Spec,
        grad: Spec,
        lr: Spec,
        lengths: Spec,
        op: OpView,
    ) -> tuple[Spec, ...]:
        return _shape(_named(op, param, moment, indices, grad, lr, lengths), op)

    def reference(
        param: Array,
        moment: Array,
        indices: Array,
        grad: Array,
        lr: Array,
        lengths: Array,
        op: OpView,
    ) -> tuple[Array, ...]:
        return _step(_named(op, param, moment, indices, grad, lr, lengths), op)


class _Weighted:
    def shape(
        param: Spec,
        moment: Spec,
        aux_param: Spec,
        indices: Spec,
        grad: Spec,
        lr: Spec,
        lengths: Spec,
        op: OpView,
    ) -> tuple[Spec, ...]:
        return _shape(_named(op, param, moment, aux_param, indices, grad, lr, lengths), op)

    def reference(
        param: Array,
        moment: Array,
        aux_param: Array,
        indices: Array,
        grad: Array,
        lr: Array,
        lengths: Array,
        op: OpView,
    ) -> tuple[Array, ...]:
        return _step(_named(op, param, moment, aux_param, indices, grad, lr, lengths), op)


def _named(op: OpView, *inputs: Any) -> dict[str, Any]:
    return dict(zip(op.declaration.inputs.names, inputs, strict=True))


def _shape(named: dict[str, Spec], op: OpView) -> tuple[Spec, ...]:
    param, grad, lengths = named["param"], named["grad"], named["lengths"]
    if not param.shape:
        raise OperatorError("param", "is a scalar; rows are needed")
    if _is(op, "RowWise"):
        require_row_values("moment", named["moment"], param)
    else:
        require_same_shape("moment", named["moment"], "param", param)
    require_rank("indices", named["indices"], 1)
    require_rank("lengths", lengths, 1)
    require_single("lr", named["lr"])
    if grad.shape != (*lengths.shape, *param.shape[1:]):
        needed = (*lengths.shape, *param.shape[1:])
        raise OperatorError("grad", f"has shape {grad.shape}; {needed} is needed")
    if "aux_param" not in named:
        return param, named["moment"]
    if size(named["aux_param"]) != size(named["indices"]):
        problem = f"has shape {named['aux_param'].shape}; indices {named['indices'].shape}"
        raise OperatorError("aux_param", problem)
    return param, named["moment"], named["aux_param"]


def _step(named: dict[str, Array], op: OpView) -> tuple[Array, ...]:
    param, moment, indices = named["param"], named["moment"], named["indices"]
    lengths = named["lengths"]
    epsilon, decay = numbers(op.args, "epsilon", "weight_decay")
    check_rows(indices, param.shape[0])
    if (lengths < 0).any() or lengths.sum(dtype=np.int64) != indices.size:
        problem = f"sums to {lengths.sum()}; there are {indices.size} indices"
        raise OperatorError("lengths", problem)
    p, h, gradients = wide(param, moment, named["grad"])
    aux = named.get("aux_param")
    aux_grad = None if aux is None else np.zeros(aux.size)
    h = h.reshape(-1) if _is(op, "RowWise") else h.reshape(p.shape)
    rate, before = float(named["lr"].reshape(())), p.copy()
    rows = indices.tolist()
    segments = np.repeat(np.arange(lengths.size), lengths).tolist()
    for k, (row, segment) in enumerate(zip(rows, segments, strict=True)):
        g = gradients[segment]
        if aux is not None and aux_grad is not None:
            seen = p if _is(op, "Approx") else before
            aux_grad[k] = np.sum(seen[row] * g)
            g = g * float(aux.reshape(-1)[k])
        if _is(op, "Mean"):
            g = g / int(lengths[segment])
        g = g + decay * p[row]
        h[row] += mean_square(g) if _is(op, "RowWise") else g * g
        with np.errstate(divide="ignore", invalid="ignore"):
            p[row] += rate / (np.sqrt(h[row]) + epsilon) * g
    found = (like(p, param), like(h, moment))
    return found if aux is None or aux_grad is None else (*found, like(aux_grad, aux))


_TYPES = {
    **dict.fromkeys(("param", "moment", "grad", "lr", "aux_param"), FLOAT),
    "indices": INTS,
    "lengths": INT32,
}


def _declare(row_wise: bool, kind: str, approximate: bool) -> None:
    weighted = kind == "WeightedSum"
    words = {
        "sum": f"SparseLengths{kind}",
        "weight": " and w = aux_param[k]" if weighted else "",
        "g": {"Sum": "grad[s]", "Mean": "grad[s] / lengths[s]"}.get(kind, "w * grad[s]"),
        "square": "mean(g^2)" if row_wise else "g^2",
        "moment": "one for each row" if row_wise else "shaped as param",
        "aux": "",
    }
    if weighted:
        seen = "as it is when the index comes" if approximate else "as it was before"
        words["aux"] = f"""
    aux_param: float (n,), a weight for each index (the original takes those of the first segment
    for all segments).  aux_grad: float (n,), its gradient, sum(param[row] * grad[s]), with param
    {seen}."""
    name = f"SparseAdagradFusedWithSparseLengths{kind}Gradient{'Approx' if approximate else ''}"
    name = f"RowWise{name}" if row_wise else name
    doc = (_Fused.__doc__ or "").format(**words)
    body = type(name, (), {**vars(_Weighted if weighted else _Fused), "__doc__": doc})
    inputs = f"param moment {'aux_param ' if weighted else ''}indices grad lr lengths"
    operator(
        name,
        inputs=inputs,
        outputs="output_param output_moment" + (" aux_grad" if weighted else ""),
        args=_ARGS,
        types={key: types for key, types in _TYPES.items() if key in inputs.split()},
        enforced_inplace=[(0, 0), (1, 1)],
        kind="stateful",
    )(body)


for _row_wise in (False, True):
    for _sum in ("Sum", "Mean", "WeightedSum"):
        for _approximate in (False, True):
            _declare(_row_wise, _sum, _approximate)
