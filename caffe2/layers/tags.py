"""Tags of layers: what they are for, and which nets leave them out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from caffe2.plans.context import DefaultManaged


class TagContext(DefaultManaged):
    """The tags that layers made now get; see Tags."""

    def __init__(self, tags: Iterable[str] | None = None) -> None:
        self.tags: list[str] = list(tags or [])

    def add_tags(self, tags: Iterable[str]) -> None:
        self.tags.extend(tags)

    def remove_tags(self, tags: Iterable[str]) -> None:
        """Takes back the last `add_tags` of these tags."""
        self.tags = self.tags[: len(self.tags) - len(list(tags))]


class Tags:
    """`with Tags(Tags.TRAIN_ONLY):` layers made in the block have these tags, a string or several.

    The EXCLUDE_FROM_ tags keep a layer out of the net of that name; TRAIN_ONLY, EVAL_ONLY and
    PREDICTION_ONLY out of all others.  The rest are marks for tools that read them.
    An instance is a decorator, too.
    """

    EXCLUDE_FROM_TRAIN = "exclude_from_train"
    EXCLUDE_FROM_EVAL = "exclude_from_eval"
    EXCLUDE_FROM_PREDICTION = "exclude_from_prediction"
    EXCLUDE_FROM_ACCUMULATE_PRED = "exclude_from_accumulate_pred"
    PREPROCESSING = "preprocessing"
    HANDLE_AS_SPARSE_LAYER = "handle_as_sparse_layer"
    PREFER_GPU = "prefer_gpu"
    CPU_ONLY = "cpu_only"
    LOCAL = "local"
    SPARSE_SHARDED = "sparse_sharded"
    SPARSE_DONT_SHARD = "sparse_dont_shard"
    COMPONENT = "component:"
    PIPELINE = "pipeline:"
    HOGWILD_DENSE = "hogwild_dense"
    EXTRA_INFO = "extra_info:"
    EMPTY_TAG = "empty_tag"
    DT_TAGS = (SPARSE_SHARDED, SPARSE_DONT_SHARD, COMPONENT, HOGWILD_DENSE)
    PREDICTION_SCHEMA = "prediction_schema"
    FEATURE_TRANSFORM = "feature_transform"
    FEATURE_TRANSFORM_SCHEMA = "feature_transform_schema"
    TRAIN_ONLY = (EXCLUDE_FROM_PREDICTION, EXCLUDE_FROM_EVAL, EXCLUDE_FROM_ACCUMULATE_PRED)
    EVAL_ONLY = (EXCLUDE_FROM_PREDICTION, EXCLUDE_FROM_TRAIN, EXCLUDE_FROM_ACCUMULATE_PRED)
    PREDICTION_ONLY = (EXCLUDE_FROM_TRAIN, EXCLUDE_FROM_EVAL, EXCLUDE_FROM_ACCUMULATE_PRED)

    def __init__(self, tags: str | Iterable[str]) -> None:
        self.tags = [tags] if isinstance(tags, str) else list(tags)

    def __enter__(self) -> Tags:
        _current().add_tags(self.tags)
        return self

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        _current().remove_tags(self.tags)

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self:
                return func(*args, **kwargs)

        return wrapper


def _current() -> TagContext:
    context = TagContext.current()
    assert context is not None
    return context
