# mypy: disable-error-code="misc, no-any-return"
"""The best sequence of labels for scores of each step: CTC decoders and paths through chains."""

from __future__ import annotations

import numpy as np

from caffe2.ops.arguments import Bool, Float, Int, OperatorError
from caffe2.ops.datatypes import FLOAT, INT32
from caffe2.ops.declaration import (
    NO_GRADIENT,
    SHOULD_NOT_DO_GRADIENT,
    Array,
    OpView,
    Spec,
    operator,
)
from caffe2.ops.shapes import require_rank

_INT32 = np.dtype(np.int32)
_TYPES = {"INPUTS": FLOAT, "SEQ_LEN": INT32}


def _require_scores(INPUTS: Spec, SEQ_LEN: Spec | None) -> None:
    require_rank("INPUTS", INPUTS, 3)
    if SEQ_LEN is not None and SEQ_LEN.shape != INPUTS.shape[1:2]:
        problem = f"has shape {SEQ_LEN.shape}; INPUTS has shape {INPUTS.shape}, (time, batch, ids)"
        raise OperatorError("SEQ_LEN", problem)
    if INPUTS.shape[2] == 0:
        raise OperatorError("INPUTS", f"has shape {INPUTS.shape}; 1 id at least is needed")


def _lengths(INPUTS: Array, SEQ_LEN: Array | None) -> Array:
    steps = INPUTS.shape[0]
    if SEQ_LEN is None:
        return np.full(INPUTS.shape[1], steps)
    if ((SEQ_LEN < 0) | (steps < SEQ_LEN)).any():
        raise OperatorError("SEQ_LEN", f"holds {SEQ_LEN.tolist()}; there are {steps} steps")
    return SEQ_LEN


@operator(
    "CTCGreedyDecoder",
    inputs="INPUTS SEQ_LEN?",
    outputs="OUTPUT_LEN VALUES",
    args={"merge_repeated": Bool(True)},
    types=_TYPES,
)
class CTCGreedyDecoder:
    """The best id of each step without blanks: greedy decoding of connectionist temporal
    classification (Graves et al., 2006).

    INPUTS: float (T, N, ids), scores; id 0 is the blank.
    SEQ_LEN: int32 (N,), how many steps count; all when left out.
    merge_repeated: an id that follows itself without a blank between counts once.
    OUTPUT_LEN: int32 (N,), how many ids each sequence has.  VALUES: int32, all these ids.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(INPUTS: Spec, SEQ_LEN: Spec | None) -> tuple[Spec | None, ...]:
        _require_scores(INPUTS, SEQ_LEN)
        return Spec(INPUTS.shape[1:2], _INT32), None

    def reference(INPUTS: Array, SEQ_LEN: Array | None, op: OpView) -> tuple[Array, Array]:
        lengths = _lengths(INPUTS, SEQ_LEN)
        best = INPUTS.argmax(axis=2)
        counts, values = [], []
        for n, steps in enumerate(lengths):
            ids = best[:steps, n]
            kept = ids != 0
            if op.args.merge_repeated:
                kept[1:] &= ids[1:] != ids[:-1]
            counts.append(int(kept.sum()))
            values.extend(ids[kept].tolist())
        return np.asarray(counts, np.int32), np.asarray(values, np.int32)


_Table = dict[tuple[int, ...], list[float]]


def _extend(beams: _Table, before: _Table, scores: Array, threshold: float) -> _Table:
    """All prefixes after one more step: their probability with a blank at the end, and without.
    before: all prefixes of the step before, also those that are no beams."""
    found: _Table = {prefix: [0.0, 0.0] for prefix in beams}
    labels = np.flatnonzero(scores > np.float32(threshold)).tolist()
    for prefix, (blank, other) in beams.items():
        for label in labels:
            score = float(scores[label])
            if label == 0:
                found[prefix][0] += score * (blank + other)
                continue
            longer = (*prefix, label)
            follows = bool(prefix) and prefix[-1] == label
            if follows:
                found[prefix][1] += score * other
            chance = found.setdefault(longer, [0.0, 0.0])
            chance[1] += score * (blank if follows else blank + other)
            if longer not in beams and longer in before:
                chance[0] += float(scores[0]) * sum(before[longer])
                chance[1] += score * before[longer][1]
    return {prefix: chance for prefix, chance in found.items() if sum(chance) > 0}


@operator(
    "CTCBeamSearchDecoder",
    inputs="INPUTS SEQ_LEN?",
    outputs="OUTPUT_LEN VALUES OUTPUT_PROB?",
    args={
        "beam_width": Int(10, min=1),
        "num_candidates": Int(1, min=1),
        "prune_threshold": Float(0.001),
    },
    types=_TYPES,
)
class CTCBeamSearchDecoder:
    """The most likely sequences of ids, by a beam search over prefixes (Hannun et al., 2014, arXiv
    1408.2873, without a language model).

    INPUTS: float (T, N, ids), probabilities; id 0 is the blank.
    SEQ_LEN: int32 (N,), how many steps count; all when left out.
    beam_width: how many prefixes go on from step to step; of equal ones those that were found
    first.  prune_threshold: ids that are not more likely at a step are passed over there.
    num_candidates: how many sequences there are of each, best first.
    OUTPUT_LEN: int32 (N * num_candidates,); 0 where there are not so many.
    VALUES: int32, the ids of all.
    OUTPUT_PROB: float (N * num_candidates,), their probabilities; 0 where there are not so many.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(INPUTS: Spec, SEQ_LEN: Spec | None, op: OpView) -> tuple[Spec | None, ...]:
        _require_scores(INPUTS, SEQ_LEN)
        if op.args.num_candidates > op.args.beam_width:
            problem = f"is {op.args.num_candidates}; beam_width is {op.args.beam_width}"
            raise OperatorError("argument 'num_candidates'", problem)
        count = (INPUTS.shape[1] * op.args.num_candidates,)
        return Spec(count, _INT32), None, Spec(count, INPUTS.dtype)

    def reference(INPUTS: Array, SEQ_LEN: Array | None, op: OpView) -> tuple[Array, Array, Array]:
        lengths, wanted = _lengths(INPUTS, SEQ_LEN), op.args.num_candidates
        counts = np.zeros(lengths.size * wanted, np.int32)
        chances = np.zeros(lengths.size * wanted, np.float32)
        values: list[int] = []
        for n, steps in enumerate(lengths):
            beams: _Table = {(): [1.0, 0.0]}
            table = beams
            for t in range(steps):
                table = _extend(beams, table, INPUTS[t, n], op.args.prune_threshold)
                best = sorted(table.items(), key=lambda item: -sum(item[1]))
                beams = dict(best[: op.args.beam_width])
            if steps == 0:
                continue
            for k, prefix in enumerate(list(beams)[:wanted]):
                counts[n * wanted + k] = len(prefix)
                chances[n * wanted + k] = sum(beams[prefix])
                values.extend(prefix)
        return counts, np.asarray(values, np.int32), chances


