"""Shape inference: what is known of a net's blobs before it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from caffe2 import ops
from caffe2.graph.nesting import every_operator, nets_of
from caffe2.ops.arguments import OperatorError
from caffe2.ops.declaration import Spec
from caffe2.proto import caffe2_pb2


def infer_shapes(
    net: caffe2_pb2.NetDef, known: Mapping[str, Spec]
) -> tuple[dict[str, Spec], list[tuple[int, OperatorError]]]:
    """The shape and type of every blob for which they follow from `known`.

    Blobs whose shape depends on values, comes from an undeclared operator or is no tensor are
    left out, and so are those computed from them.  The second result holds, by index, the
    operators that refuse their inputs, with their reason.
    """
    specs = dict(known)
    refused = []
    for index, op in enumerate(net.op):
        error = infer_next(op, specs)
        if error is not None:
            refused.append((index, error))
    return specs, refused


def infer_next(op: caffe2_pb2.OperatorDef, specs: dict[str, Spec]) -> OperatorError | None:
    """Brings `specs` from before an operator to after it; why, where it refuses its inputs."""
    error: OperatorError | None = None
    outputs: Sequence[Spec | None] = ()
    try:
        outputs = infer_operator(op, specs)
    except OperatorError as refusal:
        error = refusal
    for position, name in enumerate(op.output):
        spec = outputs[position] if position < len(outputs) else None
        if spec is None and op.is_gradient_op:
            # Where only values say it: a gradient has the shape of what it is the gradient of.
            spec = specs.get(name.removesuffix("_grad"))
        specs.pop(name, None)
        if spec is not None:
            specs[name] = spec
    for name in written_inside(op):
        specs.pop(name, None)
    return error


def written_inside(op: caffe2_pb2.OperatorDef) -> Iterator[str]:
    """Blobs that nets inside of branches and loops write; whether they do depends on values."""
    if op.type in ("If", "AsyncIf", "While"):
        for _, net in nets_of(op):
            for _, inner in every_operator(net):
                yield from inner.output


def infer_operator(op: caffe2_pb2.OperatorDef, specs: Mapping[str, Spec]) -> Sequence[Spec | None]:
    """The specs of one operator's outputs; none when that of an input is unknown and needed.
    OperatorError when the operator refuses its inputs or arguments."""
    try:
        declaration = ops.find(op.type)
    except ops.UnknownOperatorError:
        return ()
    view = declaration.view_of(op)
    inputs = [specs.get(name) for name in op.input]
    for index, spec in enumerate(inputs):
        if spec is None and declaration.needs_spec(index):
            return ()
    return declaration.infer(view, inputs)
