"""Pictures of nets that need no other program: SVG and DOT."""

from __future__ import annotations

import itertools
import re
import sys
from xml.etree import ElementTree

import pytest

from caffe2.python import core, net_drawer

SVG = "{http://www.w3.org/2000/svg}"


def residual_net():
    net = core.Net("drawn")
    net.FC(["data", "w", "b"], "h")
    net.Relu("h", "h")
    net.Sum(["h", "data"], "s")
    net.Softmax("s", "p & q")
    return net


def boxes(svg):
    """(first word, left, top, right, bottom) of every box and ellipse."""
    found = []
    for group in ElementTree.fromstring(svg).findall(f"{SVG}g"):
        label = group.find(f"{SVG}text").text
        rect, ellipse = group.find(f"{SVG}rect"), group.find(f"{SVG}ellipse")
        if rect is not None:
            x, y, w, h = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
            found.append((label, x, y, x + w, y + h))
        else:
            x, y, rx, ry = (float(ellipse.get(key)) for key in ("cx", "cy", "rx", "ry"))
            found.append((label, x - rx, y - ry, x + rx, y + ry))
    return found


def test_row_B8_a_net_as_svg():
    svg = net_drawer.to_svg(residual_net())
    found = {label: (left, top, right, bottom) for label, left, top, right, bottom in boxes(svg)}
    assert set(found) == {"data", "w", "b", "FC", "Relu", "Sum", "Softmax"}
    order = [found[name][1] for name in ("data", "FC", "Relu", "Sum", "Softmax")]
    assert order == sorted(order) and len(set(order)) == 5
    for one, other in itertools.combinations(found.values(), 2):
        apart = one[2] < other[0] or other[2] < one[0] or one[3] < other[1] or other[3] < one[1]
        assert apart, (one, other)
    root = ElementTree.fromstring(svg)
    left, top, width, height = map(float, root.get("viewBox").split())
    for box in found.values():
        assert left <= box[0] and box[2] <= left + width and top <= box[1] and box[3] <= height
    edges = [path for path in root.findall(f"{SVG}path") if path.get("marker-end")]
    assert len(edges) == 7
    assert "p &amp; q" in svg


def test_edges_go_from_box_to_box():
    svg = net_drawer.to_svg(residual_net())
    ends = [re.findall(r"-?\d+\.\d", path.get("d"))[-2:]
            for path in ElementTree.fromstring(svg).findall(f"{SVG}path")]  # fmt: skip
    tops = {round(top, 1) for _, _, top, _, _ in boxes(svg)}
    assert {float(y) for _, y in ends} <= tops


@pytest.mark.parametrize("what", [[], core.Net("empty")])
def test_nothing_is_drawn_as_nothing(what):
    assert boxes(net_drawer.to_svg(what)) == []


def test_row_B8_a_net_as_dot():
    dot = net_drawer.to_dot(residual_net(), name="drawn", rankdir="TB")
    assert dot.splitlines()[:2] == ['digraph "drawn" {', "rankdir=TB;"]
    for line in (
        '"FC (op#0)" [shape="box", color="#0F9D58", style="filled", fontcolor="#FFFFFF"];',
        '"h1" [label="h", shape="octagon"];',
        '"h0" -> "Relu (op#1)";',
        '"Relu (op#1)" -> "h1";',
        '"h1" -> "Sum (op#2)";',
    ):
        assert line in dot.splitlines()
    minimal = net_drawer.to_dot(residual_net().Proto().op, name='say "hi"', minimal=True)
    assert minimal.splitlines()[0] == r'digraph "say \"hi\"" {'
    assert [line for line in minimal.splitlines() if "->" in line] == [
        '"FC (op#0)" -> "Relu (op#1)";',
        '"Relu (op#1)" -> "Sum (op#2)";',
        '"Sum (op#2)" -> "Softmax (op#3)";',
    ]


def test_blobs_with_numbers_in_their_names_stay_apart():
    net = core.Net("numbers")
    net.Relu("x1", "y")
    for _ in range(11):
        net.Relu("x", "x")
    labels = re.findall(r'^"(.*)" \[label="(x1?)"', net_drawer.to_dot(net), re.M)
    assert len({key for key, _ in labels}) == len(labels) == 13


def test_minimal_graphs_leave_out_shortcuts():
    pytest.importorskip("pydot")
    net = core.Net("shortcut")
    net.Relu("x", "a")
    net.Relu("a", "b")
    net.Sum(["a", "b"], "c")

    def edges(**options):
        return len(net_drawer.GetPydotGraphMinimal(net, **options).get_edges())

    assert (edges(), edges(minimal_dependency=True)) == (3, 2)


def test_without_pydot_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydot", None)
    with pytest.raises(ImportError, match=r"pip install .*to_svg draws without it"):
        net_drawer.GetPydotGraph(residual_net())


def test_deep_nets_are_cut_into_columns():
    net = core.Net("deep")
    for i in range(120):
        net.FC([f"x{i}", f"w{i}", f"b{i}"], f"x{i + 1}")
        if i % 10 == 9:
            net.Sum([f"x{i + 1}", f"x{i - 5}"], f"x{i + 1}")
    svg = net_drawer.to_svg(net, parameters=False)
    found = boxes(svg)
    assert [label for label, *_ in found].count("FC") == 120
    assert {label for label, *_ in found} == {"FC", "Sum", "x0"}
    for one, other in itertools.combinations(found, 2):
        _, *a = one
        _, *b = other
        assert a[2] < b[0] or b[2] < a[0] or a[3] < b[1] or b[3] < a[1], (one, other)
    root = ElementTree.fromstring(svg)
    _, _, width, height = map(float, root.get("viewBox").split())
    assert 1 / 3 < width / height < 3
    numbers = [text.text for text in root.findall(f"{SVG}text")]
    assert numbers and all(numbers.count(number) % 2 == 0 for number in numbers)
    ends = [path for path in root.findall(f"{SVG}path") if path.get("marker-end")]
    assert len(ends) == 120 + 2 * 12
