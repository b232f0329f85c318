"""A picture of a net as SVG text, with nothing but the standard library.

Operators stand in layers, each below those whose blobs it reads.  Within a layer they are ordered
and placed near what they are connected with (the method of Sugiyama, Tagawa and Toda, 1981: long
edges pass through invisible nodes, layers are sorted by the mean position of neighbours).  Deep
nets are cut into columns; an edge that is cut goes on in the next one at the same number.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from caffe2.graph.drawing import Graph, Node, net_graph

_CHARACTER, _PADDING = 7.2, 20.0  # width of a letter, and of a box besides its text
_BOX, _GAP, _LAYER, _MARGIN = 36.0, 22.0, 74.0, 20.0
_ELLIPSE = 12.0  # half its height
_SWEEPS = 12
_LONGEST_LABEL = 28
_TALL = 40  # layers that are not cut into columns
_STUB = 12.0  # what is seen of an edge that is cut


@dataclass
class _Place:
    """A node, or (without one) a point that a long edge passes through."""

    node: Node | None
    layer: int
    width: float
    x: float = 0.0
    column: int = 0
    above: list[_Place] = field(default_factory=list)
    below: list[_Place] = field(default_factory=list)

    @property
    def top(self) -> float:
        return _MARGIN + self.layer * _LAYER

    @property
    def bottom(self) -> float:
        whole = self.node is None or self.node.op is not None
        return self.top + (_BOX if whole else _BOX / 2 + _ELLIPSE)


def to_svg(operators_or_net: Any, parameters: bool = True) -> str:
    """A Net, NetDef or list of operators as a picture.

    Boxes are operators, with the names of the blobs they write; ellipses are the blobs that come
    from outside, such as data and parameters.

    parameters  whether blobs from outside are drawn that are no operator's first input
    """
    graph = net_graph(operators_or_net, "outside")
    if not parameters:
        _drop_parameters(graph)
    layers, edges = _layered(graph.nodes, graph.edges)
    _order(layers)
    _arrange(layers)
    places = [place for layer in layers for place in layer]
    rows = _fold(layers)
    left = min((place.x - place.width / 2 for place in places), default=0) - _MARGIN
    right = max((place.x + place.width / 2 for place in places), default=0) + _MARGIN
    height = 2 * _MARGIN + max(rows - 1, 0) * _LAYER + _BOX
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{right - left:.0f}" '
        f'height="{height:.0f}" viewBox="{left:.1f} 0 {right - left:.1f} {height:.1f}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="12" text-anchor="middle">',
        f"<title>{escape(graph.name)}</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#78909c"/></marker></defs>',
        f'<rect x="{left:.1f}" width="100%" height="100%" fill="#ffffff"/>',
        *_curves(edges),
        *(_box(place, place.node) for place in places if place.node is not None),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _drop_parameters(graph: Graph) -> None:
    first = {op.input[0] for node in graph.nodes.values() if (op := node.op) and op.input}
    for key, node in list(graph.nodes.items()):
        if node.op is None and node.label not in first:
            del graph.nodes[key]
    for edge in list(graph.edges):
        if edge[0] not in graph.nodes:
            del graph.edges[edge]


def _layered(
    nodes: dict[str, Node], edges: Iterable[tuple[str, str]]
) -> tuple[list[list[_Place]], list[list[_Place]]]:
    """Places by layer, and each edge as the places it goes through."""
    inputs: dict[str, list[str]] = {key: [] for key in nodes}
    readers: dict[str, list[str]] = {key: [] for key in nodes}
    for start, end in edges:
        inputs[end].append(start)
        readers[start].append(end)
    depth: dict[str, int] = {}
    for key, node in nodes.items():  # operators are in the order in which they run
        if node.op is not None:
            depth[key] = max(
                (depth[start] + 1 for start in inputs[key] if start in depth), default=1
            )
    for key, node in nodes.items():
        if node.op is None:  # right above its first reader
            depth[key] = min((depth[end] for end in readers[key]), default=1) - 1
    layers: list[list[_Place]] = [[] for _ in range(max(depth.values(), default=0) + 1)]
    places = {}
    for key, node in nodes.items():
        longest = max(map(len, _lines(node)))
        places[key] = _Place(node, depth[key], longest * _CHARACTER + _PADDING)
        layers[depth[key]].append(places[key])
    routes = []
    for start, end in edges:
        route = [places[start]]
        for layer in range(depth[start] + 1, depth[end]):
            route.append(_Place(None, layer, 4.0))
            layers[layer].append(route[-1])
        route.append(places[end])
        for upper, lower in itertools.pairwise(route):
            upper.below.append(lower)
            lower.above.append(upper)
        routes.append(route)
    layers = [layer for layer in layers if layer]
    for index, filled in enumerate(layers):
        for place in filled:
            place.layer = index
    return layers, routes


def _order(layers: Sequence[list[_Place]]) -> None:
    """Sorts every layer so that few edges cross; `x` is the position in the order."""
    for layer in layers:
        for index, place in enumerate(layer):
            place.x = index
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else layers[::-1]:
            layer.sort(key=lambda place: _mean(place.above if down else place.below, place.x))
            for index, place in enumerate(layer):
                place.x = index


def _mean(neighbours: Sequence[_Place], otherwise: float) -> float:
    return sum(p.x for p in neighbours) / len(neighbours) if neighbours else otherwise


def _arrange(layers: Sequence[list[_Place]]) -> None:
    """Gives every place its `x`: near the mean of its neighbours, without overlap."""
    for layer in layers:
        _spread(layer, [0.0] * len(layer))
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else layers[::-1]:
            _spread(layer, [_mean(p.above if down else p.below, p.x) for p in layer])


def _fold(layers: Sequence[list[_Place]]) -> int:
    """Cuts many layers into columns, side by side; how many rows there are then."""
    places = [place for layer in layers for place in layer]
    if len(layers) <= _TALL:
        return len(layers)
    left = min(place.x - place.width / 2 for place in places)
    width = max(place.x + place.width / 2 for place in places) - left + 2 * _GAP
    columns = max(1, round(math.sqrt(1.5 * len(layers) * _LAYER / width)))
    rows = max(_TALL // 2, math.ceil(len(layers) / columns))
    for place in places:
        place.column, place.layer = divmod(place.layer, rows)
        place.x += place.column * width - left
    return rows


def _spread(layer: Sequence[_Place], wanted: Sequence[float]) -> None:
    """Moves the places of a layer to `wanted`, or as near as their widths and order allow (the
    least sum of squares: neighbours that would overlap share their mean)."""
    offsets = list(itertools.accumulate((p.width + _GAP for p in layer), initial=0.0))
    blocks: list[tuple[float, int]] = []  # sum and number of the positions in it
    for place, goal, offset in zip(layer, wanted, offsets, strict=False):
        total, count = goal - place.width / 2 - offset, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            total, count = total + blocks[-1][0], count + blocks[-1][1]
            blocks.pop()
        blocks.append((total, count))
    positions = [total / count for total, count in blocks for _ in range(count)]
    for place, position, offset in zip(layer, positions, offsets, strict=False):
        place.x = position + offset + place.width / 2


def _lines(node: Node) -> list[str]:
    written = ", ".join(node.op.output) if node.op is not None else ""
    return [
        line if len(line) <= _LONGEST_LABEL else line[: _LONGEST_LABEL - 1] + "…"
        for line in (node.label, written)
        if line
    ]


def _box(place: _Place, node: Node) -> str:
    left, middle = place.x - place.width / 2, place.top + _BOX / 2
    lines = _lines(node)
    hint = escape(node.label if node.op is None else f"{node.key}: {', '.join(node.op.output)}")
    if node.op is not None:
        shape = (
            f'<rect x="{left:.1f}" y="{place.top:.1f}" width="{place.width:.1f}" height="{_BOX}" '
            'rx="4" fill="#0f9d58"/>'
        )
        color = "#ffffff"
    else:
        shape = (
            f'<ellipse cx="{place.x:.1f}" cy="{middle:.1f}" rx="{place.width / 2:.1f}" '
            f'ry="{_ELLIPSE}" fill="#eceff1" stroke="#90a4ae"/>'
        )
        color = "#263238"
    texts = []
    for row, line in enumerate(lines):
        baseline = middle + 4 + 14 * (row - (len(lines) - 1) / 2)
        weight = ' font-weight="bold"' if node.op is not None and row == 0 else ""
        at = f'x="{place.x:.1f}" y="{baseline:.1f}"'
        texts.append(f'<text {at} fill="{color}"{weight}>{escape(line)}</text>')
    return f"<g><title>{hint}</title>{shape}{''.join(texts)}</g>"


def _curves(edges: Iterable[Sequence[_Place]]) -> Iterable[str]:
    """Edges, those that are cut in pieces with the same number at both ends of the cut."""
    numbers: dict[tuple[int, int], int] = {}
    for route in edges:
        start = 0
        for at in range(1, len(route)):
            column = route[at].column
            if column != route[at - 1].column:
                number = numbers.setdefault((id(route[0]), column), len(numbers) + 1)
                yield _curve(route[start:at], begins=start == 0, ends=False)
                yield _label(route[at - 1].x, route[at - 1].bottom + _STUB, number)
                yield _label(route[at].x, route[at].top - _STUB, number)
                start = at
        yield _curve(route[start:], begins=start == 0, ends=True)


def _label(x: float, y: float, number: int) -> str:
    at = f'x="{x + 4:.1f}" y="{y + 4:.1f}"'
    return f'<text {at} font-size="10" text-anchor="start" fill="#546e7a">{number}</text>'


def _curve(route: Sequence[_Place], begins: bool, ends: bool) -> str:
    """A piece of an edge: from the lower end of the first place to the upper end of the last.

    begins, ends  whether these are those of the whole edge; else it goes on, a little, from the
                  upper end of the first and to below the last
    """
    points = [(route[0].x, route[0].bottom)]
    if not begins:
        first = route[0]
        points = [(first.x, first.top - _STUB), (first.x, first.top)]
        if len(route) > 1 or not ends:
            points.append((first.x, first.bottom))
    for place in route[1:-1]:
        points += [(place.x, place.top), (place.x, place.bottom)]
    if len(route) > 1:
        points.append((route[-1].x, route[-1].top))
    if not ends:
        last = route[-1]
        points += [(last.x, last.bottom), (last.x, last.bottom + _STUB)]
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        if x0 == x1:
            path += f"V{y1:.1f}"
        else:
            half = (y1 - y0) / 2
            path += f"C{x0:.1f} {y0 + half:.1f} {x1:.1f} {y1 - half:.1f} {x1:.1f} {y1:.1f}"
    tip = ' marker-end="url(#tip)"' if ends else ""
    return f'<path d="{path}" fill="none" stroke="#78909c"{tip}/>'
