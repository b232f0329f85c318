# mypy: disable-error-code="misc, no-any-return"
"""Softmax along the paths of a tree (Morin and Bengio, 2005, "Hierarchical Probabilistic Neural
Network Language Model")."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from caffe2.ops.arguments import INT64_MAX, Float, Int, OperatorError, Str
from caffe2.ops.datatypes import FLOAT, INT32, INT64
from caffe2.ops.declaration import (
    SHOULD_NOT_DO_GRADIENT,
    Array,
    GradientContext,
    OpView,
    Spec,
    operator,
)
from caffe2.ops.shapes import require_rank

_SMALLEST = 1e-20  # probabilities below count as this


def _message(kind: str, name: str, text: str) -> Any:
    """The protobuf message that an argument holds."""
    from google.protobuf.message import DecodeError

    from caffe2.proto import hsm_pb2

    found = getattr(hsm_pb2, kind)()
    try:
        found.ParseFromString(text.encode("utf-8", "surrogateescape"))
    except DecodeError as error:
        raise OperatorError(f"argument '{name}'", f"holds no {kind}: {error}") from None
    return found


def _paths(op: OpView, rows: int) -> dict[int, list[tuple[int, int, int]]]:
    """(first row, rows, which of them) of each node on the way to a word."""
    hierarchy = _message("HierarchyProto", "hierarchy", op.args.hierarchy)
    found = {}
    for path in hierarchy.paths:
        nodes = [(node.index, node.length, node.target) for node in path.path_nodes]
        for first, count, target in nodes:
            if first < 0 or first + count > rows or not 0 <= target < count:
                problem = f"has row {target} of {count} from row {first} on; W has {rows} rows"
                raise OperatorError("argument 'hierarchy'", problem)
        found[int(path.word_id)] = nodes
    return found


def _check(X: Spec, W: Spec, b: Spec) -> None:
    require_rank("X", X, 2)
    require_rank("W", W, 2)
    if W.shape[1] != X.shape[1]:
        raise OperatorError("W", f"has shape {W.shape}; X has {X.shape}")
    if b.shape != W.shape[:1]:
        raise OperatorError("b", f"has shape {b.shape}; W has {W.shape}")


def _softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def _ways(paths: dict[int, Any], labels: Array) -> list[Any]:
    for label in labels.tolist():
        if label not in paths:
            raise OperatorError("labels", f"holds {label}, which is no word of the hierarchy")
    return [paths[label] for label in labels.tolist()]


_ARGS = {"hierarchy": Str(required=True)}


@operator(
    "HSoftmax",
    inputs="X W b labels",
    outputs="Y intermediate_output",
    helpers=[1],
    args=_ARGS,
    types={"X": FLOAT, "W": FLOAT, "b": FLOAT, "labels": INT32},
    native=False,
)
class HSoftmax:
    """Y = -log of the probability of a word: the product of softmaxes over the rows of W that the
    nodes on its path have.

    X: float (N, columns).  W: float (rows, columns), those of all nodes.  b: float (rows,).
    labels: int32 (N,), words.
    hierarchy: a HierarchyProto: for each word the first row, the rows and the row taken of each
    node of its path.
    Y: float (N,).  intermediate_output: float, the softmaxes of all examples, for the gradient.
    """

    def shape(X: Spec, W: Spec, b: Spec, labels: Spec, op: OpView) -> tuple[Spec, None]:
        _check(X, W, b)
        if labels.shape != X.shape[:1]:
            raise OperatorError("labels", f"has shape {labels.shape}; X has {X.shape}")
        return Spec(labels.shape, X.dtype), None

    def reference(X: Array, W: Array, b: Array, labels: Array, op: OpView) -> tuple[Array, Array]:
        ways = _ways(_paths(op, len(W)), labels)
        x, w = X.astype(np.float64), W.astype(np.float64)
        losses, kept = np.zeros(len(X)), [np.zeros(0)]
        for n, way in enumerate(ways):
            for first, count, target in way:
                rows = slice(first, first + count)
                kept.append(_softmax(w[rows] @ x[n] + b[rows]))
                losses[n] -= np.log(max(kept[-1][target], _SMALLEST))
        return losses.astype(X.dtype), np.concatenate(kept).astype(X.dtype)

    def gradient(op: GradientContext) -> Any:
        inputs = [*(op.input(k) for k in range(4)), op.output(1), op.grad(0)]
        outputs = [*(op.input_grad(k) for k in range(3)), f"{op.output(1)}_grad"]
        return op.make("HSoftmaxGradient", inputs, outputs)


@operator(
    "HSoftmaxGradient",
    inputs="X W b labels intermediate_output dY",
    outputs="dX dW db intermediate_output_grad",
    args=_ARGS,
    types={
        **dict.fromkeys(("X", "W", "b", "intermediate_output", "dY"), FLOAT),
        "labels": INT32,
    },
    native=False,
)
class HSoftmaxGradient:
    """The gradient of HSoftmax.

    X, W, b, labels, hierarchy: as for HSoftmax.  intermediate_output: its second output.
    dY: float (N,).  dX, dW, db: shaped as X, W and b.
    intermediate_output_grad: shaped as intermediate_output, for the scores before each softmax.
    """

    def shape(
        X: Spec, W: Spec, b: Spec, labels: Spec, intermediate_output: Spec, dY: Spec
    ) -> tuple[Spec, ...]:
        _check(X, W, b)
        require_rank("intermediate_output", intermediate_output, 1)
        for name, spec in (("labels", labels), ("dY", dY)):
            if spec.shape != X.shape[:1]:
                raise OperatorError(name, f"has shape {spec.shape}; X has {X.shape}")
        return X, W, b, intermediate_output

    def reference(
        X: Array,
        W: Array,
        b: Array,
        labels: Array,
        intermediate_output: Array,
        dY: Array,
        op: OpView,
    ) -> tuple[Array, ...]:
        ways = _ways(_paths(op, len(W)), labels)
        needed = sum(count for way in ways for _, count, _ in way)
        if needed != intermediate_output.size:
            problem = f"has shape {intermediate_output.shape}; {needed} values are needed"
            raise OperatorError("intermediate_output", problem)
        scores = intermediate_output.astype(np.float64)
        dx, dw, db = (np.zeros(each.shape) for each in (X, W, b))
        at = 0
        for n, way in enumerate(ways):
            for first, count, target in way:
                own, rows = slice(at, at + count), slice(first, first + count)
                scores[own.start + target] -= 1
                scores[own] *= float(dY[n])
                dx[n] += scores[own] @ W[rows]
                dw[rows] += np.outer(scores[own], X[n])
                db[rows] += scores[own]
                at += count
        return tuple(each.astype(X.dtype) for each in (dx, dw, db, scores))


@operator(
    "HSoftmaxSearch",
    inputs="X W b",
    outputs="Y_names Y_scores",
    args={"tree": Str(required=True), "beam": Float(0.01), "topN": Int(5, min=1)},
    types={"X": FLOAT, "W": FLOAT, "b": FLOAT},
    native=False,
)
class HSoftmaxSearch:
    """The most likely nodes and words of a tree.

    X, W, b: as for HSoftmax.  tree: a TreeProto; each node has the rows from its offset on, one
    for each node below it and then one for each of its words.
    beam: what is less likely than e^-beam, seen from the node above it, is passed over with all
    below it.
    Y_names: strings (N, topN), names of nodes and numbers of words, the most likely ones first;
    empty where there are not so many.  Y_scores: float (N, topN), -log of their probabilities.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(X: Spec, W: Spec, b: Spec, op: OpView) -> tuple[Spec, Spec]:
        _check(X, W, b)
        shape = (X.shape[0], op.args.topN)
        return Spec(shape, np.dtype(object)), Spec(shape, X.dtype)

    def reference(X: Array, W: Array, b: Array, op: OpView) -> tuple[Array, Array]:
        root = _message("TreeProto", "tree", op.args.tree).root_node
        names = np.full((len(X), op.args.topN), b"", object)
        scores = np.zeros(names.shape, np.float32)
        for n, x in enumerate(X.astype(np.float64)):
            found: list[tuple[float, bytes]] = []
            _search(root, 0.0, x, W, b, op.args.beam, found)
            for k, (score, name) in enumerate(sorted(found)[: op.args.topN]):
                names[n, k], scores[n, k] = name, score
        return names, scores


