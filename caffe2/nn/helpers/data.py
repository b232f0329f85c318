"""Where a net's data comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from caffe2.graph.errors import UsageError
from caffe2.nn.model_helper import ModelHelper


def db_input(
    model: ModelHelper, blobs_out: Sequence[Any], batch_size: int, db: str, db_type: str
) -> Any:
    """Batches out of a database of TensorProtos: one blob for each tensor of a record.

    The model's param_init_net opens the database, as the blob `dbreader_<db>`.
    """
    return model.TensorProtosDBInput([], blobs_out, batch_size, db, db_type)


def image_input(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Sequence[Any],
    order: str = "NCHW",
    use_gpu_transform: bool = False,
    **kwargs: Any,
) -> list[Any]:
    """Batches of pictures, float32, and their labels, int32 (N), out of a database.

    blob_in   the reader that CreateDB made in one of the model's nets; the records are read from
              its database, by Python: a net with this layer runs in this process only
    blob_out  names of the pictures and of the labels
    kwargs    batch_size, crop, scale, mirror, mean, std, is_test, use_caffe_datum and others: see
              `caffe2.data.images.ImageOptions`

    `use_gpu_transform` and arguments about GPUs and threads have no effect.  UsageError for a
    reader that nobody made and for arguments that there are not.
    """
    from caffe2.data.images import ImageBatches, ImageOptions

    reader = blob_in[0] if isinstance(blob_in, (list, tuple)) else blob_in
    made = [
        {arg.name: arg.s.decode() for arg in op.arg}
        for net in (model.param_init_net, model.net)
        for op in net.Proto().op
        if op.type == "CreateDB" and str(reader) in op.output
    ]
    if not made:
        raise UsageError(f"no operator CreateDB of the model makes the reader '{reader}'")
    for name in ("cudnn_exhaustive_search", "decode_threads", "output_type", "use_cudnn"):
        kwargs.pop(name, None)
    known = set(ImageOptions.__dataclass_fields__)
    unknown = sorted(set(kwargs) - known)
    if unknown:
        raise UsageError(f"image_input takes no {', '.join(unknown)}; it takes {sorted(known)}")
    options = ImageOptions(**{**kwargs, "order": order})
    batches: list[ImageBatches] = []

    def read(inputs: Any, outputs: Any) -> None:
        if not batches:  # the database may be written after the net is built
            batches.append(ImageBatches(made[-1]["db_type"], made[-1]["db"], options))
        for output, values in zip(outputs, batches[0](), strict=True):
            output.feed(values)

    return list(model.net.Python(read)([], list(blob_out)))


HELPERS = [db_input, image_input]
