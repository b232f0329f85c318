"""Pictures of nets; see `caffe2.graph.drawing`."""

from caffe2.graph.drawing import (
    BLOB_STYLE,
    OP_STYLE,
    GetBlobNodeProducer,
    GetOpNodeProducer,
    GetPydotGraph,
)

__all__ = [
    "BLOB_STYLE",
    "OP_STYLE",
    "GetBlobNodeProducer",
    "GetOpNodeProducer",
    "GetPydotGraph",
]
