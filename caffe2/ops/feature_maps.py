# mypy: disable-error-code="misc, no-any-return"
"""Features of examples, one blob or a few for each feature, merged into lists of (id, value)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from caffe2.ops.arguments import INT64_MAX, INT64_MIN, Ints, OperatorError
from caffe2.ops.datatypes import BOOL
from caffe2.ops.declaration import Array, GradientContext, OpView, Spec, operator

_INT32, _INT64, _BOOL = (np.dtype(kind) for kind in (np.int32, np.int64, np.bool_))
_IDS = {"feature_ids": Ints(min=INT64_MIN, max=INT64_MAX, required=True)}


class _Kind(NamedTuple):
    """The blobs of one source, by their part in it, and those that a gradient needs."""

    parts: tuple[str, ...]
    of_gradient: tuple[str, ...]

    @property
    def single(self) -> bool:
        """One feature, present or not, in place of any number of features with ids."""
        return "presence" in self.parts

    @property
    def streams(self) -> tuple[str, ...]:
        """What runs of values are taken from; those of a map are keys and values."""
        return ("map_keys", "values") if "map_keys" in self.parts else ("values",)

    @property
    def has_lengths(self) -> bool:
        return "value_lengths" in self.parts

    def outputs(self) -> str:
        lengths = "out_values_lengths " if self.has_lengths else ""
        keys = "out_values_keys " if "map_keys" in self.parts else ""
        values = "out_values_values" if self.has_lengths else "out_values"
        return f"out_lengths out_keys {lengths}{keys}{values}"


_KINDS = {
    "MergeSingleScalar": _Kind(("values", "presence"), ("presence",)),
    "MergeSingleList": _Kind(
        ("value_lengths", "values", "presence"), ("value_lengths", "presence")
    ),
    "MergeSingleMap": _Kind(
        ("value_lengths", "map_keys", "values", "presence"), ("value_lengths", "presence")
    ),
    "MergeMultiScalar": _Kind(("lengths", "keys", "values"), ("lengths",)),
    "MergeMultiList": _Kind(
        ("lengths", "keys", "value_lengths", "values"), ("lengths", "value_lengths")
    ),
    "MergeMultiMap": _Kind(
        ("lengths", "keys", "value_lengths", "map_keys", "values"), ("lengths", "value_lengths")
    ),
}
_TYPES = {
    "presence": _BOOL,
    "lengths": _INT32,
    "value_lengths": _INT32,
    "keys": _INT64,
}


def _kind(op: OpView) -> _Kind:
    return _KINDS[op.type.removesuffix("Gradient").removesuffix("FeatureTensors")]


def _sources(parts: tuple[str, ...], blobs: tuple[Any, ...], op: OpView) -> list[dict[str, Any]]:
    """The blobs of each source by their part, of the types and shapes they must have."""
    if not blobs or len(blobs) % len(parts):
        problem = f"has {len(blobs)} inputs; each source has {len(parts)}: {', '.join(parts)}"
        raise OperatorError("", problem)
    found = []
    for at in range(0, len(blobs), len(parts)):
        found.append(dict(zip(parts, blobs[at : at + len(parts)], strict=True)))
        for offset, (part, blob) in enumerate(found[-1].items()):
            needed = _TYPES.get(part, found[0][part].dtype)
            if blob.dtype != needed or len(blob.shape) != 1:
                raise OperatorError(
                    f"input {at + offset} ('{op.input(at + offset)}')",
                    f"is {blob.dtype} of shape {blob.shape}; {needed} with one dimension is needed",
                )
    return found


class _Features(NamedTuple):
    """The features of one source: of which example, how many values, and whether they count."""

    example: Array
    lengths: Array
    kept: Array


def _features(kind: _Kind, source: dict[str, Array], examples: int, most: int) -> _Features:
    """most: how many features there can be."""
    found = source["presence" if kind.single else "lengths"]
    if found.size != examples:
        raise OperatorError("", f"has sources of {examples} and {found.size} examples")
    if kind.single:
        kept = source["presence"]
        example = np.arange(kept.size)
    else:
        counts = source["lengths"]
        if (counts < 0).any() or counts.sum(dtype=np.int64) > most:
            problem = f"has lengths from {counts.min()} on that sum to {counts.sum()}"
            raise OperatorError("", f"{problem}; there are {most} features")
        example = np.repeat(np.arange(counts.size), counts)
        kept = np.ones(example.size, np.bool_)
    lengths = source.get("value_lengths", np.ones(example.size, np.int32))
    if lengths.size != example.size:
        problem = f"has {lengths.size} lengths of values for {example.size} features"
        raise OperatorError("", problem)
    if (lengths < 0).any():
        raise OperatorError("", f"has lengths of values of {lengths.min()}")
    return _Features(example, lengths, kept)


def _order(sources: list[_Features]) -> Array:
    """(source, feature) of all that count: by example, then by source."""
    number = np.concatenate([np.full(s.example.size, k) for k, s in enumerate(sources)])
    place = np.concatenate([np.arange(s.example.size) for s in sources])
    example = np.concatenate([s.example for s in sources])
    kept = np.concatenate([s.kept for s in sources])
    order = np.argsort(example, kind="stable")
    return np.stack([number, place], axis=1)[order[kept[order]]]


def _starts(lengths: Array) -> Array:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


class _Merge:
    """Merges the features of each example.

    The inputs, for each source: {parts}.
    {meaning}
    out_lengths: int32 (N,), how many features each example has.
    out_keys: int64, the id of each feature, by example and then by source.
    {outputs}
    """

    def shape(*features: Spec, op: OpView) -> tuple[None, ...]:
        kind = _kind(op)
        sources = _sources(kind.parts, features, op)
        if kind.single and len(op.args.feature_ids) != len(sources):
            problem = f"has {len(op.args.feature_ids)} ids for {len(sources)} features"
            raise OperatorError("argument 'feature_ids'", problem)
        return (None,) * len(op.outputs)

    def reference(*features: Array, op: OpView) -> tuple[Array, ...]:
        kind = _kind(op)
        sources = _sources(kind.parts, features, op)
        parts: list[_Features] = []
        for source in sources:
            examples = sources[0]["presence" if kind.single else "lengths"].size
            most = 0 if kind.single else source["keys"].size
            part = _features(kind, source, examples, most)
            for stream in kind.streams:
                if source[stream].size != part.lengths.sum():
                    problem = f"has {source[stream].size} values for {part.lengths.sum()}"
                    raise OperatorError("", f"{problem}, as the lengths say")
            if not kind.single and source["keys"].size != part.example.size:
                raise OperatorError(
                    "", f"has {source['keys'].size} keys for {part.example.size} features"
                )
            parts.append(part)
        order = _order(parts)
        starts = [_starts(part.lengths) for part in parts]
        counts = np.zeros(examples, np.int32)
        for part in parts:
            np.add.at(counts, part.example[part.kept], 1)
        ids = op.args.feature_ids if kind.single else ()
        keys = [ids[k] if kind.single else sources[k]["keys"][f] for k, f in order]
        found = [counts, np.asarray(keys, np.int64)]
        if kind.has_lengths:
            found.append(np.asarray([parts[k].lengths[f] for k, f in order], np.int32))
        for stream in kind.streams:
            none = sources[0][stream][:0]
            runs = [sources[k][stream][starts[k][f] : starts[k][f + 1]] for k, f in order]
            found.append(np.concatenate([none, *runs]))
        return tuple(found)

    def gradient(op: GradientContext) -> Any:
        kind = _KINDS[op.type.removesuffix("FeatureTensors")]
        width, inputs, outputs = len(kind.parts), [], []
        for at in range(0, len(op.inputs), width):
            inputs += [op.input(at + kind.parts.index(part)) for part in kind.of_gradient]
            outputs.append(op.input_grad(at + kind.parts.index("values")))
        return op.make(f"{op.type}Gradient", [*inputs, op.grad(len(op.outputs) - 1)], outputs)


class _MergeGradient:
    """The gradient of {forward} for the values of each source; 0 where a feature does not count.

    The inputs, for each source: {parts}; then the gradient of the merged values, of any type.
    values_grad: one for each source.
    """

    def shape(*blobs: Spec, op: OpView) -> tuple[Spec | None, ...]:
        kind = _kind(op)
        sources = _sources(kind.of_gradient, blobs[:-1], op)
        if len(sources) != len(op.outputs):
            raise OperatorError("", f"has {len(op.outputs)} outputs for {len(sources)} sources")
        if len(blobs[-1].shape) != 1:
            name = f"input {len(blobs) - 1} ('{op.inputs[-1]}')"
            raise OperatorError(name, f"has shape {blobs[-1].shape}; one dimension is needed")
        if kind.of_gradient == ("presence",):
            return tuple(Spec(source["presence"].shape, blobs[-1].dtype) for source in sources)
        return (None,) * len(op.outputs)

    def reference(*blobs: Array, op: OpView) -> tuple[Array, ...]:
        kind = _kind(op)
        sources = _sources(kind.of_gradient, blobs[:-1], op)
        merged = blobs[-1]
        examples = sources[0]["presence" if kind.single else "lengths"].size
        parts = [
            _features(kind, source, examples, source.get("value_lengths", merged).size)
            for source in sources
        ]
        starts = [_starts(part.lengths) for part in parts]
        found = [np.zeros(part.lengths.sum(), merged.dtype) for part in parts]
        order = _order(parts)
        total = sum(int(parts[k].lengths[f]) for k, f in order)
        if total != merged.size:
            problem = f"has {merged.size} values; {total} were merged"
            raise OperatorError(f"input {len(blobs) - 1} ('{op.inputs[-1]}')", problem)
        at = 0
        for k, f in order:
            first, last = starts[k][f], starts[k][f + 1]
            found[k][first:last] = merged[at : at + last - first]
            at += last - first
        return tuple(found)


_WORDS = {
    "values": "values (any type)",
    "presence": "presence (bool)",
    "lengths": "lengths (int32)",
    "keys": "keys (int64)",
    "value_lengths": "lengths of values (int32)",
    "map_keys": "keys of the map (any type)",
}
_MEANING = {
    "MergeSingleScalar": "A source is one feature: a value for each example, and whether it is "
    "there.",
    "MergeSingleList": "A source is one feature: a list of values for each example, and whether "
    "it is\n    there.",
    "MergeSingleMap": "A source is one feature: a map for each example, and whether it is there.",
    "MergeMultiScalar": "A source has for each example any number of ids with a value each.",
    "MergeMultiList": "A source has for each example any number of ids with a list each.",
    "MergeMultiMap": "A source has for each example any number of ids with a map each.",
}


def _documented(body: type, name: str, **words: str) -> type:
    return type(name, (), {**vars(body), "__doc__": (body.__doc__ or "").format(**words)})


for _name, _each in _KINDS.items():
    _ids = "\n    feature_ids: the id of each source." if _each.single else ""
    _values = (
        "The values of these features; before them their lengths."
        if _each.has_lengths
        else ("The value of each.")
    )
    operator(
        f"{_name}FeatureTensors",
        inputs="features*",
        outputs=_each.outputs(),
        args=_IDS if _each.single else {},
    )(
        _documented(
            _Merge,
            f"{_name}FeatureTensors",
            parts=", ".join(_WORDS[part] for part in _each.parts),
            meaning=_MEANING[_name] + _ids,
            outputs=_values,
        )
    )
    operator(f"{_name}FeatureTensorsGradient", inputs="blobs*", outputs="values_grad*")(
        _documented(
            _MergeGradient,
            f"{_name}FeatureTensorsGradient",
            forward=f"{_name}FeatureTensors",
            parts=", ".join(_WORDS[part] for part in _each.of_gradient),
        )
    )


@operator(
    "MergeDenseFeatureTensors",
    inputs="in1 in1_presence",
    outputs="out_lengths out_keys out_values",
    args=_IDS,
    types={"in1_presence": BOOL},
)
class MergeDenseFeatureTensors:
    """The features that are present, as lists of (id, value) for each example.

    in1: any type (N, features).  in1_presence: bool (N, features).
    feature_ids: the id of each column.
    out_lengths: int32 (N,).  out_keys: int64, the ids of the features of each example.
    out_values: their values.
    """

    def shape(in1: Spec, in1_presence: Spec, op: OpView) -> tuple[Spec | None, ...]:
        if len(in1.shape) != 2 or in1.shape != in1_presence.shape:
            problem = f"has shape {in1_presence.shape}; in1 has {in1.shape}, a matrix is needed"
            raise OperatorError("in1_presence", problem)
        if len(op.args.feature_ids) != in1.shape[1]:
            problem = f"has {len(op.args.feature_ids)} ids for {in1.shape[1]} columns"
            raise OperatorError("argument 'feature_ids'", problem)
        return Spec(in1.shape[:1], _INT32), None, None

    def reference(in1: Array, in1_presence: Array, op: OpView) -> tuple[Array, ...]:
        ids = np.asarray(op.args.feature_ids, np.int64)
        columns = np.nonzero(in1_presence)[1]
        return in1_presence.sum(axis=1, dtype=np.int32), ids[columns], in1[in1_presence]
