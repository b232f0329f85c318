# mypy: ignore-errors
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Optional as _Optional

CAFFE_LEGACY_POOLING: LegacyPadding
DESCRIPTOR: _descriptor.FileDescriptor
NOTSET: LegacyPadding
SAME: LegacyPadding
VALID: LegacyPadding

class CaffeDatum(_message.Message):
    __slots__ = ["channels", "data", "encoded", "float_data", "height", "label", "width"]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    ENCODED_FIELD_NUMBER: _ClassVar[int]
    FLOAT_DATA_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    channels: int
    data: bytes
    encoded: bool
    float_data: _containers.RepeatedScalarFieldContainer[float]
    height: int
    label: int
    width: int
    def __init__(self, channels: _Optional[int] = ..., height: _Optional[int] = ..., width: _Optional[int] = ..., data: _Optional[bytes] = ..., label: _Optional[int] = ..., float_data: _Optional[_Iterable[float]] = ..., encoded: bool = ...) -> None: ...

class LegacyPadding(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
