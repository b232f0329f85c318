"""Blobs that share one name, and so their memory: nets that need less of it.

Two blobs can share a name when everything that touches the first one is done before anything
touches the second, whoever runs the net: each operator on the second depends on all operators on
the first.  So operators that could run side by side still can.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from caffe2 import ops as catalogue
from caffe2.graph.nesting import every_operator, nets_of
from caffe2.graph.operator import IsOperator
from caffe2.ops.declaration import GradientSlice
from caffe2.proto import caffe2_pb2

_ALIASES = ("Alias", "AliasWithName")


@dataclass
class _Slot:
    """What blobs have shared so far: the operators that touch it, as bits of a number."""

    device: tuple[int, int]
    operators: int
    size: int
    blobs: list[str]


def dependencies(ops: Sequence[caffe2_pb2.OperatorDef]) -> list[set[int]]:
    """For each operator the earlier ones that have to be done before it."""
    writers: dict[str, set[int]] = {}
    readers: dict[str, set[int]] = {}
    found = []
    for index, op in enumerate(ops):
        before: set[int] = set()
        for name in (*op.input, *op.control_input):
            before |= writers.get(name, set())
            readers.setdefault(name, set()).add(index)
        for name in op.output:
            before |= writers.get(name, set()) | readers.get(name, set())
            writers.setdefault(name, set()).add(index)
        before.discard(index)
        found.append(before)
    return found


def _ancestors(ops: Sequence[caffe2_pb2.OperatorDef]) -> list[int]:
    """For each operator all that have to be done before it, as bits of a number."""
    found: list[int] = []
    for before in dependencies(ops):
        bits = 0
        for index in before:
            bits |= found[index] | 1 << index
        found.append(bits)
    return found


def fixed_names(net: caffe2_pb2.NetDef) -> set[str]:
    """Blobs that have to keep their names: those from outside and those that leave, those that
    arguments and nets inside operators speak of, and views of one memory."""
    fixed = {*net.external_input, *net.external_output}
    for op in net.op:
        if op.type in _ALIASES:
            fixed.update(op.input, op.output)
        for arg in op.arg:
            fixed.update(text.decode(errors="replace") for text in (arg.s, *arg.strings))
        for _, inner in nets_of(op):
            for _, part in every_operator(inner):
                fixed.update(part.input, part.output)
            fixed.update(inner.external_input, inner.external_output)
    return fixed


def renamed(net: caffe2_pb2.NetDef, names: Mapping[str, str]) -> caffe2_pb2.NetDef:
    """A copy of a net in which blobs have other names."""
    copy = caffe2_pb2.NetDef()
    copy.CopyFrom(net)
    for op in copy.op:
        for blobs in (op.input, op.output, op.control_input):
            blobs[:] = [names.get(name, name) for name in blobs]
    return copy


def _share(
    net: caffe2_pb2.NetDef,
    candidates: Collection[str],
    prefix: str,
    sizes: Mapping[str, int],
    before: Sequence[int],
) -> caffe2_pb2.NetDef:
    """A copy of the net in which candidates share names "<prefix>__m<number>_shared"."""
    touched: dict[str, list[int]] = {}
    for index, op in enumerate(net.op):
        for name in dict.fromkeys((*op.input, *op.output, *op.control_input)):
            if name in candidates:
                touched.setdefault(name, []).append(index)
    slots: list[_Slot] = []
    for name, indices in touched.items():  # in the order in which they are first written
        done, bits = before[indices[0]], 0
        for index in indices:
            done, bits = done & before[index], bits | 1 << index
        option, size = net.op[indices[0]].device_option, sizes.get(name, 0)
        device = (option.device_type, option.device_id)
        free = [slot for slot in slots if slot.device == device and not slot.operators & ~done]
        if free:
            slot = min(reversed(free), key=lambda slot: abs(slot.size - size))
            slot.operators |= bits
            slot.size = max(slot.size, size)
            slot.blobs.append(name)
        else:
            slots.append(_Slot(device, bits, size, [name]))
    names: dict[str, str] = {}
    shared = (slot for slot in slots if len(slot.blobs) > 1)
    for number, slot in enumerate(shared):
        names.update(dict.fromkeys(slot.blobs, f"{prefix}__m{number}_shared"))
    return renamed(net, names)


def _prefix(namescope: str) -> str:
    return namescope if not namescope or namescope.endswith("/") else f"{namescope}/"


def _sizes(shapes: Mapping[Any, Sequence[int]] | None) -> dict[str, int]:
    sizes = {}
    for name, shape in (shapes or {}).items():
        size = 1
        for dim in shape:
            size *= int(dim)
        sizes[str(name)] = size
    return sizes


def share_grad_blobs(
    net: Any,
    losses: Iterable[Any],
    param_grads: Iterable[Any],
    namescope: str,
    dont_share_blobs: Iterable[Any] | None = None,
    share_activations: bool = False,
    blob_shapes: Mapping[Any, Sequence[int]] | None = None,
) -> caffe2_pb2.NetDef:
    """A copy of a training net whose gradients share memory with one another.

    net                a Net or NetDef that computes gradients
    losses             blobs that keep their names
    param_grads        gradients of the parameters (blobs or GradientSlices), which keep theirs
    namescope          only blobs in this scope share; "" for all
    dont_share_blobs   further blobs that keep their names
    share_activations  values of the forward part share, too, once no gradient needs them, besides
                       those behind the last operator with a parameter: what a script looks at
    blob_shapes        shapes of blobs; blobs of like sizes then share

    What nobody in the net reads keeps its name.  Names that the net is asked for from outside, such
    as those of intermediate gradients, are gone.
    """
    proto = net.Proto() if hasattr(net, "Proto") else net
    grads: set[str] = set()
    for grad in param_grads:
        slices = grad if isinstance(grad, GradientSlice) else (grad,)
        grads.update(str(blob) for blob in slices)
    fixed = fixed_names(proto) | grads | {str(loss) for loss in losses}
    fixed.update(str(blob) for blob in dont_share_blobs or ())
    backward = _backward_from(proto)
    forward_blobs = {name for op in proto.op[:backward] for name in op.output}
    candidates = {
        name for op in proto.op[backward:] for name in op.output if name not in forward_blobs
    }
    if share_activations:
        parameters = {
            name
            for op in proto.op[backward:]
            if grads.intersection(op.output)
            for name in op.input
            if name in proto.external_input
        }
        leading: set[str] = set()  # blobs that an operator with a parameter is computed from
        for op in reversed(proto.op[:backward]):
            if parameters.intersection(op.input) or leading.intersection(op.output):
                leading.update(op.input)
        candidates |= leading & forward_blobs
    read = {name for op in proto.op for name in op.input}
    scope = _prefix(namescope)
    candidates = {n for n in candidates & read if n not in fixed and n.startswith(scope)}
    return _share(proto, candidates, scope, _sizes(blob_shapes), _ancestors(proto.op))


def _backward_from(net: caffe2_pb2.NetDef) -> int:
    """The first operator of the backward part."""
    for index, op in enumerate(net.op):
        # Nets of old do not say which operators are gradients.
        if op.is_gradient_op or (op.output and all(name.endswith("_grad") for name in op.output)):
            return index
    return len(net.op)


def optimize_inference_for_dag(
    net: Any, input_blobs: Iterable[Any], namescope: str = ""
) -> caffe2_pb2.NetDef:
    """A copy of a net without gradients, in which what is computed from `input_blobs`, in a scope,
    shares memory.  What nobody reads is a result and keeps its name.

    RuntimeError for a net with an operator that has to work in place and does not.
    """
    proto = net.Proto() if hasattr(net, "Proto") else net
    _check_inplace(proto)
    derived = {str(blob) for blob in input_blobs}
    for op in proto.op:
        if derived.intersection(op.input):
            derived.update(op.output)
    read = {name for op in proto.op for name in op.input}
    scope, fixed = _prefix(namescope), fixed_names(proto)
    candidates = {n for n in derived & read if n not in fixed and n.startswith(scope)}
    return _share(proto, candidates, scope, {}, _ancestors(proto.op))


def _check_inplace(net: caffe2_pb2.NetDef) -> None:
    for index, op in enumerate(net.op):
        if not IsOperator(op.type):
            continue
        declaration = catalogue.find(op.type)
        for i, source in enumerate(op.input):
            for j, target in enumerate(op.output):
                if declaration.enforces_inplace(i, j) and source != target:
                    raise RuntimeError(
                        f"#{index} {op.type}: output '{target}' has to be input '{source}'"
                    )


def optimize_inference_fast(net: Any, static_blobs: Iterable[Any]) -> caffe2_pb2.NetDef:
    """A copy of a net that runs in order, in which all blobs share memory that are not static:
    inputs, parameters and results have to be."""
    proto = net.Proto() if hasattr(net, "Proto") else net
    fixed = fixed_names(proto) | {str(blob) for blob in static_blobs}
    candidates = {name for op in proto.op for name in op.output} - fixed
    return _share(proto, candidates, "", {}, [(1 << index) - 1 for index in range(len(proto.op))])


def release_blobs_when_used(
    netproto: caffe2_pb2.NetDef,
    dont_free_blobs: Collection[Any],
    selector_fun: Callable[[str], bool] | None = None,
) -> caffe2_pb2.NetDef:
    """A copy of a net with an operator Free behind the last one that touches a blob.

    dont_free_blobs  blobs that are kept; so are results, which nobody reads, what comes from
                     outside or leaves, and views of one memory
    selector_fun     says of a blob whether it may be freed; default: all may
    """
    kept = fixed_names(netproto) | {str(blob) for blob in dont_free_blobs}
    last: dict[str, int] = {}
    written: set[str] = set()
    read: set[str] = set()
    for index, op in enumerate(netproto.op):
        last.update(dict.fromkeys((*op.input, *op.output, *op.control_input), index))
        written.update(op.output)
        read.update(op.input)
    freed: dict[int, list[str]] = {}
    for name, index in last.items():
        wanted = selector_fun is None or selector_fun(name)
        if wanted and name in written and name in read and name not in kept:
            freed.setdefault(index, []).append(name)
    copy = caffe2_pb2.NetDef()
    copy.CopyFrom(netproto)
    del copy.op[:]
    for index, op in enumerate(netproto.op):
        copy.op.append(op)
        for name in freed.get(index, ()):
            copy.op.add(type="Free", input=[name], output=[name])
    return copy


def verify_graph_equality(net_a: caffe2_pb2.NetDef, net_b: caffe2_pb2.NetDef) -> bool:
    """Whether two nets have the same operators, each reading what the same operator wrote; names
    of blobs do not matter."""

    def flow(net: caffe2_pb2.NetDef) -> list[tuple[str, list[Any]]]:
        made: dict[str, tuple[int, int]] = {}
        steps: list[tuple[str, list[Any]]] = []
        for index, op in enumerate(net.op):
            steps.append((op.type, [made.get(name) for name in op.input]))
            made.update((name, (index, output)) for output, name in enumerate(op.output))
        return steps

    return flow(net_a) == flow(net_b)


def verify_inplace_blobs(net_a: caffe2_pb2.NetDef, net_b: caffe2_pb2.NetDef) -> bool:
    """Whether the same operators of two nets work in place, in the same inputs and outputs."""

    def pairs(net: caffe2_pb2.NetDef) -> list[list[tuple[int, int]]]:
        return [
            [(i, j) for i, x in enumerate(op.input) for j, y in enumerate(op.output) if x == y]
            for op in net.op
        ]

    return pairs(net_a) == pairs(net_b)
