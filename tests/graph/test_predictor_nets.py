"""Predict nets and init nets from training nets."""

from __future__ import annotations

import numpy as np
import pytest

from caffe2.graph.printer import net_text, operator_line
from caffe2.proto import caffe2_pb2
from caffe2.python import core, model_helper
from caffe2.python.predictor import mobile_exporter


class Values:
    """A workspace with these blobs."""

    def __init__(self, **arrays):
        self.arrays = arrays

    def FetchBlob(self, name):
        return self.arrays[name]


def training_net():
    net = core.Net("training")
    net.FC(["x", "w", "b"], "h")
    net.Relu("h", "h")
    net.FC(["h", "w2", "b2"], "y")
    net.Softmax("y", "s")
    net.FC(["x", "w3", "b3"], "side")
    net.LabelCrossEntropy(["s", "label"], "xent")
    net.AddGradientOperators(["xent"])
    return net


def extract(*args, **kwargs):
    net, params = model_helper.ExtractPredictorNet(training_net().Proto(), *args, **kwargs)
    return net_text(net).splitlines()[1:], params


def test_only_what_the_output_needs_is_kept():
    lines, params = extract(["x"], ["s"])
    assert lines == [
        "inputs: x, w, b, w2, b2",
        "outputs: s",
        "h = FC(x, w, b)",
        "h = Relu(h)",
        "y = FC(h, w2, b2)",
        "s = Softmax(y)",
    ]
    assert params == ["w", "b", "w2", "b2"]


def test_nets_can_start_and_end_in_the_middle():
    lines, params = extract([core.BlobReference("h")], ["y"])
    assert lines == ["inputs: h, w2, b2", "outputs: y", "h = Relu(h)", "y = FC(h, w2, b2)"]
    assert params == ["w2", "b2"]


def test_blobs_are_renamed_and_devices_set():
    cpu = core.DeviceOption(caffe2_pb2.CPU)
    lines, params = extract(["x"], ["h"], device=cpu, renames={"x": "data", "w": "W"})
    assert lines == [
        "inputs: data, W, b",
        "outputs: h",
        "h = FC(data, W, b) device={device_type: 0 device_id: 0}",
        "h = Relu(h) device={device_type: 0 device_id: 0}",
    ]
    assert params == ["W", "b"]


def test_inputs_can_be_disabled():
    assert extract(["x"], ["s"], disabled_inputs=["w3"])[1] == ["w", "b", "w2", "b2"]
    lines, _ = extract(["h"], ["y"], disabled_inputs=["w2"])
    assert lines[2:] == []


def test_what_is_not_in_the_net_is_named():
    with pytest.raises(ValueError, match="no operators that write nope"):
        extract(["x"], ["nope"])
    with pytest.raises(ValueError, match="no operators that read nope"):
        extract(["nope"], ["s"])


def test_operators_in_training_mode_are_refused():
    net = caffe2_pb2.NetDef(name="n")
    net.op.append(core.CreateOperator("Dropout", "x", ["y", "mask"], is_test=0))
    with pytest.raises(ValueError, match="Dropout 'y' has is_test=0"):
        model_helper.ExtractPredictorNet(net, ["x"], ["y"])


def test_export_stores_parameters_and_names_outputs():
    net = core.Net("served")
    net.FC(["data", "w", "b"], "h")
    net.Softmax("h", "prob")
    net.Relu("h", "other")
    net.AddExternalOutput("prob")
    values = Values(w=np.ones((2, 3), np.float32), b=np.float32([0.5, 2]))
    init_net, predict_net = mobile_exporter.Export(values, net, [core.BlobReference("w"), "b"])
    assert [operator_line(op) for op in init_net.op] == [
        "w = GivenTensorFill(shape=[2, 3], values=[1, 1, 1, 1, 1, 1])",
        "b = GivenTensorFill(shape=[2], values=[0.5, 2])",
        "data = GivenTensorFill(shape=[1, 1], values=[0])",
    ]
    assert net_text(predict_net).splitlines() == [
        f"net {net}",
        "inputs: data, w, b",
        "outputs: prob, other",
        "h = FC(data, w, b)",
        "prob = Softmax(h)",
        "other = Relu(h)",
    ]
    assert list(net.Proto().external_output) == ["prob"]


@pytest.mark.parametrize(
    ("array", "line"),
    [
        (np.int32([1]), "p = GivenTensorIntFill(shape=[1], values=[1])"),
        (np.int64([[1, 2]]), "p = GivenTensorInt64Fill(shape=[1, 2], values=[1, 2])"),
        (
            np.uint8([[7], [255]]),
            'p = GivenTensorByteStringToUInt8Fill(shape=[2, 1], values=["\x07\\xff"])',
        ),
        (np.array([True]), "p = GivenTensorBoolFill(shape=[1], values=[1])"),
        (np.float32(3), "p = GivenTensorFill(shape=[], values=[3])"),
    ],
)
def test_tensors_of_other_types(array, line):
    net = caffe2_pb2.NetDef()
    with core.NameScope("scope"):
        mobile_exporter.add_tensor(net, "p", array)
    assert operator_line(net.op[0]) == line


def test_tensors_that_no_operator_holds():
    with pytest.raises(ValueError, match="blob 'p': no operator holds complex64 values"):
        mobile_exporter.add_tensor(caffe2_pb2.NetDef(), "p", np.complex64([1]))
