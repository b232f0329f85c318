"""Pictures of nets."""

from __future__ import annotations

import shutil

import pytest

pytest.importorskip("pydot")

from caffe2.python import core, net_drawer


def small_net():
    net = core.Net("drawn")
    net.Relu("x", "y", name="first")
    net.FC(["y", "w", "b"], "z")
    net.Relu("z", "z")
    return net


def edges(graph):
    return [
        (edge.get_source().strip('"'), edge.get_destination().strip('"'))
        for edge in graph.get_edges()
    ]


def test_graph_has_operators_and_each_value_of_a_blob():
    graph = net_drawer.GetPydotGraph(small_net(), name="picture")
    assert edges(graph) == [
        ("x0", "first/Relu (op#0)"),
        ("first/Relu (op#0)", "y0"),
        ("y0", "FC (op#1)"),
        ("w0", "FC (op#1)"),
        ("b0", "FC (op#1)"),
        ("FC (op#1)", "z0"),
        ("z0", "Relu (op#2)"),
        ("Relu (op#2)", "z1"),
    ]
    assert (graph.get_name(), graph.get_rankdir()) == ('"picture"', "LR")
    [z1] = graph.get_node('"z1"')
    assert (z1.get_label(), z1.get_shape()) == ('"z"', "octagon")


def test_styles_can_be_given_and_outputs_named():
    graph = net_drawer.GetPydotGraph(
        small_net().Proto().op,
        op_node_producer=net_drawer.GetOpNodeProducer(True, shape="oval"),
        blob_node_producer=net_drawer.GetBlobNodeProducer(shape="box"),
    )
    [node] = graph.get_node('"FC (op#1) --> [z]"')
    assert node.get_shape() == "oval"


def test_names_with_colons_and_quotes_stay_whole():
    net = core.Net("odd")
    net.Relu("gpu:0/x", 'say "y"')
    graph = net_drawer.GetPydotGraph(net)
    assert edges(graph) == [("gpu:0/x0", "Relu (op#0)"), ("Relu (op#0)", 'say \\"y\\"0')]
    assert '"gpu:0/x0" -> "Relu (op#0)"' in graph.to_string()


def test_an_input_that_is_overwritten_keeps_its_first_value():
    net = core.Net("inplace")
    net.Relu("x", "x")
    assert edges(net_drawer.GetPydotGraph(net)) == [("x0", "Relu (op#0)"), ("Relu (op#0)", "x1")]


@pytest.mark.skipif(shutil.which("dot") is None, reason="the program dot is not installed")
def test_svg_is_written(tmp_path):
    net_drawer.GetPydotGraph(small_net()).write_svg(str(tmp_path / "net.svg"))
    assert "FC (op#1)" in (tmp_path / "net.svg").read_text().replace("&#45;", "-")
