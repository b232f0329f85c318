"""LSTM, GRU and RNN of ONNX give what ONNX's own evaluator gives."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

from caffe2.python.onnx import backend  # noqa: E402
from caffe2.python.onnx.error import Unsupported  # noqa: E402

T, N, FEATURES, UNITS = 4, 3, 5, 2
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
rng = np.random.default_rng(0)


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def model_of(kind, directions=1, inputs="W R B", states="", batch="N", **attributes):
    """A model of one node, and what to feed.  The batch may be a name: not known before the run."""
    gates = GATES[kind] * UNITS
    constants = {
        "W": floats(directions, gates, FEATURES),
        "R": floats(directions, gates, UNITS),
        "B": floats(directions, 2 * gates),
    }
    first = attributes.get("layout", 0)
    shape = (N, T, FEATURES) if first else (T, N, FEATURES)
    declared = (batch, T, FEATURES) if first else (T, batch, FEATURES)
    given = {"X": floats(*shape)}
    infos = [helper.make_tensor_value_info("X", 1, declared)]
    for name in states.split():
        given[name] = floats(directions, N, UNITS)
        infos.append(helper.make_tensor_value_info(name, 1, (directions, batch, UNITS)))
    used = inputs.split()
    names = ["X", *(name if name in used else "" for name in "WRB"), "", *states.split()]
    outputs = ["Y", "Y_h", "Y_c"][: 3 if kind == "LSTM" else 2]
    node = helper.make_node(kind, names, outputs, hidden_size=UNITS, **attributes)
    results = [helper.make_tensor_value_info(name, 1, None) for name in outputs]
    tensors = [numpy_helper.from_array(constants[name], name) for name in used]
    graph = helper.make_graph([node], "graph", infos, results, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    return model, given


def agree(model, given):
    found, expected = backend.prepare(model).run(given), ReferenceEvaluator(model).run(None, given)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-6)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_directions_states_and_biases(kind, direction):
    directions = 2 if direction == "bidirectional" else 1
    states = "h0 c0" if kind == "LSTM" else "h0"
    agree(*model_of(kind, directions, states=states, direction=direction))
    agree(*model_of(kind, directions, inputs="W R", direction=direction))


def test_functions_of_gates():
    agree(*model_of("GRU", linear_before_reset=1))
    model, given = model_of("RNN", activations=["Relu"])
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    w, r, b = weights["W"][0], weights["R"][0], weights["B"][0].reshape(2, UNITS).sum(axis=0)
    state = np.zeros((N, UNITS), np.float32)
    for x in given["X"]:
        state = np.maximum(x @ w.T + state @ r.T + b, 0)
    np.testing.assert_allclose(backend.prepare(model).run(given).Y_h[0], state, rtol=1e-5)


@pytest.mark.parametrize("kind", GATES)
def test_the_batch_may_come_first(kind):
    """Written out with the evaluator, which knows one layout."""
    model, given = model_of(kind, layout=1)
    found = backend.prepare(model).run(given)
    plain = onnx.ModelProto.FromString(model.SerializeToString())
    (layout,) = (a for a in plain.graph.node[0].attribute if a.name == "layout")
    plain.graph.node[0].attribute.remove(layout)
    plain.graph.input[0].CopyFrom(helper.make_tensor_value_info("X", 1, (T, N, FEATURES)))
    expected = ReferenceEvaluator(plain).run(None, {"X": given["X"].swapaxes(0, 1)})
    np.testing.assert_allclose(found[0], expected[0].transpose(2, 0, 1, 3), atol=2e-6)
    for one, other in zip(found[1:], expected[1:], strict=True):
        np.testing.assert_allclose(one, other.swapaxes(0, 1), atol=2e-6)


@pytest.mark.parametrize(
    ("kind", "attributes", "text"),
    [
        ("LSTM", {"clip": 3.0}, "clip has no counterpart"),
        ("LSTM", {"input_forget": 1}, "input_forget=1 has no counterpart"),
        ("GRU", {"activations": ["Relu", "Tanh"]}, "activations=.* have no counterpart"),
        ("RNN", {"activations": ["Softsign"]}, "activations=.* have no counterpart"),
        ("RNN", {"direction": "sideways"}, "direction=sideways is not known"),
    ],
)
def test_what_has_no_counterpart_is_named(kind, attributes, text):
    model, _ = model_of(kind, **attributes)
    with pytest.raises(Unsupported, match=rf"{kind} 'Y.*{text}"):
        backend.prepare(model)


def test_lengths_and_peepholes_have_no_counterpart():
    model, _ = model_of("LSTM", states="h0 c0")
    node = model.graph.node[0]
    node.input.append("B")
    with pytest.raises(Unsupported, match="peepholes"):
        backend.prepare(model)
    node.input[4] = "B"
    with pytest.raises(Unsupported, match="sequence_lens"):
        backend.prepare(model)
