# mypy: disable-error-code="misc, no-any-return"
"""How good predictions are: MultiClassAccuracy, Perplexity, APMeter."""

from __future__ import annotations

import numpy as np

from caffe2.ops.arguments import Int, OperatorError
from caffe2.ops.datatypes import FLOAT, INT32, DataType, dtype_of
from caffe2.ops.declaration import SHOULD_NOT_DO_GRADIENT, Array, OpView, Spec, operator
from caffe2.ops.loss import check_labels
from caffe2.ops.shapes import require_rank, require_same_shape


@operator(
    "MultiClassAccuracy",
    inputs="prediction labels",
    outputs="accuracies amounts",
    types={"prediction": FLOAT, "labels": INT32},
)
class MultiClassAccuracy:
    """For each class, how many rows have it as their label and which share of them is right.

    A row is right when its label has the largest prediction, the first of equal ones; NaN is never
    the largest.

    prediction: float (N, D).  labels: int32 (N,), 0 <= label < D.
    accuracies: float (D,), 0 for a class without rows.  amounts: int32 (D,).
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(prediction: Spec, labels: Spec) -> tuple[Spec, Spec]:
        require_rank("prediction", prediction, 2)
        rows, classes = prediction.shape
        if labels.shape != (rows,):
            raise OperatorError("labels", f"has shape {labels.shape}; ({rows},) is needed")
        return Spec((classes,), prediction.dtype), Spec((classes,), dtype_of(DataType.INT32))

    def reference(prediction: Array, labels: Array) -> tuple[Array, Array]:
        classes = prediction.shape[1]
        check_labels("labels", labels, classes)
        amounts = np.bincount(labels, minlength=classes)
        if not labels.size:
            return np.zeros(classes, prediction.dtype), amounts.astype(np.int32)
        best = np.argmax(np.where(np.isnan(prediction), -np.inf, prediction), axis=1)
        right = np.bincount(labels[best == labels], minlength=classes)
        accuracies = (right / np.maximum(amounts, 1)).astype(prediction.dtype)
        return accuracies, amounts.astype(np.int32)


@operator("Perplexity", inputs="probabilities", outputs="output", types={"probabilities": FLOAT})
class Perplexity:
    """output = exp(-mean(log(probabilities))); 1 when there are none, NaN for negative ones.

    probabilities: float, those that a model gave to what came.  output: float scalar, shape ().
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(probabilities: Spec) -> Spec:
        return Spec((), probabilities.dtype)

    def reference(probabilities: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            total = np.log(probabilities.astype(np.float64)).sum()
            return np.asarray(np.exp(-total / max(probabilities.size, 1)), probabilities.dtype)


def _average_precision(scores: Array, labels: Array) -> float:
    truth = labels[np.argsort(-scores, kind="stable")]
    precision = np.cumsum(truth) / np.arange(1, truth.size + 1)
    return float(precision[truth == 1].sum() / max(int(truth.sum()), 1))


@operator(
    "APMeter",
    inputs="predictions labels",
    outputs="AP",
    args={"buffer_size": Int(1000, min=1)},
    types={"predictions": FLOAT, "labels": INT32},
    kind="stateful",
)
class APMeter:
    """The average precision of each class over the last `buffer_size` rows that the operator saw
    in this and its earlier runs: the mean, over the rows of the class, of the share of such rows
    among those that are predicted at least as high (in their order where they are equal).

    predictions: float (N, D), scores.  labels: int32 (N, D), 1 for a row of the class, else 0.
    D is the same in all runs.  AP: float (D,), 0 for a class without rows.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(predictions: Spec, labels: Spec) -> Spec:
        require_rank("predictions", predictions, 2)
        require_same_shape("labels", labels, "predictions", predictions)
        return Spec(predictions.shape[1:], predictions.dtype)

    def reference(predictions: Array, labels: Array, op: OpView) -> Array:
        wrong = np.flatnonzero((labels != 0) & (labels != 1))
        if wrong.size:
            at = int(wrong[0])
            problem = f"holds {labels.reshape(-1)[at]} at position {at}; allowed are 0 and 1"
            raise OperatorError("labels", problem)
        scores, truth = predictions[-op.args.buffer_size :], labels[-op.args.buffer_size :]
        found = [_average_precision(scores[:, k], truth[:, k]) for k in range(labels.shape[1])]
        return np.asarray(found, predictions.dtype)
