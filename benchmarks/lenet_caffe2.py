"""Worker of train_lenet.py: LeNet in this project.  Arguments: batch, threads."""

from __future__ import annotations

import sys

import lenet_data

import caffe2
from caffe2.python import brew, model_helper, optimizer, workspace

batch, threads = map(int, sys.argv[1:])
workspace.GlobalInit(["caffe2", f"--caffe2_omp_num_threads={threads}"])
model = model_helper.ModelHelper(name="lenet", arg_scope={"order": "NCHW"})
conv1 = brew.conv(model, "data", "conv1", dim_in=1, dim_out=20, kernel=5)
pool1 = brew.max_pool(model, conv1, "pool1", kernel=2, stride=2)
conv2 = brew.conv(model, pool1, "conv2", dim_in=20, dim_out=50, kernel=5)
pool2 = brew.max_pool(model, conv2, "pool2", kernel=2, stride=2)
fc3 = brew.fc(model, pool2, "fc3", dim_in=50 * 4 * 4, dim_out=500)
relu3 = brew.relu(model, fc3, fc3)
pred = brew.fc(model, relu3, "pred", dim_in=500, dim_out=10)
softmax = brew.softmax(model, pred, "softmax")
loss = model.net.AveragedLoss(model.net.LabelCrossEntropy([softmax, "label"], "xent"), "loss")
model.AddGradientOperators([loss])
optimizer.build_sgd(
    model,
    base_learning_rate=lenet_data.LEARNING_RATE,
    policy="fixed",
    momentum=lenet_data.MOMENTUM,
    nesterov=False,
)
workspace.RunNetOnce(model.param_init_net)
images, labels = lenet_data.batch_of(batch)
for name, value in {**lenet_data.weights(), "data": images, "label": labels}.items():
    workspace.FeedBlob(name, value)
workspace.CreateNet(model.net)


def step() -> None:
    workspace.RunNet(model.net)


lenet_data.serve(f"caffe2 {caffe2.__version__}", step, lambda: float(workspace.FetchBlob("loss")))
