"""The records of a net's inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from caffe2.graph.blob import BlobReference
from caffe2.graph.errors import UsageError
from caffe2.graph.records import Field, Struct, from_column_list
from caffe2.graph.scope import NameScope


class NetRecords:
    """The part of Net that knows the columns of its inputs and outputs (see graph/records.py)."""

    _input_record: Any = None
    _output_record: Any = None

    def input_record(self) -> Any:
        """The record (see caffe2.python.schema) of the net's inputs, or None."""
        return self._input_record

    def output_record(self) -> Any:
        """The record of the net's outputs, or None."""
        return self._output_record

    def set_input_record(self: Any, input_record: Any) -> Any:
        """Sets, once, the record of the inputs and gives it.

        Its blobs become external inputs; one without blobs gets new ones, "<net>/<column>".
        """
        if self._input_record is not None:
            raise UsageError(f"Input schema cannot be reset: net {self}")
        record = input_record
        if not record.has_blobs():
            record = record.clone_schema()
            with NameScope(self.Name(), reset=True):
                for name, scalar in record.named_scalars():
                    scalar.set_value(self.NextScopedBlob(name or "unnamed_scalar"), unsafe=True)
        for blob in record.field_blobs():
            if not self.is_external_input(blob):
                self.AddExternalInput(blob)
        self._input_record = record
        return record

    def set_output_record(self: Any, record: Any) -> None:
        """Sets, once, the record of the outputs, whose blobs become external outputs."""
        if self._output_record is not None:
            raise UsageError(f"Output schema cannot be reset: net {self}")
        for blob in record.field_blobs():
            if blob not in self.external_outputs:
                self.AddExternalOutput(blob)
        self._output_record = record

    def AppendOutputRecordField(self: Any, field_name: str, record: Any) -> None:
        """Adds a field to the record of the outputs."""
        if self._output_record is None:
            raise UsageError(f"Tried to append to missing output record: net {self}")
        for blob in record.field_blobs():
            if not self.BlobIsDefined(blob):
                raise UsageError(f"{blob} is not defined in net {self}{self._near(blob)}")
            if blob not in self.external_outputs:
                self.AddExternalOutput(blob)
        self._output_record += Struct((field_name, record))

    def recover_input_record_by_prefix(self: Any, prefix: str) -> None:
        """Sets the record of the inputs from the external inputs that begin with the prefix."""
        self._input_record = _record_of(self.external_inputs, prefix)

    def recover_output_record_by_prefix(self: Any, prefix: str) -> None:
        """Sets the record of the outputs from the external outputs that begin with the prefix."""
        self._output_record = _record_of(self.external_outputs, prefix)


def _record_of(blobs: Sequence[BlobReference], prefix: str) -> Field:
    found = [blob for blob in blobs if str(blob).startswith(prefix)]
    names = [str(blob)[len(prefix) :] for blob in found]
    return from_column_list(names, col_blobs=found)