@operator(
    "ViterbiPath",
    inputs="predictions transitions",
    outputs="viterbi_path",
    types={"predictions": FLOAT, "transitions": FLOAT},
)
class ViterbiPath:
    """viterbi_path = the labels with the largest sum of predictions and transitions (Viterbi,
    1967); of equal ones the smaller labels.

    predictions: float (steps, labels), one step at least.
    transitions: float (labels, labels), from row to column.
    viterbi_path: int32 (steps,).
    """

    gradient = NO_GRADIENT

    def shape(predictions: Spec, transitions: Spec) -> Spec:
        require_rank("predictions", predictions, 2)
        steps, labels = predictions.shape
        if transitions.shape != (labels, labels):
            problem = f"has shape {transitions.shape}; {(labels, labels)} is needed"
            raise OperatorError("transitions", problem)
        if not steps or not labels:
            raise OperatorError("predictions", f"has shape {predictions.shape}")
        return Spec((steps,), _INT32)

    def reference(predictions: Array, transitions: Array) -> Array:
        score, before = predictions[0].astype(np.float64), []
        for step in predictions[1:]:
            ways = score[:, None] + transitions
            before.append(ways.argmax(axis=0))
            score = ways.max(axis=0) + step
        path = [int(score.argmax())]
        for came_from in reversed(before):
            path.append(int(came_from[path[-1]]))
        return np.asarray(path[::-1], np.int32)


@operator(
    "SwapBestPath",
    inputs="predictions bestPath",
    outputs="new_predictions",
    types={"predictions": FLOAT, "bestPath": INT32},
)
class SwapBestPath:
    """new_predictions = predictions, with the largest score of each step and that of the best path
    exchanged: the path becomes the best one step by step, too.

    predictions: float (steps, labels).  bestPath: int32 (steps,), labels.
    new_predictions: float, shaped as predictions.
    """

    gradient = NO_GRADIENT

    def shape(predictions: Spec, bestPath: Spec) -> Spec:
        require_rank("predictions", predictions, 2)
        if bestPath.shape != predictions.shape[:1]:
            problem = f"has shape {bestPath.shape}; predictions has {predictions.shape}"
            raise OperatorError("bestPath", problem)
        return predictions

    def reference(predictions: Array, bestPath: Array) -> Array:
        labels = predictions.shape[1]
        if ((bestPath < 0) | (bestPath >= labels)).any():
            raise OperatorError("bestPath", f"holds {bestPath.tolist()}; there are {labels} labels")
        found = predictions.copy()
        if not found.size:
            return found
        rows, best = np.arange(len(found)), predictions.argmax(axis=1)
        found[rows, best] = predictions[rows, bestPath]
        found[rows, bestPath] = predictions[rows, best]
        return found
