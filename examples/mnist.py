"""LeNet on handwritten digits: build a net, train it, test it, save it.

    python examples/mnist.py                 train once, save and draw into demo/
    python examples/mnist.py --seeds 5       the same, and the accuracy of five different starts
    python examples/mnist.py --json          results as JSON, for programs

Read it from the bottom: main() tells the story, and each function is one step of it.  Afterwards
examples/mnist_predict.py loads what was saved and reads digits with it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import mnist_data
import mnist_pictures
import numpy as np
from progress import progress

from caffe2.graph.files import save_net
from caffe2.python import brew, core, model_helper, optimizer, workspace
from caffe2.python.predictor import mobile_exporter

BATCH = 64
EPOCHS = 15
LEARNING_RATE = 0.03
MAX_SHIFT = 2


def new_model(name: str, init_params: bool = True) -> model_helper.ModelHelper:
    """An empty model.

    A model is two nets: `param_init_net` makes the weights and runs once; `net` is what runs for
    each batch.  With init_params=False the layers use weights that exist already.  Images have
    the order NCHW: batch, channel, row, column.
    """
    return model_helper.ModelHelper(name=name, arg_scope={"order": "NCHW"}, init_params=init_params)


def add_lenet(model: model_helper.ModelHelper, data: str) -> core.BlobReference:
    """Adds LeNet: images (N, 1, 28, 28), values 0..1 -> probabilities (N, 10).

    `brew` functions add one layer each, with its weights.  Comments give the shape of one image.
    """
    convs = brew.arg_scope([brew.conv], kernel=5)
    pools = brew.arg_scope([brew.max_pool], kernel=2, stride=2)
    with convs, pools:
        conv1 = brew.conv(model, data, "conv1", dim_in=1, dim_out=20)  # 20 x 24 x 24
        pool1 = brew.max_pool(model, conv1, "pool1")  # 20 x 12 x 12
        conv2 = brew.conv(model, pool1, "conv2", dim_in=20, dim_out=50)  # 50 x 8 x 8
        pool2 = brew.max_pool(model, conv2, "pool2")  # 50 x 4 x 4
    fc3 = brew.fc(model, pool2, "fc3", dim_in=50 * 4 * 4, dim_out=500)
    relu3 = brew.relu(model, fc3, "relu3")
    pred = brew.fc(model, relu3, "pred", dim_in=500, dim_out=10)
    return brew.softmax(model, pred, "softmax")


def add_training(model: model_helper.ModelHelper, softmax: core.BlobReference) -> None:
    """Adds the loss, its gradient with respect to every weight, and the step that uses it."""
    xent = model.net.LabelCrossEntropy([softmax, "label"], "xent")
    loss = model.net.AveragedLoss(xent, "loss")
    model.AddGradientOperators([loss])
    # The learning rate is multiplied by gamma after every `stepsize` batches.
    optimizer.build_sgd(
        model,
        base_learning_rate=LEARNING_RATE,
        momentum=0.9,
        policy="step",
        stepsize=100,
        gamma=0.7,
    )


def add_accuracy(model: model_helper.ModelHelper, softmax: core.BlobReference) -> None:
    """Adds the share of images whose most probable digit is the right one."""
    brew.accuracy(model, [softmax, "label"], "accuracy")


def train(digits: mnist_data.Digits, seed: int, epochs: int) -> list[float]:
    """Trains a new LeNet, leaves its weights in the workspace, returns the loss of each batch."""
    model = new_model("mnist_train")
    softmax = add_lenet(model, "data")
    add_accuracy(model, softmax)
    add_training(model, softmax)

    # RunNetOnce runs a net and forgets it.  CreateNet prepares one that RunNet runs many times.
    model.param_init_net.Proto().device_option.random_seed = seed
    workspace.RunNetOnce(model.param_init_net)
    feed(digits.images[:BATCH], digits.labels[:BATCH])
    workspace.CreateNet(model.net, overwrite=True)

    losses: list[float] = []
    accuracies: list[float] = []
    shuffle = np.random.default_rng(seed)
    with progress(f"seed {seed}: training", epochs * batches_in(digits)) as update:
        for _ in range(epochs):
            for images, labels in batches_of(digits, shuffle):
                feed(images, labels)
                workspace.RunNet(model.net)
                losses.append(float(workspace.FetchBlob("loss")))
                accuracies.append(float(workspace.FetchBlob("accuracy")))
                loss, accuracy = np.mean(losses[-50:]), np.mean(accuracies[-50:])
                update(len(losses), f"loss {loss:.3f}  accuracy {accuracy:6.1%}")
    return losses


def batches_in(digits: mnist_data.Digits) -> int:
    return len(digits.labels) // BATCH


def batches_of(
    digits: mnist_data.Digits, shuffle: np.random.Generator
) -> Iterator[mnist_data.Digits]:
    """The digits in a new order, one batch at a time; what does not fill a batch is left out.

    Each batch is moved by up to MAX_SHIFT pixels, so that the net learns not to mind where a
    digit stands.  The edges of the pictures are empty: nothing comes in at the other side.
    """
    order = shuffle.permutation(len(digits.labels))
    for rows in order[: batches_in(digits) * BATCH].reshape(-1, BATCH):
        shift = shuffle.integers(-MAX_SHIFT, MAX_SHIFT, size=2, endpoint=True)
        images = np.roll(digits.images[rows], shift, axis=(2, 3))
        yield mnist_data.Digits(images, digits.labels[rows])


def feed(images: np.ndarray, labels: np.ndarray) -> None:
    """Puts one batch where the nets look for it."""
    workspace.FeedBlob("data", images)
    workspace.FeedBlob("label", labels)


def test(digits: mnist_data.Digits) -> float:
    """The accuracy on digits that were not trained on, with the weights in the workspace."""
    model = new_model("mnist_test", init_params=False)
    add_accuracy(model, add_lenet(model, "data"))
    feed(digits.images, digits.labels)
    workspace.RunNetOnce(model.net)
    return float(workspace.FetchBlob("accuracy"))


def save(folder: Path) -> model_helper.ModelHelper:
    """Writes init_net.pb (the weights) and predict_net.pb (the layers, without the training)."""
    model = new_model("mnist_deploy", init_params=False)
    add_lenet(model, "data")
    init_net, predict_net = mobile_exporter.Export(workspace, model.net, model.params)
    save_net(init_net, folder / "init_net.pb")
    save_net(predict_net, folder / "predict_net.pb")
    return model


def draw(model: model_helper.ModelHelper, losses: list[float], folder: Path) -> list[Path]:
    """Draws the net and, where matplotlib is installed, its loss."""
    pictures = [mnist_pictures.draw_net(model.net, folder)]
    try:
        pictures.append(mnist_pictures.draw_loss(losses, folder))
    except ImportError:
        print("the loss is not drawn: matplotlib is not installed", file=sys.stderr)
    return pictures


def main() -> int:
    options = parse_options()
    workspace.GlobalInit(["mnist.py"])
    try:
        training, held_out = mnist_data.load()
    except mnist_data.DataError as error:
        print(f"mnist.py: {error}", file=sys.stderr)
        return 1

    out = sys.stderr if options.json else sys.stdout
    start = time.perf_counter()
    accuracy: dict[int, float] = {}
    for seed in range(options.seed, options.seed + options.seeds):
        workspace.ResetWorkspace()
        losses = train(training, seed, options.epochs)
        accuracy[seed] = test(held_out)
        print(
            f"seed {seed}: {accuracy[seed]:.1%} of {len(held_out.labels)} held-out right", file=out
        )
    seconds = time.perf_counter() - start

    options.output.mkdir(parents=True, exist_ok=True)
    model = save(options.output)  # the net of the last seed
    files = [options.output / "init_net.pb", options.output / "predict_net.pb"]
    files += draw(model, losses, options.output)
    print(f"took {seconds:.1f} s; wrote {', '.join(map(str, files))}", file=out)
    if options.json:
        report = {
            "accuracy": accuracy,
            "held_out": len(held_out.labels),
            "last_loss": float(np.mean(losses[-50:])),
            "seconds": seconds,
            "files": list(map(str, files)),
        }
        print(json.dumps(report, indent=2))
    return 0


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train LeNet on 4,000 handwritten digits.")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="passes over the digits")
    parser.add_argument("--seed", type=int, default=1, help="start of the random numbers, from 1")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds to train with")
    parser.add_argument("--output", type=Path, default=Path("demo"), help="folder to write into")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    options = parser.parse_args()
    for name in ("epochs", "seed", "seeds"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} is {getattr(options, name)}; allowed are numbers from 1")
    return options


if __name__ == "__main__":
    sys.exit(main())
