"""Pictures of nets with Graphviz, through pydot (extra `pictures`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from caffe2.proto import caffe2_pb2

if TYPE_CHECKING:
    import pydot

OP_STYLE = {"shape": "box", "color": "#0F9D58", "style": "filled", "fontcolor": "#FFFFFF"}
BLOB_STYLE = {"shape": "octagon"}

OpNode = Callable[[caffe2_pb2.OperatorDef, int], Any]
BlobNode = Callable[[str, str], Any]


def GetOpNodeProducer(append_output: bool, **kwargs: Any) -> OpNode:
    """A function that makes the node of an operator from the operator and its index.

    append_output: also name the outputs; kwargs: attributes of the node, as Graphviz has them.
    """
    pydot = _pydot()

    def node(op: caffe2_pb2.OperatorDef, index: int) -> Any:
        name = f"{op.name}/{op.type}" if op.name else op.type
        name += f" (op#{index})"
        if append_output:
            name += f" --> [{', '.join(op.output)}]"
        return pydot.Node(_quoted(name), **kwargs)

    return node


def GetBlobNodeProducer(**kwargs: Any) -> BlobNode:
    """A function that makes the node of a blob from its name in the picture and its label."""
    pydot = _pydot()

    def node(name: str, label: str) -> Any:
        return pydot.Node(_quoted(name), label=_quoted(label), **kwargs)

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
    module = _pydot()
    op_node = op_node_producer or GetOpNodeProducer(False, **OP_STYLE)
    blob_node = blob_node_producer or GetBlobNodeProducer(**BLOB_STYLE)
    operators, net_name = _operators(operators_or_net)
    graph: pydot.Dot = module.Dot(_quoted(name or net_name), rankdir=rankdir)
    nodes: dict[str, Any] = {}  # of the blobs, as they are at this point of the net
    writes: Counter[str] = Counter()

    def add_blob(blob: str) -> Any:
        nodes[blob] = blob_node(f"{blob}{writes[blob]}", blob)
        graph.add_node(nodes[blob])
        writes[blob] += 1
        return nodes[blob]

    for index, op in enumerate(operators):
        box = op_node(op, index)
        graph.add_node(box)
        for blob in op.input:
            graph.add_edge(module.Edge(nodes.get(blob) or add_blob(blob), box))
        for blob in op.output:
            graph.add_edge(module.Edge(box, add_blob(blob)))
    return graph


def _operators(operators_or_net: Any) -> tuple[Sequence[caffe2_pb2.OperatorDef], str]:
    if hasattr(operators_or_net, "Proto"):
        operators_or_net = operators_or_net.Proto()
    if isinstance(operators_or_net, caffe2_pb2.NetDef):
        return operators_or_net.op, operators_or_net.name
    return list(operators_or_net), "net"


def _quoted(text: str) -> str:
    """As Graphviz wants it; unquoted, a colon would separate a name from a port."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _pydot() -> Any:
    try:
        import pydot
    except ImportError:
        raise ImportError(
            "pictures of nets need pydot: pip install 'caffe2-today[pictures]'", name="pydot"
        ) from None
    return pydot
