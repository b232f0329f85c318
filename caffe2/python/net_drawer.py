"""Pictures of nets; see `caffe2.graph.drawing` and `caffe2.graph.svg`."""

from caffe2.graph.drawing import (
    BLOB_STYLE,
    OP_STYLE,
    GetBlobNodeProducer,
    GetOpNodeProducer,
    GetPydotGraph,
    GetPydotGraphMinimal,
    to_dot,
)
from caffe2.graph.svg import to_svg

__all__ = [
    "BLOB_STYLE",
    "OP_STYLE",
    "GetBlobNodeProducer",
    "GetOpNodeProducer",
    "GetPydotGraph",
    "GetPydotGraphMinimal",
    "to_dot",
    "to_svg",
]
