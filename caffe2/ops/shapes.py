"""Small pieces that shape rules share: axes, sizes, comparisons."""

from __future__ import annotations

import math

from caffe2.ops.arguments import OperatorError
from caffe2.ops.declaration import OpView, Spec


def canonical_axis(axis: int, rank: int, name: str = "axis") -> int:
    """`axis` counted from the front; OperatorError unless -rank <= axis < rank."""
    if not -rank <= axis < rank:
        raise OperatorError(
            f"argument '{name}'", f"is {axis}; allowed is {-rank} <= {name} < {rank}"
        )
    return axis % rank


def split_at(shape: tuple[int, ...], axis: int) -> tuple[int, int]:
    """Rows and columns of a tensor seen as a matrix: the dimensions before `axis`, the others."""
    return math.prod(shape[:axis]), math.prod(shape[axis:])


def size(spec: Spec) -> int:
    """How many elements."""
    return math.prod(spec.shape)


def require_rank(name: str, spec: Spec, *ranks: int) -> None:
    """OperatorError unless the tensor has one of these numbers of dimensions."""
    if len(spec.shape) not in ranks:
        allowed = " or ".join(map(str, ranks))
        raise OperatorError(name, f"has shape {spec.shape}; {allowed} dimensions are needed")


def require_dimensions(name: str, spec: Spec, least: int) -> None:
    """OperatorError unless the tensor has at least so many dimensions."""
    if len(spec.shape) < least:
        raise OperatorError(name, f"has shape {spec.shape}; {least} dimensions at least are needed")


def require_same_shape(name: str, spec: Spec, like: str, other: Spec) -> None:
    """OperatorError unless both tensors have one shape."""
    if spec.shape != other.shape:
        raise OperatorError(name, f"has shape {spec.shape}; {like} has {other.shape}")


def require_same_size(name: str, spec: Spec, like: str, other: Spec) -> None:
    """OperatorError unless both tensors have equally many elements."""
    if size(spec) != size(other):
        problem = f"has shape {spec.shape}, {size(spec)} elements; {like} has {other.shape}"
        raise OperatorError(name, problem)


def require_single(name: str, spec: Spec) -> None:
    """OperatorError unless the tensor has exactly one element."""
    if size(spec) != 1:
        raise OperatorError(name, f"has shape {spec.shape}; one element is needed")


def require_same_types(specs: tuple[Spec, ...], op: OpView) -> None:
    """OperatorError unless all inputs have the type of the first."""
    for index, spec in enumerate(specs):
        if spec.dtype != specs[0].dtype:
            raise OperatorError(
                f"input {index} ('{op.input(index)}')",
                f"is {spec.dtype}; input 0 ('{op.input(0)}') is {specs[0].dtype}",
            )
