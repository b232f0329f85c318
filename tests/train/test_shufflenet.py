"""ShuffleNet V2, as the original builds it."""

import numpy as np
import pytest

from caffe2.graph.errors import UsageError
from caffe2.python import cnn, workspace
from caffe2.python.models.shufflenet import ShuffleNetV2Builder, create_shufflenet


def build(**options):
    model = cnn.CNNModelHelper(order="NCHW", name="shuffle")
    data, label = model.net.AddExternalInputs("data", "label")
    return model, create_shufflenet(model, data, 3, 10, label=label, **options)


def kinds(model):
    return [op.type for op in model.net.Proto().op]


# Recorded from the original.
def test_structure():
    model, outputs = build()
    assert [str(blob) for blob in outputs] == ["softmax", "loss"]
    assert len(model.params) == 222
    assert kinds(model)[:5] == ["Conv", "MaxPool", "Conv", "SpatialBN", "Conv"]
    assert kinds(model)[-4:] == ["Conv", "AveragePool", "FC", "SoftmaxWithLoss"]
    assert kinds(model).count("ChannelShuffle") == 16 and kinds(model).count("Split") == 13
    shapes = {
        op.output[0]: list(arg.ints)
        for op in model.param_init_net.Proto().op
        for arg in op.arg
        if arg.name == "shape"
    }
    assert shapes["stage2_stride2left_dwconv_w"] == [24, 1, 3, 3]
    assert shapes["stage2_stride2_right_conv1_w"] == [58, 24, 1, 1]
    assert shapes["stage4_stride1_repeat3_right_conv2_w"] == [232, 232, 1, 1]
    assert shapes["conv5_w"] == [1024, 464, 1, 1] and shapes["last_out_L10_w"] == [10, 1024]
    _, last = build(no_loss=True, is_test=True)
    assert last == "last_out_L10"


def test_a_small_one_runs():
    workspace.ResetWorkspace()
    model = cnn.CNNModelHelper(order="NCHW", name="small")
    data = model.net.AddExternalInput("data")
    last = ShuffleNetV2Builder(model, data, 3, 4, width="0.5x", detection=True).create()
    workspace.FeedBlob("data", np.ones((1, 3, 224, 224), np.float32))
    workspace.RunNetOnce(model.param_init_net)
    workspace.RunNetOnce(model.net)
    assert workspace.FetchBlob(str(last)).shape == (1, 4)
    outputs = [op.output[0] for op in model.net.Proto().op]
    assert [name for name in outputs if "detection_conv" in name][:2] == [
        "stage2_stride2_left_detection_conv",
        "stage2_stride2_right_detection_conv",
    ]
    with pytest.raises(UsageError, match=r"width is '3x'; it must be one of 0\.5x"):
        ShuffleNetV2Builder(model, data, 3, 4, width="3x")
