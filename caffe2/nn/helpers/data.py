"""Where a net's data comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from caffe2.nn.model_helper import ModelHelper


def db_input(
    model: ModelHelper, blobs_out: Sequence[Any], batch_size: int, db: str, db_type: str
) -> Any:
    """Batches out of a database of TensorProtos: one blob for each tensor of a record.

    The model's param_init_net opens the database, as the blob `dbreader_<db>`.
    """
    return model.TensorProtosDBInput([], blobs_out, batch_size, db, db_type)


HELPERS = [db_input]
