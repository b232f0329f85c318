"""The constants of a model: blobs that its init net fills, and no optimizer touches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from caffe2.graph.blob import BlobReference
from caffe2.graph.errors import UsageError
from caffe2.graph.fills import given_tensor
from caffe2.graph.net import Net
from caffe2.graph.operator import CreateOperator
from caffe2.proto import caffe2_pb2

Initializer = Callable[[BlobReference], caffe2_pb2.OperatorDef]


class GlobalConstants:
    """The part of LayerModelHelper that knows its constants.

    global_constants              name to blob; there are ONE, NAN, ZERO (float32) and ZERO_RANGE
                                  (int32, [0, 0]) in each model
    global_constant_initializers  blob to the operator that fills it
    """

    net: Net

    def _init_constants(self) -> None:
        self.global_constants: dict[str, BlobReference] = {}
        self.global_constant_initializers: dict[BlobReference, caffe2_pb2.OperatorDef] = {}
        self.add_global_constant("ONE", 1.0)
        self.add_global_constant("NAN", float("nan"))
        self.add_global_constant("ZERO", 0.0)
        self.add_global_constant("ZERO_RANGE", [0, 0], dtype=np.int32)

    def add_global_constant(
        self,
        name: str,
        array: Any = None,
        dtype: Any = None,
        initializer: Initializer | None = None,
    ) -> BlobReference:
        """A new constant: the values of an array (of type `dtype`), or what the operator fills
        that `initializer(blob)` makes.

        Floats become float32.  UsageError when the name is taken.
        """
        if name in self.global_constants:
            raise UsageError(f"{name} already added in global_constants")
        blob = self.net.NextBlob(name)
        op = _fill(blob, array, dtype, initializer)
        self.global_constants[name] = blob
        self.global_constant_initializers[blob] = op
        return blob

    def maybe_add_global_constant(self, name: str, *args: Any, **kwargs: Any) -> BlobReference:
        """The constant of this name; a new one, as of `add_global_constant`, where there is none.

        UsageError when it exists with other values.
        """
        blob = self.global_constants.get(name)
        if blob is None:
            return self.add_global_constant(name, *args, **kwargs)
        known = self.global_constant_initializers[blob]
        wanted = _fill(blob, *args, **kwargs)
        if wanted.SerializeToString() != known.SerializeToString():
            raise UsageError(
                f"conflict initializers for global constant {name}, previous {known}, now {wanted}"
            )
        return blob

    def create_init_net(self, name: str) -> Net:
        """A net that fills the constants."""
        net = Net(name)
        net.Proto().op.extend(self.global_constant_initializers.values())
        return net


def _fill(
    blob: BlobReference,
    array: Any = None,
    dtype: Any = None,
    initializer: Initializer | None = None,
) -> caffe2_pb2.OperatorDef:
    if array is None:
        if initializer is None:
            raise UsageError(f"the constant '{blob}' needs an array or an initializer")
        return initializer(blob)
    if initializer is not None:
        raise UsageError("Only one from array and initializer should be specified")
    values = np.asarray(array, dtype=dtype)
    if values.dtype.kind == "f":
        values = values.astype(np.float32)
    op_type, arguments = given_tensor(values)
    return CreateOperator(op_type, [], [blob], **arguments)
