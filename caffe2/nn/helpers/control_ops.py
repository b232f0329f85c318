"""Models as branches and loops of others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from caffe2.graph.control_ops import add_if_op, add_while_op
from caffe2.nn.model_helper import ModelHelper


def cond(
    model: ModelHelper,
    cond_blob: Any,
    external_blobs: Iterable[Any],
    then_model: ModelHelper,
    else_model: ModelHelper | None = None,
) -> None:
    """Runs then_model where the blob holds True, else else_model; see `add_if_op`.

    external_blobs: the blobs of the model that the others read and write.
    """
    other = None if else_model is None else else_model.net
    add_if_op(model.net, cond_blob, external_blobs, then_model.net, other)


def loop(
    model: ModelHelper,
    cond_blob: Any,
    external_blobs: Iterable[Any],
    loop_model: ModelHelper,
    cond_model: ModelHelper | None = None,
) -> None:
    """Runs loop_model as long as the blob holds True; see `add_while_op`.

    cond_model: runs before each look at the blob, and writes it.
    """
    condition = None if cond_model is None else cond_model.net
    add_while_op(model.net, cond_blob, external_blobs, loop_model.net, condition)


HELPERS = [cond, loop]
