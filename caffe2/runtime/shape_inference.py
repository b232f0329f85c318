"""Shapes and types of blobs, inferred from nets and from what the workspace holds."""

from __future__ import annotations

import logging
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from caffe2.graph.errors import net_called, printable
from caffe2.graph.shapes import infer_shapes
from caffe2.ops.datatypes import DataType, data_type_of, dtype_of
from caffe2.ops.declaration import Spec
from caffe2.runtime.workspace import current

_log = logging.getLogger(__name__)


def InferShapesAndTypes(
    nets: Sequence[Any],
    blob_dimensions: Mapping[Any, Sequence[int]] | None = None,
    nets_proto: bool = False,
    blob_types: Mapping[Any, int] | None = None,
) -> tuple[dict[str, list[int]], dict[str, int]]:
    """The shape and the data type of every blob of which they are known before the nets run.

    nets             Nets or NetDefs, in the order in which they run
    blob_dimensions  shapes of blobs; default: those of all tensors in the current workspace.
                     ValueError for a negative dimension
    nets_proto       no effect
    blob_types       data types of the blobs in `blob_dimensions`; default: FLOAT

    Blobs whose shape depends on values, and those of operators that refuse their inputs, are left
    out; the log (level info) says why.
    """
    if blob_dimensions is None:
        specs = _workspace_specs()
    else:
        types = {str(name): number for name, number in (blob_types or {}).items()}
        specs = {
            str(name): Spec(_dims(name, shape), dtype_of(types.get(str(name), DataType.FLOAT)))
            for name, shape in blob_dimensions.items()
        }
    for net in nets:
        proto = net.Proto() if hasattr(net, "Proto") else net
        specs, refused = infer_shapes(proto, specs)
        for index, error in refused:
            where = f"{net_called(proto.name)}, #{index} {proto.op[index].type}"
            _log.info("%s", printable(f"{where}: {error}"))
    shapes = {name: list(spec.shape) for name, spec in specs.items()}
    return shapes, {name: int(data_type_of(spec.dtype)) for name, spec in specs.items()}


def _dims(name: Any, shape: Sequence[int]) -> tuple[int, ...]:
    dims = tuple(operator.index(dim) for dim in shape)
    if any(dim < 0 for dim in dims):
        raise ValueError(f"blob '{name}' is given shape {dims}; no dimension can be negative")
    return dims


def _workspace_specs() -> dict[str, Spec]:
    workspace = current()
    found = {name: workspace.tensor_spec(name) for name in workspace.blobs()}
    return {
        name: Spec(tuple(spec[0]), np.dtype(spec[1]))
        for name, spec in found.items()
        if spec is not None
    }
