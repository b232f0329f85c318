"""A net as a graph: for pydot (extra `pictures`), in the DOT language, and for `svg`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from caffe2.proto import caffe2_pb2

if TYPE_CHECKING:
    import pydot

OP_STYLE = {"shape": "box", "color": "#0F9D58", "style": "filled", "fontcolor": "#FFFFFF"}
BLOB_STYLE = {"shape": "octagon"}

OpNode = Callable[[caffe2_pb2.OperatorDef, int], Any]
BlobNode = Callable[[str, str], Any]


class Node(NamedTuple):
    """An operator and its place in the net, or a blob as one operator wrote it."""

    key: str
    label: str
    op: caffe2_pb2.OperatorDef | None = None
    place: int = 0


@dataclass
class Graph:
    """Nodes by key, in the order of the net, and edges between keys, in that of the data."""

    name: str
    nodes: dict[str, Node] = field(default_factory=dict)
    edges: dict[tuple[str, str], None] = field(default_factory=dict)


def net_graph(operators_or_net: Any, blobs: str = "all") -> Graph:
    """The graph of a Net, a NetDef, or a list of OperatorDefs.

    A blob that is written twice appears twice, so that the graph has no cycles.

    blobs  which of them are nodes: "all", those that come from "outside", or "none"; where a blob
           is no node, edges go from the operator that writes it to those that read it
    """
    operators, name = _operators(operators_or_net)
    graph = Graph(name)
    writes: Counter[str] = Counter()
    source: dict[str, str] = {}  # the node that stands for each blob at this point of the net

    def add_blob(blob: str) -> str:
        key = f"{blob}{writes[blob]}"
        while key in graph.nodes:  # blob "x1" and the eleventh value of "x"
            key += "'"
        writes[blob] += 1
        graph.nodes[key] = Node(key, blob)
        return key

    for index, op in enumerate(operators):
        box = _op_name(op, index)
        graph.nodes[box] = Node(box, op.type, op, index)
        for blob in op.input:
            if blob not in source and blobs != "none":
                source[blob] = add_blob(blob)
            if blob in source:
                graph.edges[source[blob], box] = None
        for blob in op.output:
            source[blob] = box
            if blobs == "all":
                source[blob] = add_blob(blob)
                graph.edges[box, source[blob]] = None
    return graph


def _op_name(op: caffe2_pb2.OperatorDef, index: int) -> str:
    return f"{op.name}/{op.type} (op#{index})" if op.name else f"{op.type} (op#{index})"


def _operators(operators_or_net: Any) -> tuple[Sequence[caffe2_pb2.OperatorDef], str]:
    if hasattr(operators_or_net, "Proto"):
        operators_or_net = operators_or_net.Proto()
    if isinstance(operators_or_net, caffe2_pb2.NetDef):
        return operators_or_net.op, operators_or_net.name or "net"
    return list(operators_or_net), "net"


def to_dot(
    operators_or_net: Any, name: str | None = None, rankdir: str = "LR", minimal: bool = False
) -> str:
    """The net in the DOT language, for Graphviz and the many programs that read it.

    rankdir  "LR" from left to right, "TB" from top to bottom
    minimal  operators only
    """
    graph = net_graph(operators_or_net, "none" if minimal else "all")
    lines = [f"digraph {_quoted(name or graph.name)} {{", f"rankdir={rankdir};"]
    for node in graph.nodes.values():
        style = OP_STYLE if node.op is not None else {"label": node.label, **BLOB_STYLE}
        listed = ", ".join(f"{key}={_quoted(value)}" for key, value in style.items())
        lines.append(f"{_quoted(node.key)} [{listed}];")
    lines += [f"{_quoted(start)} -> {_quoted(end)};" for start, end in graph.edges]
    return "\n".join([*lines, "}", ""])


def GetOpNodeProducer(append_output: bool, **kwargs: Any) -> OpNode:
    """A function that makes the node of an operator from the operator and its index.

    append_output: also name the outputs; kwargs: attributes of the node, as Graphviz has them.
    """
    module = _pydot()

    def node(op: caffe2_pb2.OperatorDef, index: int) -> Any:
        outputs = f" --> [{', '.join(op.output)}]" if append_output else ""
        return module.Node(_quoted(_op_name(op, index) + outputs), **kwargs)

    return node


def GetBlobNodeProducer(**kwargs: Any) -> BlobNode:
    """A function that makes the node of a blob from its name in the picture and its label."""
    module = _pydot()

    def node(name: str, label: str) -> Any:
        return module.Node(_quoted(name), label=_quoted(label), **kwargs)

    return node


def GetPydotGraph(
    operators_or_net: Any,
    name: str | None = None,
    rankdir: str = "LR",
    op_node_producer: OpNode | None = None,
    blob_node_producer: BlobNode | None = None,
) -> pydot.Dot:
    """The graph of a Net, a NetDef, or a list of OperatorDefs.

    Operators are boxes and blobs octagons.  A blob that is written twice appears twice, so that
    the graph has no cycles.  rankdir: "LR" from left to right, "TB" from top to bottom.  The
    graph's `write_svg`, `write_png` need the program `dot`; `to_string` does not.
    ImportError without pydot.
    """
    graph = net_graph(operators_or_net)
    return _pydot_graph(graph, name, rankdir, op_node_producer, blob_node_producer)


def GetPydotGraphMinimal(
    operators_or_net: Any,
    name: str | None = None,
    rankdir: str = "LR",
    minimal_dependency: bool = False,
    op_node_producer: OpNode | None = None,
) -> pydot.Dot:
    """The same for operators only.  `minimal_dependency` leaves out edges that follow from
    others, where a longer path joins the same operators."""
    graph = net_graph(operators_or_net, "none")
    if minimal_dependency:
        graph.edges = dict.fromkeys(_without_shortcuts(graph))
    return _pydot_graph(graph, name, rankdir, op_node_producer)


def _without_shortcuts(graph: Graph) -> Iterable[tuple[str, str]]:
    inputs: dict[str, list[str]] = {key: [] for key in graph.nodes}
    for start, end in graph.edges:
        inputs[end].append(start)
    above: dict[str, set[str]] = {}
    for key in graph.nodes:  # operators are in the order in which they run
        above[key] = set(inputs[key]).union(*(above[start] for start in inputs[key]))
        for start in inputs[key]:
            if not any(start in above[other] for other in inputs[key]):
                yield start, key


def _pydot_graph(
    graph: Graph,
    name: str | None,
    rankdir: str,
    op_node_producer: OpNode | None,
    blob_node_producer: BlobNode | None = None,
) -> pydot.Dot:
    module = _pydot()
    op_node = op_node_producer or GetOpNodeProducer(False, **OP_STYLE)
    blob_node = blob_node_producer or GetBlobNodeProducer(**BLOB_STYLE)
    drawn: pydot.Dot = module.Dot(_quoted(name or graph.name), rankdir=rankdir)
    made = {}
    for key, label, op, place in graph.nodes.values():
        made[key] = blob_node(key, label) if op is None else op_node(op, place)
        drawn.add_node(made[key])
    for start, end in graph.edges:
        drawn.add_edge(module.Edge(made[start], made[end]))
    return drawn


def _quoted(text: str) -> str:
    """As Graphviz wants it; unquoted, a colon would separate a name from a port."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _pydot() -> Any:
    try:
        import pydot
    except ImportError:
        raise ImportError(
            "pictures of nets need pydot: pip install 'caffe2-today[pictures]'; "
            "caffe2.graph.svg.to_svg draws without it",
            name="pydot",
        ) from None
    return pydot
