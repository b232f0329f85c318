"""References to blobs: names that know the net they came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from caffe2.graph import scope

if TYPE_CHECKING:
    from caffe2.graph.net import Net


class BlobReference:
    """The name of a blob, and the net that made it.

    Equal to, and hashed like, the plain name.  `ref + "_grad"` is a reference to another blob.
    `ref.Relu("y")` is `net.Relu([ref], "y")` in the net that the reference came from.
    """

    def __init__(self, name: str | bytes | BlobReference, net: Net | None = None) -> None:
        if isinstance(name, BlobReference):
            name = name.name
        elif isinstance(name, bytes):
            name = name.decode("utf-8")
        elif not isinstance(name, str):
            raise TypeError(f"a blob's name is a string, got {name!r} of type {type(name)}")
        self._name: str = str(name)
        self._net = net

    @property
    def name(self) -> str:
        """The full name, scopes included."""
        return self._name

    def Net(self) -> Net | None:
        """The net that made the blob, or None."""
        return self._net

    def GetNameScope(self) -> str:
        """The name up to its last "/", that included."""
        return self._name[: self._name.rfind(scope.SEPARATOR) + 1]

    def GetUnscopedName(self) -> str:
        """The name behind its last "/"."""
        return self._name[self._name.rfind(scope.SEPARATOR) + 1 :]

    def __str__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f'BlobReference("{self._name}")'

    def __hash__(self) -> int:
        return hash(self._name)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, BlobReference):
            return self._name == other._name
        return self._name == other if isinstance(other, str) else NotImplemented

    def __lt__(self, other: object) -> bool:
        """In the order of names."""
        if isinstance(other, (BlobReference, str)):
            return self._name < str(other)
        return NotImplemented

    def __add__(self, suffix: str) -> BlobReference:
        if not isinstance(suffix, str):
            raise TypeError(f"cannot add {suffix!r} to the blob name '{self._name}'")
        return BlobReference(self._name + suffix, self._net)

    def __radd__(self, prefix: str) -> BlobReference:
        if not isinstance(prefix, str):
            raise TypeError(f"cannot add the blob name '{self._name}' to {prefix!r}")
        return BlobReference(prefix + self._name, self._net)

    def __getattr__(self, op_type: str) -> Any:
        if op_type.startswith("_"):
            raise AttributeError(f"Attribute {op_type} not found.")
        net = self._net
        if net is None:
            raise AttributeError(
                f"'{self._name}'.{op_type}: a blob reference that no net made cannot create "
                f"operators; call net.{op_type}([...]) instead"
            )
        make = net.__getattr__(op_type)

        def create(inputs: Any = None, outputs: Any = None, **kwargs: Any) -> Any:
            if inputs is None:
                further: list[Any] = []
            elif isinstance(inputs, (str, bytes, BlobReference)):
                further = [inputs]
            else:
                further = list(inputs)
            return make([self, *further], outputs, **kwargs)

        return create

    def __dir__(self) -> list[str]:
        own = list(super().__dir__())
        return own if self._net is None else [*own, *self._net.operator_types()]


def ScopedName(name: str | BlobReference) -> Any:
    """The name in the current NameScope; a str for a str, a reference for a reference."""
    if isinstance(name, bytes):
        name = name.decode("utf-8")
    if not isinstance(name, (str, BlobReference)):
        raise TypeError(f"a blob's name is a string, got {name!r} of type {type(name)}")
    return scope.CurrentNameScope() + name


def ScopedBlobReference(name: str | BlobReference, net: Net | None = None) -> BlobReference:
    """A reference to the blob `name` of the current NameScope."""
    return BlobReference(ScopedName(name), net)


def blob_references(blobs: Any) -> list[BlobReference]:
    """What a caller gave as inputs or outputs, as references.

    A string is a name in the current NameScope, a BlobReference stands for itself; both may come
    alone or in a list or tuple.  TypeError for anything else.
    """
    if isinstance(blobs, (str, bytes, BlobReference)):
        blobs = [blobs]
    elif not isinstance(blobs, (list, tuple)):
        raise TypeError(f"Unknown input/output type: {blobs!r} of type {type(blobs)}.")
    found = []
    for index, blob in enumerate(blobs):
        if isinstance(blob, (str, bytes)):
            found.append(ScopedBlobReference(blob if isinstance(blob, str) else blob.decode()))
        elif isinstance(blob, BlobReference):
            found.append(blob)
        else:
            raise TypeError(f"I/O blob #{index} of unsupported type: {blob!r} of type {type(blob)}")
    return found
