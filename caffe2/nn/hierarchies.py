"""Trees of words for HSoftmax: nodes are messages of `caffe2.proto.hsm_pb2`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from caffe2.proto import hsm_pb2


def create_node_with_words(words: Iterable[int], name: str = "node") -> Any:
    """A node with words below it."""
    node = hsm_pb2.NodeProto()
    node.name = name
    node.word_ids.extend(words)
    return node


def create_node_with_nodes(nodes: Iterable[Any], name: str = "node") -> Any:
    """A node with other nodes below it."""
    node = hsm_pb2.NodeProto()
    node.name = name
    node.children.extend(nodes)
    return node


def create_hierarchy(tree: Any) -> Any:
    """The HierarchyProto of a TreeProto: the path to each word.  Sets the offset of each node of
    the tree: the first of its rows, one for each node below it and then one for each word."""
    hierarchy = hsm_pb2.HierarchyProto()
    hierarchy.size = _add_paths(tree.root_node, 0, [], hierarchy)
    return hierarchy


def _add_paths(node: Any, offset: int, above: list[tuple[int, int, int]], hierarchy: Any) -> int:
    node.offset = offset
    count = len(node.children) + len(node.word_ids)
    following = offset + count
    for k, child in enumerate(node.children):
        following = _add_paths(child, following, [*above, (offset, count, k)], hierarchy)
    for k, word in enumerate(node.word_ids, len(node.children)):
        path = hierarchy.paths.add()
        path.word_id = word
        for index, length, target in [*above, (offset, count, k)]:
            path.path_nodes.add(index=index, length=length, target=target)
    return following
