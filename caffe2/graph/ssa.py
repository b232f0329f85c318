"""Static single assignment: which version of each blob the operators of a net use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

Version: TypeAlias = tuple[str, int]
Ssa: TypeAlias = list[tuple[list[Version], list[Version]]]


def get_ssa(net: Any, blob_versions: dict[str, int] | None = None) -> tuple[Ssa, dict[str, int]]:
    """For each operator of a Net or NetDef the versions of its inputs and outputs; and the last
    version of every blob.  `blob_versions` says where versions start, and is brought up to date.
    """
    proto = net.Proto() if hasattr(net, "Proto") else net
    versions = {} if blob_versions is None else blob_versions
    for name in proto.external_input:
        versions.setdefault(str(name), 0)
    ssa: Ssa = []
    for op in proto.op:
        inputs = [(str(name), versions.setdefault(str(name), 0)) for name in op.input]
        for name in op.output:
            versions[str(name)] = versions.get(str(name), 0) + 1
        ssa.append((inputs, [(str(name), versions[str(name)]) for name in op.output]))
    return ssa, versions


def get_undefined_blobs(ssa: Ssa) -> set[str]:
    """Blobs that are read before any operator writes them."""
    return {name for inputs, _ in ssa for name, version in inputs if version == 0}


def get_output_producers(ssa: Sequence[tuple[Any, list[Version]]]) -> dict[Version, int]:
    """The index of the operator that wrote each version of each blob."""
    return {output: index for index, (_, outputs) in enumerate(ssa) for output in outputs}


def get_op_ids_in_path(
    ssa: Ssa, blob_versions: dict[str, int], inputs: Sequence[Any], outputs: Sequence[Any]
) -> list[int]:
    """The operators that the last versions of `outputs` need, given those of `inputs`."""
    given = {(str(blob), blob_versions.get(str(blob), 0)) for blob in inputs}
    producers = get_output_producers(ssa)
    wanted = [(str(blob), blob_versions.get(str(blob), 0)) for blob in outputs]
    found: set[int] = set()
    while wanted:
        version = wanted.pop()
        index = producers.get(version)
        if version not in given and index is not None and index not in found:
            found.add(index)
            wanted.extend(ssa[index][0])
    return sorted(found)
