# mypy: disable-error-code="misc, no-any-return"
"""Rows normalized or written in place, and values decoded from codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import INT64_MAX, Bool, Float, Ints, OperatorError
from caffe2.ops.datatypes import FLOAT, FLOAT16, INT32, INT64, INTS, NUMBERS, UINT8
from caffe2.ops.declaration import (
    SHOULD_NOT_DO_GRADIENT,
    Array,
    GradientContext,
    OpView,
    Spec,
    operator,
    same_as,
)
from caffe2.ops.shapes import require_rank, size
from caffe2.ops.updates import check_rows


class _SparseNormalize:
    """Scales rows of param to a norm, in place.

    param: {kind}, rows; indices: int32 or int64, any shape, its rows; grad: not used.
    norm: what the L2 norm of these rows becomes; with use_max_norm only where it is larger.
    A row of zeros stays.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(param: Spec, indices: Spec, grad: Any) -> Spec:
        if not param.shape:
            raise OperatorError("param", "is a scalar, which has no rows")
        return param

    def reference(param: Array, indices: Array, grad: Any, op: OpView) -> Array:
        check_rows(indices, param.shape[0])
        found = param.copy()
        norm = float(np.float32(op.args.norm))
        for row in np.unique(indices):
            length = float(np.sqrt(np.sum(param[row].astype(np.float64) ** 2)))
            if length > norm or (not op.args.use_max_norm and length > 0):
                found[row] = (param[row].astype(np.float64) * (norm / length)).astype(param.dtype)
        return found


for _name, _types, _kind in (
    ("SparseNormalize", FLOAT, "float"),
    ("Float16SparseNormalize", FLOAT16, "float16"),
):
    operator(
        _name,
        inputs="param indices grad?",
        outputs="output_param",
        args={"use_max_norm": Bool(True), "norm": Float(1.0, min=0)},
        types={"param": _types, "indices": INTS},
        enforced_inplace=[(0, 0)],
        kind="stateful",
    )(
        type(
            _name,
            (),
            {
                **vars(_SparseNormalize),
                "__doc__": (_SparseNormalize.__doc__ or "").format(kind=_kind),
            },
        )
    )


@operator(
    "CopyRowsToTensor",
    inputs="input_tensor indices row",
    outputs="output_tensor",
    types={"input_tensor": NUMBERS, "indices": INT64},
    enforced_inplace=[(0, 0)],
    kind="stateful",
)
class CopyRowsToTensor:
    """Writes one row to several places of a tensor, in place.

    input_tensor: numbers of any type (rows, columns).  indices: int64 (n,), rows.
    row: of the type of input_tensor, (columns,).
    """

    def shape(input_tensor: Spec, indices: Spec, row: Spec) -> Spec:
        require_rank("input_tensor", input_tensor, 2)
        require_rank("indices", indices, 1)
        if row.shape != input_tensor.shape[1:] or row.dtype != input_tensor.dtype:
            problem = f"is {row.dtype} of shape {row.shape}; input_tensor is {input_tensor.dtype}"
            raise OperatorError("row", f"{problem} of shape {input_tensor.shape}")
        return input_tensor

    def reference(input_tensor: Array, indices: Array, row: Array) -> Array:
        check_rows(indices, len(input_tensor))
        found = input_tensor.copy()
        found[indices] = row
        return found

    def gradient(op: GradientContext) -> Any:
        return op.make("CopyRowsToTensorGradient", [op.grad(0)], [op.input_grad(0)])


@operator(
    "CopyRowsToTensorGradient",
    inputs="output_grad",
    outputs="input_grad",
    inplace=[(0, 0)],
    shape=same_as("output_grad"),
)
class CopyRowsToTensorGradient:
    """input_grad = output_grad, of all rows, as the original has it.

    output_grad, input_grad: tensors of one shape and type.
    """

    def reference(output_grad: Array) -> Array:
        return output_grad.copy()


