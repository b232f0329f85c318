"""What is added to a net that is built: measurements of its blobs, and clipped gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from caffe2.graph.blob import BlobReference
from caffe2.graph.datatype import DataType
from caffe2.graph.device import DeviceOption
from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.graph.records import Scalar, Struct
from caffe2.graph.scope import DeviceScope, NameScope
from caffe2.ops.declaration import GradientSlice
from caffe2.proto import caffe2_pb2
from caffe2.train.devices import get_param_device


class NetModifier(ABC):
    """Something that adds operators to a net: `modifier(net, init_net, grad_map)`."""

    @abstractmethod
    def modify_net(
        self,
        net: Net,
        init_net: Net | None = None,
        grad_map: Mapping[Any, Any] | None = None,
        blob_to_device: Mapping[str, caffe2_pb2.DeviceOption] | None = None,
        modify_output_record: bool = False,
    ) -> None:
        """Adds the operators."""

    def __call__(
        self,
        net: Net,
        init_net: Net | None = None,
        grad_map: Mapping[Any, Any] | None = None,
        blob_to_device: Mapping[str, caffe2_pb2.DeviceOption] | None = None,
        modify_output_record: bool = False,
    ) -> None:
        self.modify_net(
            net,
            init_net=init_net,
            grad_map=grad_map,
            blob_to_device=blob_to_device,
            modify_output_record=modify_output_record,
        )


class _Measurement(NetModifier):
    """Measures blobs and prints what comes out every `logging_frequency` runs; -1: never."""

    def __init__(self, blobs: Sequence[Any], logging_frequency: int) -> None:
        self._blobs = blobs
        self._logging_frequency = logging_frequency
        self._field_name_suffix = ""

    def field_name_suffix(self) -> str:
        """What the names of the results end with."""
        return self._field_name_suffix

    def _measure(self, net: Net, blob: Any) -> tuple[Any, Any]:
        """The blob with the result, and its type in the output record."""
        raise NotImplementedError(f"{type(self).__name__} measures nothing")

    def _scope(self, blob: Any, devices: Mapping[str, Any]) -> Any:
        return DeviceScope(devices.get(str(blob), DeviceOption(caffe2_pb2.CPU)))

    def modify_net(
        self,
        net: Net,
        init_net: Net | None = None,
        grad_map: Mapping[Any, Any] | None = None,
        blob_to_device: Mapping[str, caffe2_pb2.DeviceOption] | None = None,
        modify_output_record: bool = False,
    ) -> None:
        for name in self._blobs:
            blob = BlobReference(str(name), net)
            if not net.BlobIsDefined(blob):
                raise UsageError(f"blob {blob} is not defined in net {net.Name()}")
            with self._scope(blob, blob_to_device or {}):
                result, kind = self._measure(net, blob)
                if self._logging_frequency >= 1:
                    net.Print(result, [], every_n=self._logging_frequency)
            if modify_output_record:
                self._record(net, f"{blob}{self.field_name_suffix()}", result, kind)

    def _record(self, net: Net, field: str, result: Any, kind: Any) -> None:
        scalar = Scalar(kind, result)
        if net.output_record() is None:
            net.set_output_record(Struct((field, scalar)))
        else:
            net.AppendOutputRecordField(field, scalar)


class ComputeNormForBlobs(_Measurement):
    """The p-norm of blobs, as LpNorm computes it, or with compute_averaged_norm by element;
    `row_index`: of one row of them."""

    def __init__(
        self,
        blobs: Sequence[Any],
        logging_frequency: int,
        p: int = 2,
        compute_averaged_norm: bool = False,
        row_index: int | None = None,
    ) -> None:
        super().__init__(blobs, logging_frequency)
        self._p = p
        self._compute_averaged_norm = compute_averaged_norm
        self._row_index = row_index
        self._field_name_suffix = f"_l{p}_norm"
        if compute_averaged_norm:
            self._field_name_suffix = "_averaged" + self._field_name_suffix
        if row_index is not None:
            if row_index < 0:
                raise UsageError(f"row_index is {row_index}; it must not be negative")
            self._field_name_suffix = f"_row_{row_index}" + self._field_name_suffix

    def _measure(self, net: Net, blob: Any) -> tuple[Any, Any]:
        row = blob
        if self._row_index is not None:
            row = net.Slice(
                [blob],
                net.NextScopedBlob(f"{blob}_row_{self._row_index}"),
                starts=[self._row_index, 0],
                ends=[self._row_index + 1, -1],
            )
        wide = net.Cast(row, net.NextScopedBlob(f"{row}_float"), to=DataType.FLOAT)
        name = net.NextScopedBlob(f"{blob}{self._field_name_suffix}")
        average = self._compute_averaged_norm
        norm = net.LpNorm(wide, name, p=self._p, average=average)
        net.StopGradient(norm, net.NextScopedBlob(f"{norm}_stop_gradient"))
        return norm, (float, (1,))


class ComputeHistogramForBlobs(_Measurement):
    """The share of the elements of blobs that lies in each of `num_buckets` equal parts of
    [lower_bound, upper_bound), and below and above; with `accumulate` over all runs."""

    def __init__(
        self,
        blobs: Sequence[Any],
        logging_frequency: int,
        num_buckets: int = 30,
        lower_bound: float = 0.0,
        upper_bound: float = 1.0,
        accumulate: bool = False,
    ) -> None:
        super().__init__(blobs, logging_frequency)
        self._num_buckets = num_buckets
        self._lower_bound = float(lower_bound)
        self._upper_bound = float(upper_bound)
        self._accumulate = accumulate
        kind = "acc" if accumulate else "curr"
        self._field_name_suffix = f"_{kind}_normalized_hist"

    def _measure(self, net: Net, blob: Any) -> tuple[Any, Any]:
        wide = net.Cast(blob, net.NextScopedBlob(f"{blob}_float"), to=DataType.FLOAT)
        current, total = net.AccumulateHistogram(
            [wide],
            [net.NextScopedBlob(f"{blob}_curr_hist"), net.NextScopedBlob(f"{blob}_acc_hist")],
            num_buckets=self._num_buckets,
            lower_bound=self._lower_bound,
            upper_bound=self._upper_bound,
        )
        counts = net.Cast(
            total if self._accumulate else current,
            net.NextScopedBlob(f"{blob}_cast_hist"),
            to=DataType.FLOAT,
        )
        shares = net.NormalizeL1(counts, net.NextScopedBlob(f"{blob}{self._field_name_suffix}"))
        return shares, (np.float32, (self._num_buckets + 2,))


class ComputeStatisticsForBlobs(_Measurement):
    """Least, largest, mean and standard deviation of blobs, by the operator Summarize."""

    def __init__(self, blobs: Sequence[Any], logging_frequency: int) -> None:
        super().__init__(blobs, logging_frequency)
        self._field_name_suffix = "_summary"

    def _measure(self, net: Net, blob: Any) -> tuple[Any, Any]:
        wide = net.Cast(blob, to=DataType.FLOAT)
        name = net.NextScopedBlob(f"{blob}{self._field_name_suffix}")
        return net.Summarize(wide, name, to_file=0), (float, (1,))


class GetEntryFromBlobs(_Measurement):
    """The element at [i1, i2] of blobs of two dimensions, or for a negative i2 the row i1."""

    def __init__(
        self, blobs: Sequence[Any], logging_frequency: int, i1: int = 0, i2: int = 0
    ) -> None:
        super().__init__(blobs, logging_frequency)
        if i1 < 0:
            raise UsageError(f"i1 is {i1}; it must not be negative")
        self._i1 = i1
        self._i2 = i2
        self._field_name_suffix = f"_{i1}_{'all' if i2 < 0 else i2}"

    def _measure(self, net: Net, blob: Any) -> tuple[Any, Any]:
        name = net.NextScopedBlob(f"{blob}{self._field_name_suffix}")
        rows = {"starts": [self._i1, 0], "ends": [self._i1 + 1, -1]}
        if self._i2 < 0:
            return net.Slice([blob], name, **rows), float
        row = net.Slice([blob], **rows)
        entry = net.Slice([row], name, starts=[0, self._i2], ends=[-1, self._i2 + 1])
        return entry, float


class GradientClipping(NetModifier):
    """Makes gradients smaller, each by itself.

    grad_clip_method     "by_norm": scaled so that the norm is at most clip_threshold; "by_value":
                         elements put into [clip_min, clip_max]
    clip_norm_type       "l1_norm" or "l2_norm"
    use_parameter_norm   the threshold is multiplied by the norm of the parameter
    compute_norm_ratio   the blob `<param>_norm_ratio` holds norm of gradient / norm of parameter
    blobs_to_include, blobs_to_exclude   the parameters; default: all of the map of gradients
    """

    L1_NORM = "l1_norm"
    L2_NORM = "l2_norm"
    BY_NORM = "by_norm"
    BY_VALUE = "by_value"
    GRAD_CLIP_METHODS = (BY_NORM, BY_VALUE)
    CLIP_GRADIENT_NORM_TYPES = (L2_NORM, L1_NORM)

    def __init__(
        self,
        grad_clip_method: str,
        clip_norm_type: str = "l2_norm",
        clip_threshold: float = 0.1,
        use_parameter_norm: bool = False,
        compute_norm_ratio: bool = False,
        clip_max: float = 1,
        clip_min: float = -1,
        blobs_to_include: Sequence[Any] | None = None,
        blobs_to_exclude: Sequence[Any] | None = None,
    ) -> None:
        for name, value, known in (
            ("grad_clip_method", grad_clip_method, self.GRAD_CLIP_METHODS),
            ("clip_norm_type", clip_norm_type, self.CLIP_GRADIENT_NORM_TYPES),
        ):
            if value not in known:
                raise UsageError(f"{name} is {value!r}; it must be one of {', '.join(known)}")
        self.grad_clip_method = grad_clip_method
        self.clip_norm_type = clip_norm_type
        self.clip_threshold = float(clip_threshold)
        self.use_parameter_norm = use_parameter_norm
        self.compute_norm_ratio = compute_norm_ratio
        self.clip_max = float(clip_max)
        self.clip_min = float(clip_min)
        self.blobs_to_include = blobs_to_include
        self.blobs_to_exclude = blobs_to_exclude

    def _chosen(self, net: Net, grad_map: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
        for blobs in (self.blobs_to_include, self.blobs_to_exclude):
            for blob in blobs or ():
                if not net.BlobIsDefined(blob):
                    raise UsageError(f"param {blob} is not defined in net {net.Name()}")
        grads = {str(param): grad for param, grad in grad_map.items()}
        chosen = list(grads) if self.blobs_to_include is None else map(str, self.blobs_to_include)
        excluded = set(map(str, self.blobs_to_exclude or ()))
        for param in chosen:
            if param not in excluded:
                if param not in grads:
                    raise UsageError(f"param {param} has no gradient")
                yield param, grads[param]

    def modify_net(
        self,
        net: Net,
        init_net: Net | None = None,
        grad_map: Mapping[Any, Any] | None = None,
        blob_to_device: Mapping[str, caffe2_pb2.DeviceOption] | None = None,
        modify_output_record: bool = False,
    ) -> None:
        if grad_map is None:
            raise UsageError("gradients can be clipped only where there is a map of them")
        for param, grad in self._chosen(net, grad_map):
            cpu = DeviceOption(caffe2_pb2.CPU)
            device = get_param_device(param, grad, blob_to_device or {}, cpu)
            # The gradient keeps its name: it is not to be scoped once more.
            with DeviceScope(device), NameScope("", reset=True):
                values = grad.values if isinstance(grad, GradientSlice) else grad
                if self.grad_clip_method == self.BY_NORM:
                    self._by_norm(net, param, values)
                else:
                    net.Clip([values], [values], max=self.clip_max, min=self.clip_min)

    def _norm(self, net: Net, blob: Any) -> Any:
        p = 2 if self.clip_norm_type == self.L2_NORM else 1
        norm = net.LpNorm(blob, net.NextScopedBlob(f"{blob}_{self.clip_norm_type}"), p=p)
        # LpNorm of p = 2 is the sum of squares.
        return net.Pow([norm], exponent=0.5) if p == 2 else norm

    def _by_norm(self, net: Net, param: str, grad: Any) -> None:
        inputs = [grad, self._norm(net, grad)]
        if self.use_parameter_norm:
            inputs.append(self._norm(net, BlobReference(param, net)))
            if self.compute_norm_ratio:
                net.Div(inputs[1:], [net.NextScopedBlob(f"{param}_norm_ratio")])
        net.ClipTensorByScaling(inputs, [grad], threshold=self.clip_threshold)
