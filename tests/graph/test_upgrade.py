"""Old nets say the same, as today."""

import numpy as np
import pytest

from caffe2.graph.upgrade import upgrade_net
from caffe2.proto import caffe2_pb2
from caffe2.python import core, workspace


def net_of(*ops):
    return caffe2_pb2.NetDef(name="old", op=ops)


def test_a_net_of_today_stays():
    net = net_of(core.CreateOperator("Conv", ["x", "w"], "y", kernel=3, engine="WINOGRAD"))
    assert upgrade_net(net) == (net, [])


def test_devices_and_wishes_to_libraries_go():
    gpu = core.DeviceOption(caffe2_pb2.PROTO_CUDA, 1)
    old = core.CreateOperator(
        "Relu", "x", "y", engine="CUDNN", device_option=gpu, use_cudnn=1, order="NCHW"
    )
    net = net_of(old)
    net.device_option.CopyFrom(gpu)
    found, notes = upgrade_net(net)
    assert found == net_of(core.CreateOperator("Relu", "x", "y", order="NCHW"))
    assert notes == [
        "net: GPU left out",
        "#0 Relu: GPU left out",
        "#0 Relu: engine CUDNN left out",
        "#0 Relu: use_cudnn left out",
    ]
    assert net.op[0] == old


def test_engines_that_change_the_meaning_stay():
    net = net_of(core.CreateOperator("Conv", ["x", "w"], "y", kernel=3, engine="DNNLOWP"))
    assert upgrade_net(net) == (net, [])


@pytest.mark.parametrize("axis", [{}, {"axis": 0}])
def test_the_old_way_of_broadcasting(axis):
    shape = (4,) if not axis else (3,)
    net = net_of(core.CreateOperator("Mul", ["x", "w"], "y", broadcast=1, **axis))
    found, notes = upgrade_net(net)
    assert notes == ([] if axis else ["#0 Mul: broadcast left out"])
    workspace.FeedBlob("x", np.arange(12, dtype=np.float32).reshape(3, 4))
    workspace.FeedBlob("w", np.arange(shape[0], dtype=np.float32) + 2)
    results = []
    for each in (net, found):
        workspace.RunNetOnce(each)
        results.append(workspace.FetchBlob("y"))
    np.testing.assert_array_equal(*results)


def test_nets_in_text_become_nets():
    step = (
        'op { type: "Relu" input: "a" output: "b" device_option { device_type: 1 cuda_gpu_id: 0 } }'
    )
    net = net_of(core.CreateOperator("RecurrentNetwork", ["x"], ["y"], step_net=step, timestep="t"))
    found, notes = upgrade_net(net)
    assert notes == [
        "#0 RecurrentNetwork: step_net was text and is a net",
        "#0 RecurrentNetwork, step_net #0 Relu: GPU left out",
    ]
    [arg] = [arg for arg in found.op[0].arg if arg.name == "step_net"]
    assert arg.n == caffe2_pb2.NetDef(op=[{"type": "Relu", "input": ["a"], "output": ["b"]}])
    assert not arg.HasField("s")


def test_old_int8_layouts():
    old = core.CreateOperator(
        "Int8GivenTensorFill", [], "w", shape=[3], values=[0, 128, 255], scale=0.5, zero_point=3
    )
    found, notes = upgrade_net(net_of(old))
    assert notes == [
        "#0 Int8GivenTensorFill: values were a list and are bytes",
        "#0 Int8GivenTensorFill: scale is called Y_scale",
        "#0 Int8GivenTensorFill: zero_point is called Y_zero_point",
    ]
    args = {arg.name: arg for arg in found.op[0].arg}
    assert args["values"].s == b"\x00\x80\xff"
    assert args["Y_scale"].f == 0.5 and args["Y_zero_point"].i == 3
    assert set(args) == {"shape", "values", "Y_scale", "Y_zero_point"}
