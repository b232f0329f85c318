"""Checks of a net without running it, and shape inference."""

from __future__ import annotations

import numpy as np
import pytest

from caffe2.graph.model import Model
from caffe2.graph.shapes import infer_shapes
from caffe2.graph.verify import verify, verify_model
from caffe2.ops.declaration import Spec
from caffe2.proto import caffe2_pb2
from caffe2.python import core

FLOAT = np.dtype(np.float32)


def floats(**shapes):
    return {name: Spec(shape, FLOAT) for name, shape in shapes.items()}


def net_def(*operators, inputs="x"):
    net = caffe2_pb2.NetDef(name="checked", external_input=inputs.split())
    for kind, sources, targets, *rest in operators:
        net.op.append(
            core.CreateOperator(kind, sources.split(), targets.split(), **(rest[0] if rest else {}))
        )
    return net


def test_a_net_that_is_right_has_no_problems():
    net = net_def(("FC", "x w b", "y", {"note": 1}), ("Relu", "y", "y"), inputs="x w b")
    net.external_output.append("y")
    specs = floats(x=(2, 3), w=(4, 3), b=(4,))
    assert verify(net) == []
    assert verify(net, specs=specs) == []


@pytest.mark.parametrize(
    ("operator", "problem"),
    [
        (("Reluu", "x", "y"), "no operator is called 'Reluu'; did you mean Relu"),
        (("Relu", "x x", "y"), "has 2 inputs (x, x); allowed are 1 (X)"),
        (("Softmax", "x", "y z"), "has 2 outputs (y, z); allowed are 1"),
        (("Softmax", "x", "x"), "Y ('x') cannot overwrite input X; allowed in place"),
        (("MaxPool", "x", "y", {"stride": 0}), "argument 'stride' is 0; allowed is 1 <= stride"),
        (("MaxPool", "x", "y", {"kernel": "big"}), "argument 'kernel' holds no Int"),
        (("SoftmaxWithLoss", "x x", "y y"), "outputs 0 and 1 are the same blob 'y'"),
        (("Relu", "xx", "y"), "input 0 'xx' is neither an external input nor written by an "
                              "earlier operator; did you mean x?"),
        (("Relu", "late", "y"), "input 0 'late' is neither an external input nor written by an "
                                "earlier operator; a later operator writes it"),
    ],
)  # fmt: skip
def test_problems_name_operator_place_and_line(operator, problem):
    net = net_def(("Relu", "x", "a"), operator, ("Relu", "a", "late"))
    [line] = verify(net, sites=["first.py:1", "second.py:2", "third.py:3"])
    assert line.startswith(f'net "checked", #1 {operator[0]} (second.py:2): {problem}')


def test_an_argument_given_twice():
    net = net_def(("Scale", "x", "y", {"scale": 2.0}))
    again = net.op[0].arg.add(name="scale", f=2.0)
    assert verify(net) == []
    again.f = 3.0
    [line] = verify(net)
    assert line.endswith("Scale: argument 'scale' is given twice with different contents")


def test_all_problems_are_listed_in_order():
    net = net_def(("Relu", "a b", "y"), ("Relu", "c", "z"), ("Nope", "z", "q"))
    net.external_output.extend(["q", "zz"])
    lines = verify(net)
    assert [line.partition(",")[2][1:3] for line in lines[:-1]] == ["#0", "#0", "#0", "#1", "#2"]
    assert "external output 'zz' is written by no operator" in lines[-1]


def test_a_net_without_a_name():
    net = net_def(("Nope", "x", "y"))
    net.ClearField("name")
    net.external_output.append("z")
    first, second = verify(net)
    assert first.startswith("an unnamed net, #0 Nope: ")
    assert second.startswith("an unnamed net: external output 'z' ")


def test_shapes_of_a_model_are_inferred_once_a_net(monkeypatch):
    inferred = []

    def spy(net, known):
        inferred.append(net.name)
        return infer_shapes(net, known)

    monkeypatch.setattr("caffe2.graph.verify.infer_shapes", spy)
    model = Model(caffe2_pb2.NetDef(name="init"), net_def(("Relu", "x", "y")))
    model.predict.external_output.append("y")
    assert verify_model(model, floats(x=(1,))) == []
    assert inferred == ["init", "checked"]


def test_known_blobs_count_as_written():
    net = net_def(("Relu", "w", "y"))
    assert len(verify(net)) == 1
    assert verify(net, known=["w"]) == []


def test_shapes_are_checked_when_given():
    net = net_def(("FC", "x w b", "h"), ("FC", "h w b", "y"), ("Relu", "y", "z"), inputs="x w b")
    [line] = verify(net, specs=floats(x=(2, 3), w=(4, 3), b=(4,)))
    assert line.startswith("net \"checked\", #1 FC: W ('w') has shape (4, 3)")
    assert verify(net, specs=floats(x=(2, 3))) == []


def test_types_are_checked_when_given():
    net = net_def(("LabelCrossEntropy", "x l", "y"), inputs="x l")
    [line] = verify(net, specs=floats(x=(2, 3), l=(2,)))
    assert "#0 LabelCrossEntropy: label ('l') is FLOAT; allowed are INT32" in line


def test_shapes_follow_through_a_net():
    net = net_def(
        ("Conv", "x w b", "c", {"kernel": 5}),
        ("MaxPool", "c", "p", {"kernel": 2, "stride": 2}),
        ("Cast", "p", "i", {"to": core.DataType.INT32}),
        ("Reshape", "p shape", "r old"),
        ("Relu", "r", "s"),
        ("Unheard", "p", "u"),
        ("Relu", "u", "v"),
        inputs="x w b shape",
    )
    known = floats(x=(2, 1, 28, 28), w=(20, 1, 5, 5), b=(20,))
    known["shape"] = Spec((2,), np.dtype(np.int64))
    specs, refused = infer_shapes(net, known)
    assert refused == []
    assert specs["c"] == Spec((2, 20, 24, 24), FLOAT)
    assert specs["p"] == Spec((2, 20, 12, 12), FLOAT)
    assert specs["i"] == Spec((2, 20, 12, 12), np.dtype(np.int32))
    assert not {"r", "s", "u", "v"} & set(specs)


def test_a_blob_that_is_overwritten_has_its_new_shape():
    net = net_def(("Flatten", "x", "y"), ("Unheard", "y", "x"), ("Copy", "y", "z"))
    specs, _ = infer_shapes(net, floats(x=(2, 3, 4)))
    assert "x" not in specs and specs["z"].shape == (2, 12)


def test_near_names_are_searched_for_the_first_problems_only():
    net = caffe2_pb2.NetDef(external_input=["given"])
    for index in range(60):
        net.op.add(type="Relux", input=["givem"], output=[f"y{index}"])
    hints = [line for line in verify(net) if "did you mean" in line]
    assert "did you mean given?" in hints[0] and "did you mean Relu" in hints[1]
    assert len(hints) == 50


def test_names_compared_for_hints_are_bounded(monkeypatch):
    monkeypatch.setattr("caffe2.graph.verify._COMPARED", 100)
    net = caffe2_pb2.NetDef(external_input=["given"])
    for index in range(30):
        net.op.add(type="Relu", input=["givem"], output=[f"y{index}"])
    hints = [line for line in verify(net) if "did you mean" in line]
    assert len(hints) == 3  # among 31 names each
