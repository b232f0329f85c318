"""References to blobs of the current NameScope that also read and write them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from caffe2.graph.blob import BlobReference, ScopedName
from caffe2.proto import caffe2_pb2
from caffe2.runtime.engine import new_workspace
from caffe2.runtime.feeding import feed
from caffe2.runtime.workspaces import current

if TYPE_CHECKING:
    from caffe2.graph.net import Net

# Blobs of a workspace inside the current one, which sees them only if it has such names.
_ONE, _RATE = "scoped_blob_update/one", "scoped_blob_update/minus_learning_rate"


class ScopedBlobReference(BlobReference):
    """A reference to the blob `name` of the current NameScope.

    It reads and writes the blob in the current workspace.  In a `with` block it stands for the
    blob's life: the blob and its gradient are removed at the end.  Otherwise nothing is removed,
    whatever becomes of the reference.

        with core.ScopedBlobReference("buffer") as buffer:
            buffer.set(np.zeros(3, np.float32))
    """

    def __init__(self, name: str | BlobReference, net: Net | None = None) -> None:
        super().__init__(ScopedName(name), net)

    @classmethod
    def of(cls, full_name: str) -> ScopedBlobReference:
        """A reference to a blob by its full name, whatever the scope."""
        reference = cls.__new__(cls)
        BlobReference.__init__(reference, full_name)
        return reference

    @property
    def _grad_name(self) -> str:
        return f"{self.name}_grad"

    def get(self) -> Any:
        """A copy of the value; EngineError when there is no such blob."""
        return current().fetch(self.name)

    def set(self, value: Any) -> None:
        """Writes a copy of a value; see `workspace.FeedBlob`."""
        feed(current(), self.name, value)

    def grad(self) -> ScopedBlobReference | None:
        """A reference to `<name>_grad`; None where there is no such blob."""
        if not current().has_blob(self._grad_name):
            return None
        return ScopedBlobReference.of(self._grad_name)

    def require_grad(self) -> None:
        """Makes a gradient of zeros, shaped as the blob, where there is none yet."""
        workspace = current()
        if not workspace.has_blob(self._grad_name):
            _zero(self.name, self._grad_name)

    def clear_grad(self) -> None:
        """Sets the gradient, if there is one, to zero."""
        if current().has_blob(self._grad_name):
            _zero(self._grad_name, self._grad_name)

    def update(self, learning_rate: float) -> None:
        """blob -= learning_rate * gradient, in place in the engine; nothing without a gradient."""
        update_all([self], learning_rate)

    def __enter__(self) -> ScopedBlobReference:
        return self

    def __exit__(self, *exc_info: object) -> None:
        workspace = current()
        workspace.delete_blob(self.name)
        workspace.delete_blob(self._grad_name)


def _zero(shape_of: str, blob: str) -> None:
    op = caffe2_pb2.OperatorDef(type="ConstantFill", input=[shape_of], output=[blob])
    current().run_operator(op.SerializeToString())


def update_all(references: Iterable[BlobReference], learning_rate: float) -> None:
    """blob -= learning_rate * gradient for several blobs at once, side by side in the engine; those
    without a gradient stay as they are."""
    workspace = new_workspace(parent=current())
    net = caffe2_pb2.NetDef(name="scoped_blob_update", type="dag")
    for blob, value in ((_ONE, 1.0), (_RATE, -float(learning_rate))):
        net.op.add(type="ConstantFill", output=[blob]).arg.extend(
            [
                caffe2_pb2.Argument(name="shape", ints=[1]),
                caffe2_pb2.Argument(name="value", f=value),
            ]
        )
    for name in dict.fromkeys(reference.name for reference in references):
        if workspace.has_blob(f"{name}_grad"):
            inputs = [name, _ONE, f"{name}_grad", _RATE]
            net.op.add(type="WeightedSum", input=inputs, output=[name])
    workspace.run_net_once(net.SerializeToString())