@operator(
    "QuantDecode",
    inputs="codebook codes*",
    outputs="decoded*",
    types={"codebook": FLOAT, "codes": UINT8 | INT32},
)
class QuantDecode:
    """decoded = codebook[codes], for as many tensors of codes as there are.

    codebook: float (n,).  codes: uint8 or int32, any shapes.  decoded: float, shaped as the codes.
    """

    def shape(codebook: Spec, *codes: Spec, op: OpView) -> tuple[Spec, ...]:
        require_rank("codebook", codebook, 1)
        if len(op.outputs) != len(codes):
            raise OperatorError("", f"has {len(op.outputs)} outputs for {len(codes)} codes")
        return tuple(Spec(each.shape, codebook.dtype) for each in codes)

    def reference(codebook: Array, *codes: Array) -> tuple[Array, ...]:
        for each in codes:
            _check_codes(each, codebook.size)
        return tuple(codebook[each] for each in codes)

    def gradient(op: GradientContext) -> Any:
        grads = [op.grad(k) for k in range(len(op.outputs))]
        return op.make("QuantDecodeGradient", [*op.inputs, *grads], [op.input_grad(0)])


def _check_codes(codes: Array, count: int) -> None:
    wrong = codes[(codes < 0) | (codes >= count)]
    if wrong.size:
        raise OperatorError("codes", f"holds {wrong.reshape(-1)[0]}; codebook has {count} values")


@operator(
    "QuantDecodeGradient",
    inputs="codebook codes_or_grads*",
    outputs="codebook_grad",
    types={"codebook": FLOAT, "codes_or_grads": UINT8 | INT32 | FLOAT},
)
class QuantDecodeGradient:
    """codebook_grad[k] = the sum of the gradients of all that was decoded from code k.

    codebook: float (n,).  The other inputs: all codes, then as many gradients, shaped as they are.
    """

    def shape(codebook: Spec, *codes_or_grads: Spec, op: OpView) -> Spec:
        require_rank("codebook", codebook, 1)
        count = len(codes_or_grads) // 2
        if not count or len(codes_or_grads) != 2 * count:
            raise OperatorError("", f"has {len(op.inputs)} inputs; codes and gradients are needed")
        for k in range(count):
            codes, grad = codes_or_grads[k], codes_or_grads[count + k]
            name = f"input {1 + count + k} ('{op.input(1 + count + k)}')"
            if codes.dtype not in UINT8 | INT32 or grad.dtype not in FLOAT:
                raise OperatorError(name, f"is {grad.dtype}, for codes of type {codes.dtype}")
            if codes.shape != grad.shape:
                raise OperatorError(name, f"has shape {grad.shape}; the codes have {codes.shape}")
        return codebook

    def reference(codebook: Array, *codes_or_grads: Array) -> Array:
        count = len(codes_or_grads) // 2
        found = np.zeros(codebook.shape)
        for codes in codes_or_grads[:count]:
            _check_codes(codes, codebook.size)
        for codes, grad in zip(codes_or_grads[:count], codes_or_grads[count:], strict=True):
            np.add.at(found, codes.reshape(-1), grad.reshape(-1).astype(np.float64))
        return found.astype(codebook.dtype)


@operator(
    "ByteWeightDequant",
    inputs="WI",
    outputs="WO",
    args={
        "min": Float(-3.0),
        "max": Float(3.0),
        "shape": Ints(min=0, max=INT64_MAX, required=True),
    },
    types={"WI": UINT8},
)
class ByteWeightDequant:
    """WO = WI / 255 * (max - min) + min.

    WI: uint8.  shape: that of WO, with as many elements.  WO: float.
    """

    def shape(WI: Spec, op: OpView) -> Spec:
        found = Spec(tuple(op.args.shape), np.dtype(np.float32))
        if size(found) != size(WI):
            problem = f"is {op.args.shape}; WI has shape {WI.shape}"
            raise OperatorError("argument 'shape'", problem)
        return found

    def reference(WI: Array, op: OpView) -> Array:
        low, high = float(np.float32(op.args.min)), float(np.float32(op.args.max))
        return (WI / 255 * (high - low) + low).astype(np.float32).reshape(op.args.shape)
