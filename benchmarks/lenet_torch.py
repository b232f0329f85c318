"""Worker of train_lenet.py: LeNet in PyTorch's eager mode.  Arguments: batch, threads."""

from __future__ import annotations

import sys

import lenet_data
import torch
from torch.nn import functional

batch, threads = map(int, sys.argv[1:])
torch.set_num_threads(threads)
images, labels = lenet_data.batch_of(batch)
x, y = torch.from_numpy(images), torch.from_numpy(labels).long()
w = {name: torch.nn.Parameter(torch.from_numpy(v)) for name, v in lenet_data.weights().items()}
sgd = torch.optim.SGD(
    w.values(), lr=lenet_data.LEARNING_RATE, momentum=lenet_data.MOMENTUM, fused=True
)
last = torch.zeros(())


def step() -> None:
    global last  # noqa: PLW0603 -- the loss is read after some steps only
    sgd.zero_grad(set_to_none=True)
    pool1 = functional.max_pool2d(functional.conv2d(x, w["conv1_w"], w["conv1_b"]), 2)
    pool2 = functional.max_pool2d(functional.conv2d(pool1, w["conv2_w"], w["conv2_b"]), 2)
    relu3 = functional.relu(functional.linear(pool2.flatten(1), w["fc3_w"], w["fc3_b"]))
    last = functional.cross_entropy(functional.linear(relu3, w["pred_w"], w["pred_b"]), y)
    last.backward()
    sgd.step()


def loss() -> float:
    return last.item()


lenet_data.serve(f"torch {torch.__version__}", step, loss)