def _search(
    node: Any, above: float, x: Array, W: Array, b: Array, beam: float, found: list[Any]
) -> None:
    count = len(node.children) + len(node.word_ids)
    rows = slice(node.offset, node.offset + count)
    if not 0 <= node.offset <= len(W) - count:
        problem = f"has {count} rows from row {node.offset} on; W has {len(W)}"
        raise OperatorError("argument 'tree'", problem)
    if not count:
        return
    losses = -np.log(np.maximum(_softmax(W[rows] @ x + b[rows]), _SMALLEST))
    names = [child.name for child in node.children] + [str(word) for word in node.word_ids]
    for k, (loss, name) in enumerate(zip(losses.tolist(), names, strict=True)):
        if loss > beam:
            continue
        found.append((above + loss, name.encode()))
        if k < len(node.children):
            _search(node.children[k], above + loss, x, W, b, beam, found)


@operator(
    "HuffmanTreeHierarchy",
    inputs="Labels",
    outputs="Hierarch",
    args={"num_classes": Int(required=True, min=1, max=INT64_MAX)},
    types={"Labels": INT64},
    native=False,
)
class HuffmanTreeHierarchy:
    """A tree in which frequent labels have short paths (Huffman, 1952).

    Labels: int64, any shape, each 0 <= label < num_classes.
    Hierarch: a string (1,), a TreeProto whose nodes have two branches.
    """

    def shape(Labels: Spec) -> Spec:
        return Spec((1,), np.dtype(object))

    def reference(Labels: Array, op: OpView) -> Array:
        from caffe2.proto import hsm_pb2

        count, labels = op.args.num_classes, Labels.reshape(-1)
        if count > 2**24:
            raise OperatorError("argument 'num_classes'", f"is {count}; 2^24 is the most")
        if ((labels < 0) | (labels >= count)).any():
            raise OperatorError("Labels", f"holds a label that is not in [0, {count})")
        # Of equal counts the node that was made of others comes first.
        heap: list[tuple[int, int, int, Any]] = [
            (int(n), 1, label, None) for label, n in enumerate(np.bincount(labels, minlength=count))
        ]
        heapq.heapify(heap)
        made = 0
        while len(heap) > 1:
            first, second = heapq.heappop(heap), heapq.heappop(heap)
            node = hsm_pb2.NodeProto()
            for _, is_word, label, below in (first, second):
                if is_word:
                    node.word_ids.append(label)
                else:
                    node.children.append(below)
            heapq.heappush(heap, (first[0] + second[0], 0, made, node))
            made += 1
        tree = hsm_pb2.TreeProto()
        if heap[0][3] is None:
            tree.root_node.word_ids.append(0)
        else:
            tree.root_node.CopyFrom(heap[0][3])
        _set_offsets(tree.root_node, 0)
        found = np.empty(1, object)
        found[0] = tree.SerializeToString()
        return found


def _set_offsets(node: Any, offset: int) -> int:
    """Rows for the nodes, each before those below it; the first row that is left."""
    node.offset = offset
    offset += len(node.children) + len(node.word_ids)
    for child in node.children:
        offset = _set_offsets(child, offset)
    return offset
