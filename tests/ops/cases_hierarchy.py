"""Harness cases of softmax along the paths of a tree."""

import numpy as np

from caffe2.nn.hierarchies import (
    create_hierarchy,
    create_node_with_nodes,
    create_node_with_words,
)
from caffe2.proto import hsm_pb2
from caffe2.testing import Bad, Case, exactly, floats, integers

I4, I8 = np.int32, np.int64
TREE = hsm_pb2.TreeProto()
TREE.root_node.CopyFrom(
    create_node_with_nodes(
        [create_node_with_words([0, 1, 2], "first"), create_node_with_words([3, 4], "second")],
        "root",
    )
)
TREE.root_node.word_ids.append(5)
PATHS = create_hierarchy(TREE)
HIERARCHY = {"hierarchy": PATHS.SerializeToString().decode()}
WEIGHTS = {"X": floats("N", 4), "W": floats(8, 4), "b": floats(8)}
LABELS = exactly([4, 0, 5], I4)
BAD = [
    Bad("no word", {"labels": I4([4, 6, 0])}),
    Bad("no message", args={"hierarchy": "\x08"}),
    Bad("fewer rows", {"W": np.ones((7, 4), np.float32), "b": np.ones(7, np.float32)}),
]

CASES = [
    Case("HSoftmax", args=HIERARCHY, outputs=2, loss=0, X=floats(3, 4), W=WEIGHTS["W"],
         b=WEIGHTS["b"], labels=LABELS, mismatch={"W": 1}, bad=BAD),
    # 3 + 2, 3 + 3 and 3 rows: those of the nodes on the paths of the labels.
    Case("HSoftmaxGradient", args=HIERARCHY, X=floats(3, 4), W=WEIGHTS["W"], b=WEIGHTS["b"],
         labels=LABELS, intermediate_output=floats(14, low=0, high=1), dY=floats(3),
         mismatch={"W": 1}, bad=BAD),
    Case("HSoftmaxSearch", args={"tree": TREE.SerializeToString().decode(), "beam": 1.5, "topN": 4},
         **WEIGHTS, mismatch={"W": 1},
         bad=[Bad("no message", args={"tree": "\x08"}),
              Bad("fewer rows", {"W": np.ones((7, 4), np.float32), "b": np.ones(7, np.float32)})]),
    Case("HuffmanTreeHierarchy", args={"num_classes": 6},
         Labels=exactly([0, 1, 1, 2, 2, 2, 5, 5, 5, 5], I8), mismatch={"Labels": None},
         bad=[Bad("too large", {"Labels": I8([6])}), Bad("negative", {"Labels": I8([-1])}),
              Bad("no class", args={"num_classes": 0})]),
    Case("HuffmanTreeHierarchy", title="one class", args={"num_classes": 1},
         Labels=integers("N", low=0, high=0), mismatch={"Labels": None}),
]  # fmt: skip
