"""Messages as bytes."""

from typing import Any


def serialize_protobuf_struct(protobuf_struct: Any) -> bytes:
    """A message as bytes."""
    return protobuf_struct.SerializeToString()  # type: ignore[no-any-return]


def deserialize_protobuf_struct(serialized_protobuf: bytes, struct_type: Any) -> Any:
    """Bytes as a message of a type."""
    message = struct_type()
    message.ParseFromString(serialized_protobuf)
    return message
