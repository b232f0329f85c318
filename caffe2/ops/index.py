# mypy: disable-error-code="misc"
"""Indexes: numbers for keys, in the order in which these first came."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import INT32_MAX, Bool, Int
from caffe2.ops.datatypes import INTS, STRING
from caffe2.ops.declaration import (
    NO_GRADIENT,
    SHOULD_NOT_DO_GRADIENT,
    NativeOnly,
    Spec,
    operator,
)
from caffe2.ops.shapes import require_rank

_INDEX = NativeOnly("an index is no tensor")
_INT64 = np.dtype(np.int64)
_KEYS = INTS | STRING


def _declare_create(name: str, kind: str) -> None:
    class Create:
        gradient = NO_GRADIENT
        reference = _INDEX

        def shape() -> None:
            return None

    Create.__doc__ = f"""Makes an index of {kind}, which has none yet.

    handle: a blob that holds no tensor.
    max_elements: the largest size (IndexSize) that the index may have.
    """
    operator(
        name,
        inputs="",
        outputs="handle",
        args={"max_elements": Int(INT32_MAX, min=1)},
        kind="stateful",
    )(Create)


_declare_create("IntIndexCreate", "int32 keys")
_declare_create("LongIndexCreate", "int64 keys")
_declare_create("StringIndexCreate", "strings")


@operator(
    "IndexGet",
    inputs="handle keys",
    outputs="indices",
    types={"keys": _KEYS},
    kind="stateful",
)
class IndexGet:
    """indices = the number of each key; one that is new gets the next number, from 1 on.

    handle: an index.  keys: of its type, any shape.  indices: int64, shaped like keys.
    A frozen index gives new keys number 0.  More than max_elements are refused, and nothing is
    added then.
    """

    reference = _INDEX

    def shape(handle: Any, keys: Spec) -> Spec:
        return Spec(keys.shape, _INT64)


@operator(
    "IndexLoad",
    inputs="handle items",
    outputs="handle",
    args={"skip_first_entry": Bool(False)},
    types={"items": _KEYS},
    enforced_inplace=[(0, 0)],
    kind="stateful",
)
class IndexLoad:
    """Gives the index these keys, numbered from 1 on, and no others.

    handle: an index that is not frozen.  items: keys of its type, 1-d, none twice.
    skip_first_entry: the first of them is left out.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = _INDEX

    def shape(handle: Any, items: Spec) -> None:
        require_rank("items", items, 1)


@operator("IndexStore", inputs="handle", outputs="items", kind="stateful")
class IndexStore:
    """items = the keys of the index in the order of their numbers, the first has number 1.

    handle: an index.  items: keys of its type, 1-d.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = _INDEX

    def shape(handle: Any) -> None:
        return None


@operator("IndexSize", inputs="handle", outputs="items", kind="stateful")
class IndexSize:
    """items = how many numbers there are, with 0 for unknown keys.

    handle: an index.  items: int64 ().
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = _INDEX

    def shape(handle: Any) -> Spec:
        return Spec((), _INT64)


@operator(
    "IndexFreeze", inputs="handle", outputs="handle", enforced_inplace=[(0, 0)], kind="stateful"
)
class IndexFreeze:
    """From now on the index takes no new keys.

    handle: an index.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = _INDEX

    def shape(handle: Any) -> None:
        return None
