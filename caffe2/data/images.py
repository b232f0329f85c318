"""Batches of pictures out of databases: decoded, resized, cropped, mirrored and normalized.

Records are TensorProtos, the picture and its label, or the Datum messages of Caffe 1.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from caffe2.data.databases import Mode, create_db
from caffe2.graph.errors import UsageError
from caffe2.proto import caffe2_pb2

Pixels = npt.NDArray[np.uint8]


def _datum_class() -> Any:
    """The message Datum of Caffe 1."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="caffe/datum.proto", package="caffe")
    datum = file.message_type.add(name="Datum")
    for number, (name, kind) in enumerate(
        (
            ("channels", kinds.TYPE_INT32),
            ("height", kinds.TYPE_INT32),
            ("width", kinds.TYPE_INT32),
            ("data", kinds.TYPE_BYTES),
            ("label", kinds.TYPE_INT32),
            ("float_data", kinds.TYPE_FLOAT),
            ("encoded", kinds.TYPE_BOOL),
        ),
        1,
    ):
        label = kinds.LABEL_REPEATED if name == "float_data" else kinds.LABEL_OPTIONAL
        datum.field.add(name=name, number=number, type=kind, label=label)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("caffe.Datum"))


Datum = _datum_class()


@dataclass(frozen=True)
class ImageOptions:
    """How pictures become rows of a batch.

    batch_size         pictures in a batch
    crop               height and width of the result; needed
    scale              the shorter side before cropping; 0: as it is
    minsize            the least shorter side before cropping; 0: none
    mirror             whether half of them are turned left to right, in training
    is_test            pictures are cropped in the middle and not turned
    color              3 channels, blue, green and red; False: 1, their brightness
    mean, std          (x - mean) / std, of one number or (mean_per_channel, ...) one per channel
    use_caffe_datum    records are Datum messages
    order              "NCHW" or "NHWC"
    """

    batch_size: int
    crop: int
    scale: int = 0
    minsize: int = 0
    mirror: bool = False
    is_test: bool = False
    color: bool = True
    mean: float = 0.0
    std: float = 1.0
    mean_per_channel: Sequence[float] = ()
    std_per_channel: Sequence[float] = ()
    use_caffe_datum: bool = False
    order: str = "NCHW"

    def __post_init__(self) -> None:
        for name in ("batch_size", "crop"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} is {getattr(self, name)}; it is at least 1")
        if self.scale > 0 and self.minsize > 0:
            raise UsageError("scale and minsize exclude each other")
        if self.order not in ("NCHW", "NHWC"):
            raise UsageError(f"order is {self.order!r}; NCHW and NHWC are known")
        channels = 3 if self.color else 1
        for name in ("mean_per_channel", "std_per_channel"):
            given = getattr(self, name)
            if len(given) not in (0, channels):
                raise UsageError(f"{name} holds {len(given)} numbers for {channels} channels")


