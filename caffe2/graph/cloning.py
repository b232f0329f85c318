"""Copies of nets, whole and in part, under other names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from caffe2.graph.blob import BlobReference
from caffe2.graph.errors import UsageError
from caffe2.graph.remapping import DEFAULT_REMAP_FUNCS, RemapFunction, remap_operator
from caffe2.graph.ssa import Ssa, get_op_ids_in_path, get_output_producers, get_ssa
from caffe2.proto import caffe2_pb2

if TYPE_CHECKING:
    from caffe2.graph.net import Net


def clone_proto(
    source: caffe2_pb2.NetDef,
    name: str,
    blob_remap: Mapping[Any, Any] | None = None,
    op_id_mask: Sequence[int] | None = None,
    remap_funcs: Mapping[str, RemapFunction] | None = None,
    update_external_list: bool = False,
    prefix: str = "",
) -> caffe2_pb2.NetDef:
    """A copy of a net; see `Net.Clone`."""
    remap = {str(old): str(new) for old, new in (blob_remap or {}).items()}
    functions = {**DEFAULT_REMAP_FUNCS, **(remap_funcs or {})}
    proto = caffe2_pb2.NetDef()
    proto.CopyFrom(source)
    proto.name = name
    if op_id_mask is not None:
        del proto.op[:]
        proto.op.extend(source.op[index] for index in op_id_mask)
    for op in proto.op:
        remap_operator(op, remap, prefix, functions)
    for names in (proto.external_input, proto.external_output):
        names[:] = [remap.get(blob, blob) for blob in names]
    if update_external_list:
        _find_external(proto)
    return proto


def _find_external(proto: caffe2_pb2.NetDef) -> None:
    """External inputs are blobs that are read unwritten, external outputs those that are written
    and then not read."""
    ssa, versions = get_ssa(caffe2_pb2.NetDef(op=proto.op))
    read = {version for inputs, _ in ssa for version in inputs}
    proto.external_input[:] = dict.fromkeys(
        name for name, version in read_order(ssa) if not version
    )
    written = dict.fromkeys(name for _, outputs in ssa for name, _ in outputs)
    proto.external_output[:] = [name for name in written if (name, versions[name]) not in read]


def read_order(ssa: Ssa) -> list[tuple[str, int]]:
    """The versions of blobs that operators read, in order."""
    return [version for inputs, _ in ssa for version in inputs]


def clone_partial(
    net: Net,
    name: str,
    inputs: Iterable[Any] | Mapping[Any, Any],
    outputs: Sequence[Any],
    remap_funcs: Mapping[str, RemapFunction] | None = None,
) -> tuple[caffe2_pb2.NetDef, dict[str, str], list[int]]:
    """The operators that lead from some blobs to others, as a net; see `Net.ClonePartial`."""
    given = dict(inputs) if isinstance(inputs, Mapping) else {blob: blob for blob in inputs}
    given = {str(old): str(new) for old, new in given.items()}
    wanted = [str(output) for output in outputs]
    ssa, versions = get_ssa(net)
    for blob in [*given, *wanted]:
        if blob not in versions:
            raise UsageError(f"net {net} has no blob '{blob}'")
    for blob in given:
        others = [other for other in given if other != blob]
        before = {
            read
            for index in get_op_ids_in_path(ssa, versions, others, [blob])
            for read in ssa[index][0]
        }
        for other in others:
            if (other, versions[other]) in before:
                raise UsageError(f"input '{blob}' is computed from input '{other}' in net {net}")
    kept = get_op_ids_in_path(ssa, versions, list(given), wanted)
    written = dict.fromkeys(name for index in kept for name, _ in ssa[index][1])
    for blob in wanted:
        if blob not in written and blob not in given:
            raise UsageError(f"output '{blob}' is computed by no operator of net {net}")
    remap = {blob: f"{name}/{blob}" for blob in written} | given
    proto = clone_proto(net.Proto(), name, remap, kept, remap_funcs, prefix=f"{name}/")
    read = dict.fromkeys(
        blob
        for blob, version in read_order([ssa[index] for index in kept])
        if blob not in given and (blob, version) not in get_output_producers(ssa)
    )
    proto.external_input[:] = [*given.values(), *read]
    proto.external_output[:] = [remap[blob] for blob in wanted]
    return proto, remap, kept


def clone_and_bind_net(
    net: Net,
    name: str,
    prefix: str,
    blob_remap: dict[str, str] | None = None,
    inputs: Any = None,
    keep_schema: bool = True,
) -> tuple[Net, dict[str, str]]:
    """A copy of a net whose own blobs get a prefix, and the new name of each blob.

    blob_remap  names that are chosen already; it is brought up to date
    inputs      a record whose blobs take the place of those of `net.input_record()`

    Blobs that come from outside keep their names.
    """
    remap = {} if blob_remap is None else blob_remap
    if inputs is not None:
        record = net.input_record()
        if record is None or record.field_names() != inputs.field_names():
            raise UsageError(f"the inputs do not fit the input record of net {net}: {record}")
        old_new = zip(record.field_blobs(), inputs.field_blobs(), strict=True)
        remap.update((str(old), str(new)) for old, new in old_new)
    ssa, versions = get_ssa(net)
    outside = {name for name, version in read_order(ssa) if version == 0}
    for blob in versions:
        remap.setdefault(blob, blob if blob in outside else prefix + blob)
    return net.Clone(name, remap, keep_schema=keep_schema), remap


def reroute_tensor(
    net: Net,
    tensor: Any,
    new_producer: caffe2_pb2.OperatorDef,
    can_modify: Sequence[caffe2_pb2.OperatorDef] | None = None,
) -> int:
    """Puts an operator behind the one that wrote a blob; see `Net.reroute_tensor`."""
    name, proto = str(tensor), net.Proto()
    if not new_producer.output:
        raise UsageError(f"{new_producer.type} has no output to take the place of '{name}'")
    after = [index for index, op in enumerate(proto.op) if name in op.output]
    if not after:
        raise UsageError(f"no operator of net {net} writes '{name}'")
    for op in proto.op:
        if name in op.input and (can_modify is None or op in can_modify):
            op.input[:] = [new_producer.output[0] if blob == name else blob for blob in op.input]
    net.insert_op_at_idx(new_producer, after[-1] + 1)
    return after[-1] + 1


def bind(record: Any, remap: Mapping[str, str], net: Net) -> Any:
    """A copy of a record whose blobs are those of a net under their new names."""
    if record is None:
        return None
    copy = record.clone()
    for scalar in copy.all_scalars():
        if scalar.has_blobs():
            name = str(scalar.get())
            scalar.set_value(BlobReference(remap.get(name, name), net), unsafe=True)
    return copy
