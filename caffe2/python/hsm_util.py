"""Trees of words for HSoftmax; see `caffe2.nn.hierarchies`."""

from caffe2.nn.hierarchies import (
    create_hierarchy,
    create_node_with_nodes,
    create_node_with_words,
)

__all__ = ["create_hierarchy", "create_node_with_nodes", "create_node_with_words"]
