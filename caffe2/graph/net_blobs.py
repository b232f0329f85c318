"""The blobs of a net: which there are, and names for new ones."""

from __future__ import annotations

import difflib
from collections import defaultdict
from typing import Any

from caffe2.graph.blob import BlobReference, ScopedName
from caffe2.graph.errors import UsageError
from caffe2.proto import caffe2_pb2


class NetBlobs:
    """The part of Net that knows the names in its message, which may be changed directly."""

    def __init__(self, proto: caffe2_pb2.NetDef) -> None:
        self._net = proto
        self._blob_number = 0
        self._next_blob_numbers: dict[str, int] = defaultdict(int)
        self._forget()

    def BlobIsDefined(self, blob: str | BlobReference) -> bool:
        """Whether the blob is an external input or written by an operator of the net."""
        self._look()
        return str(blob) in self._inputs or str(blob) in self._written

    def UsesBlob(self, blob: str | BlobReference) -> bool:
        """Whether an operator of the net reads or writes the blob, or it is an external input."""
        self._look()
        return str(blob) in self._used or str(blob) in self._inputs

    def UsedBlobNames(self) -> set[str]:
        """The names of all blobs that operators of the net read or write."""
        self._look()
        return set(self._used)

    def is_external_input(self, blob: str | BlobReference) -> bool:
        self._look()
        return str(blob) in self._inputs

    def GetBlobRef(self: Any, blob_name: str | BlobReference) -> BlobReference:
        """A reference to a defined blob; KeyError (with near names) when it is not."""
        if not self.BlobIsDefined(blob_name):
            raise KeyError(f"Net {self} does not define blob {blob_name}{self._near(blob_name)}")
        return BlobReference(blob_name, self)

    def _near(self, blob: str | BlobReference) -> str:
        near = difflib.get_close_matches(str(blob), self._inputs | self._written, 3)
        return f"; did you mean {' or '.join(near)}?" if near else ""

    def _forget(self) -> None:
        self._seen_ops = self._seen_inputs = 0
        self._inputs: set[str] = set()
        self._written: set[str] = set()
        self._used: set[str] = set()
        self._reserved: set[str] = set()

    def _look(self) -> None:
        """Takes note of operators and inputs added to the message since the last look."""
        net = self._net
        if len(net.op) < self._seen_ops or len(net.external_input) < self._seen_inputs:
            reserved = self._reserved
            self._forget()
            self._reserved = reserved
        for op in net.op[self._seen_ops :]:
            self._written.update(op.output)
            self._used.update(op.input, op.output)
        self._inputs.update(net.external_input[self._seen_inputs :])
        self._seen_ops, self._seen_inputs = len(net.op), len(net.external_input)

    def _CheckLookupTables(self) -> None:
        """UsageError when what is remembered of the message is not what it holds."""
        self._look()
        known = self._inputs, self._written, self._used
        self._forget()
        self._look()
        if known != (self._inputs, self._written, self._used):
            raise UsageError(f"the lookup tables of net {self} do not fit its message")

    def NextName(self, prefix: str | None = None, output_id: int | None = None) -> str:
        """A name for a blob that the net does not use yet: "<net>/<prefix>", numbered."""
        if not prefix:
            self._blob_number += 1
            return f"{self._net.name}_blob_{self._blob_number - 1}"
        self._look()
        base = f"{self._net.name}/{prefix}"
        suffix = "" if output_id is None else f":{output_id}"
        name, number = base + suffix, 1
        while ScopedName(name) in self._used or ScopedName(name) in self._inputs:
            number += 1
            name = f"{base}_{number}{suffix}"
        return name

    def NextBlob(self: Any, prefix: str = "unnamed") -> BlobReference:
        """A reference to a blob of a new name: `prefix`, or `prefix_auto_0`, ..."""
        self._look()
        name = prefix
        while name in self._used or name in self._inputs or name in self._reserved:
            name = f"{prefix}_auto_{self._next_blob_numbers[prefix]}"
            self._next_blob_numbers[prefix] += 1
        self._reserved.add(name)
        return BlobReference(name, self)

    def NextScopedBlob(self, prefix: str = "unnamed") -> BlobReference:
        """The same in the current NameScope."""
        return self.NextBlob(ScopedName(prefix))