class ImageBatches:
    """The next batch at each call, from the records of a database in order, again and again."""

    def __init__(self, db_type: str, db: str, options: ImageOptions) -> None:
        database = create_db(db_type, db, Mode.read)
        if database is None:
            raise UsageError(f"there are no databases of type {db_type!r} here")
        self._database, self._cursor = database, database.new_cursor()
        if not self._cursor.valid():
            raise UsageError(f"the database '{db}' is empty")
        self._options = options
        self._rng = np.random.default_rng()

    def __call__(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int32]]:
        """Pictures (N, C, H, W) or (N, H, W, C), and labels (N)."""
        images, labels = zip(*(self._next() for _ in range(self._options.batch_size)), strict=True)
        batch = np.stack(images)
        if self._options.order == "NCHW":
            batch = np.ascontiguousarray(batch.transpose(0, 3, 1, 2))
        return batch, np.array(labels, np.int32)

    def _next(self) -> tuple[npt.NDArray[np.float32], int]:
        key, value = self._cursor.key(), self._cursor.value()
        self._cursor.next()
        if not self._cursor.valid():
            self._cursor.seek_to_first()
        try:
            pixels, label = (_from_datum if self._options.use_caffe_datum else _from_protos)(
                value, self._options.color
            )
        except ValueError as error:
            raise ValueError(f"record {key.decode(errors='replace')!r}: {error}") from None
        return self._prepared(pixels), label

    def _prepared(self, pixels: Pixels) -> npt.NDArray[np.float32]:
        options, crop = self._options, self._options.crop
        shorter = min(pixels.shape[:2])
        wanted = options.scale or (options.minsize if shorter < options.minsize else 0)
        if wanted and wanted != shorter:
            pixels = _resized(pixels, wanted / shorter)
        height, width = pixels.shape[:2]
        if height < crop or width < crop:
            raise ValueError(f"a picture of {height} x {width} cannot be cropped to {crop}")
        if options.is_test:
            top, left = (height - crop) // 2, (width - crop) // 2
        else:
            top, left = self._rng.integers(0, [height - crop + 1, width - crop + 1])
        pixels = pixels[top : top + crop, left : left + crop]
        if options.mirror and not options.is_test and self._rng.random() < 0.5:
            pixels = pixels[:, ::-1]
        mean = np.asarray(options.mean_per_channel or options.mean, np.float32)
        std = np.asarray(options.std_per_channel or options.std, np.float32)
        return ((pixels - mean) / std).astype(np.float32)


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(
            "encoded or resized pictures need the package pillow: pip install caffe2[images]"
        ) from None
    return Image


def _decoded(content: bytes, color: bool) -> Pixels:
    image = _pillow()
    try:
        with image.open(io.BytesIO(content)) as picture:
            pixels = np.asarray(picture.convert("RGB" if color else "L"))
    except OSError as error:
        raise ValueError(f"it holds no picture: {error}") from None
    return pixels[:, :, ::-1] if color else pixels[:, :, None]


def _resized(pixels: Pixels, factor: float) -> Pixels:
    image = _pillow()
    height, width = (max(1, round(size * factor)) for size in pixels.shape[:2])
    planes = [np.ascontiguousarray(pixels[:, :, c]) for c in range(pixels.shape[2])]
    bilinear = image.Resampling.BILINEAR
    resized = [image.fromarray(plane).resize((width, height), bilinear) for plane in planes]
    return np.stack([np.asarray(plane) for plane in resized], axis=2)


def _checked(pixels: Pixels, color: bool) -> Pixels:
    if color and pixels.shape[2] == 1:
        return pixels.repeat(3, axis=2)
    needed = 3 if color else 1
    if pixels.shape[2] != needed:
        raise ValueError(f"its picture has {pixels.shape[2]} channels, {needed} are needed")
    return pixels


def _from_datum(record: bytes, color: bool) -> tuple[Pixels, int]:
    datum = Datum.FromString(record)
    if datum.encoded:
        return _decoded(datum.data, color), datum.label
    shape = (datum.channels, datum.height, datum.width)
    if min(shape) < 1 or len(datum.data) != shape[0] * shape[1] * shape[2]:
        raise ValueError(f"its Datum has {len(datum.data)} bytes for the shape {shape}")
    pixels = np.frombuffer(datum.data, np.uint8).reshape(shape).transpose(1, 2, 0)
    return _checked(pixels, color), datum.label


def _from_protos(record: bytes, color: bool) -> tuple[Pixels, int]:
    protos = caffe2_pb2.TensorProtos.FromString(record).protos
    if len(protos) < 2 or len(protos[1].int32_data) != 1:
        raise ValueError("it needs two tensors, a picture and a label of one int32")
    image, label = protos[0], protos[1].int32_data[0]
    if image.string_data:
        return _decoded(image.string_data[0], color), label
    shape = (*image.dims, 1) if len(image.dims) == 2 else tuple(image.dims)
    if len(shape) != 3 or len(image.byte_data) != shape[0] * shape[1] * shape[2]:
        raise ValueError(f"its picture has {len(image.byte_data)} bytes for the shape {shape}")
    return _checked(np.frombuffer(image.byte_data, np.uint8).reshape(shape), color), label
