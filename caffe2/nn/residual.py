"""Residual nets: K. He et al., "Deep Residual Learning for Image Recognition", 2016; with groups:
S. Xie et al., "Aggregated Residual Transformations for Deep Neural Networks", 2017."""

from __future__ import annotations

from typing import Any

from caffe2.graph.errors import UsageError
from caffe2.nn.brew import brew
from caffe2.nn.model_helper import ModelHelper

RESNEXT_BLOCK_CONFIG = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
    200: (3, 24, 36, 3),
}
RESNEXT_STRIDES = [1, 2, 2, 2]
_FILL: tuple[str, dict[str, Any]] = ("MSRAFill", {})


class ResNetBuilder:
    """Adds residual blocks to a model, one behind another; `prev_blob` is the last output.

    no_bias  whether convolutions have none (batch normalization has its own)
    """

    def __init__(
        self,
        model: ModelHelper,
        prev_blob: Any,
        no_bias: bool | int,
        is_test: bool,
        bn_epsilon: float = 1e-5,
        bn_momentum: float = 0.9,
    ) -> None:
        self.model, self.prev_blob = model, prev_blob
        self.no_bias = 1 if no_bias else 0
        self.is_test = is_test
        self._statistics = {"epsilon": bn_epsilon, "momentum": bn_momentum}
        self.comp_count = self.comp_idx = 0

    def add_conv(
        self,
        in_filters: int,
        out_filters: int,
        kernel: int,
        stride: int = 1,
        group: int = 1,
        pad: int = 0,
    ) -> Any:
        """The next convolution of the block."""
        self.comp_idx += 1
        self.prev_blob = brew.conv(
            self.model,
            self.prev_blob,
            f"comp_{self.comp_count}_conv_{self.comp_idx}",
            in_filters,
            out_filters,
            weight_init=_FILL,
            kernel=kernel,
            stride=stride,
            **({"group": group} if group != 1 else {}),
            pad=pad,
            no_bias=self.no_bias,
        )
        return self.prev_blob

    def add_relu(self) -> Any:
        self.prev_blob = brew.relu(self.model, self.prev_blob, self.prev_blob)
        return self.prev_blob

    def add_spatial_bn(self, num_filters: int) -> Any:
        name = f"comp_{self.comp_count}_spatbn_{self.comp_idx}"
        self.prev_blob = self._normalized(self.prev_blob, name, num_filters)
        return self.prev_blob

    def _normalized(self, blob: Any, name: str, filters: int) -> Any:
        return brew.spatial_bn(
            self.model, blob, name, filters, is_test=self.is_test, **self._statistics
        )

    def _add_shortcut(
        self, shortcut: Any, in_filters: int, filters: int, stride: int, normalize: bool
    ) -> None:
        """Adds what was before the block, projected where its size is another one.

        Trained nets depend on the epsilon of shortcuts, which is not that of the builder in blocks
        of two convolutions.
        """
        if in_filters != filters or stride != 1:
            name = f"shortcut_projection_{self.comp_count}"
            shortcut = brew.conv(
                self.model,
                shortcut,
                name,
                in_filters,
                filters,
                weight_init=_FILL,
                kernel=1,
                stride=stride,
                no_bias=self.no_bias,
            )
            if normalize:
                settings = self._statistics if self.comp_idx == 3 else {"epsilon": 1e-3}
                shortcut = brew.spatial_bn(
                    self.model,
                    shortcut,
                    f"{name}_spatbn",
                    filters,
                    is_test=self.is_test,
                    **settings,
                )
        total = f"comp_{self.comp_count}_sum_{self.comp_idx}"
        self.prev_blob = brew.sum(self.model, [shortcut, self.prev_blob], total)
        self.add_relu()
        self.comp_idx = 0
        self.comp_count += 1

    def add_bottleneck(
        self,
        input_filters: int,
        base_filters: int,
        output_filters: int,
        stride: int = 1,
        group: int = 1,
        spatial_batch_norm: bool = True,
    ) -> None:
        """A block of 1x1, 3x3 and 1x1 convolutions; the second one has the stride."""
        shortcut = self.prev_blob
        wide = {"stride": stride, "group": group, "pad": 1}
        for inputs, outputs, kernel, settings in (
            (input_filters, base_filters, 1, {}),
            (base_filters, base_filters, 3, wide),
            (base_filters, output_filters, 1, {}),
        ):
            if self.comp_idx:
                self.add_relu()
            self.add_conv(inputs, outputs, kernel, **settings)
            if spatial_batch_norm:
                self.add_spatial_bn(outputs)
        self._add_shortcut(shortcut, input_filters, output_filters, stride, spatial_batch_norm)

    def add_simple_block(
        self,
        input_filters: int,
        num_filters: int,
        down_sampling: bool = False,
        spatial_batch_norm: bool = True,
    ) -> None:
        """A block of two 3x3 convolutions; the first one has the stride, of 2 for down_sampling."""
        shortcut, stride = self.prev_blob, 2 if down_sampling else 1
        self.add_conv(input_filters, num_filters, 3, stride=stride, pad=1)
        if spatial_batch_norm:
            self.add_spatial_bn(num_filters)
        self.add_relu()
        self.add_conv(num_filters, num_filters, 3, pad=1)
        if spatial_batch_norm:
            self.add_spatial_bn(num_filters)
        self._add_shortcut(shortcut, input_filters, num_filters, stride, spatial_batch_norm)


def create_resnext(
    model: ModelHelper,
    data: Any,
    num_input_channels: int,
    num_labels: int,
    num_layers: int,
    num_groups: int,
    num_width_per_group: int,
    label: Any = None,
    is_test: bool = False,
    no_loss: bool = False,
    no_bias: bool | int = 1,
    conv1_kernel: int = 7,
    conv1_stride: int = 2,
    final_avg_kernel: int = 7,
    log: Any = None,
    bn_epsilon: float = 1e-5,
    bn_momentum: float = 0.9,
) -> Any:
    """Adds a residual net with groups (with one group of width 64: a plain one).

    data        the blob (N, num_input_channels, 224, 224)
    num_layers  18, 34, 50, 101, 152 or 200; UsageError for others
    label       int32 (N): the loss is added and (softmax, loss) given; without it the softmax
    no_loss     the last layer's output is given, "last_out_L<num_labels>"

    `conv1_kernel`, `conv1_stride` and `final_avg_kernel` are for pictures of other sizes;
    the last pooling is over the whole map.  `log` has no effect.
    """
    if num_layers not in RESNEXT_BLOCK_CONFIG:
        raise UsageError(f"{num_layers} layers; there are {list(RESNEXT_BLOCK_CONFIG)}")
    no_bias = 1 if no_bias else 0
    brew.conv(
        model,
        data,
        "conv1",
        num_input_channels,
        64,
        weight_init=_FILL,
        kernel=conv1_kernel,
        stride=conv1_stride,
        pad=3,
        no_bias=no_bias,
    )
    brew.spatial_bn(
        model,
        "conv1",
        "conv1_spatbn_relu",
        64,
        epsilon=bn_epsilon,
        momentum=bn_momentum,
        is_test=is_test,
    )
    brew.relu(model, "conv1_spatbn_relu", "conv1_spatbn_relu")
    pool = brew.max_pool(model, "conv1_spatbn_relu", "pool1", kernel=3, stride=2, pad=1)
    builder = ResNetBuilder(model, pool, no_bias, is_test, bn_epsilon, bn_momentum)
    simple, filters = num_layers < 50, 64
    for part, (blocks, stride) in enumerate(
        zip(RESNEXT_BLOCK_CONFIG[num_layers], RESNEXT_STRIDES, strict=True)
    ):
        width = (num_groups * num_width_per_group if not simple else 64) * 2**part
        outputs = 64 * 2**part * (1 if simple else 4)
        for index in range(blocks):
            step = stride if index == 0 else 1
            if simple:
                builder.add_simple_block(filters, outputs, down_sampling=step == 2)
            else:
                builder.add_bottleneck(filters, width, outputs, step, num_groups)
            filters = outputs
    brew.average_pool(
        model,
        builder.prev_blob,
        "final_avg",
        kernel=final_avg_kernel,
        stride=1,
        global_pooling=True,
    )
    last = brew.fc(model, "final_avg", f"last_out_L{num_labels}", filters, num_labels)
    if no_loss:
        return last
    if label is not None:
        softmax, loss = model.SoftmaxWithLoss([last, label], ["softmax", "loss"])
        return softmax, loss
    return brew.softmax(model, last, "softmax")


def create_resnet50(
    model: ModelHelper,
    data: Any,
    num_input_channels: int,
    num_labels: int,
    label: Any = None,
    is_test: bool = False,
    no_loss: bool = False,
    no_bias: bool | int = 0,
    conv1_kernel: int = 7,
    conv1_stride: int = 2,
    final_avg_kernel: int = 7,
) -> Any:
    """Adds ResNet-50; see create_resnext."""
    return create_resnext(
        model,
        data,
        num_input_channels,
        num_labels,
        num_layers=50,
        num_groups=1,
        num_width_per_group=64,
        label=label,
        is_test=is_test,
        no_loss=no_loss,
        no_bias=no_bias,
        conv1_kernel=conv1_kernel,
        conv1_stride=conv1_stride,
        final_avg_kernel=final_avg_kernel,
    )


def create_resnet_32x32(
    model: ModelHelper,
    data: Any,
    num_input_channels: int,
    num_groups: int,
    num_labels: int,
    is_test: bool = False,
) -> Any:
    """Adds a small residual net for pictures of 32 x 32, with 3 parts of 2 * num_groups blocks; the
    softmax."""
    brew.conv(model, data, "conv1", num_input_channels, 16, weight_init=_FILL, kernel=3, stride=1)
    brew.spatial_bn(model, "conv1", "conv1_spatbn", 16, epsilon=1e-3, is_test=is_test)
    brew.relu(model, "conv1_spatbn", "relu1")
    builder = ResNetBuilder(model, "relu1", no_bias=0, is_test=is_test)
    filters = 16
    for part in range(3):
        for _ in range(2 * num_groups):
            outputs = 16 * 2**part
            builder.add_simple_block(filters, outputs, down_sampling=outputs != filters)
            filters = outputs
    brew.average_pool(model, builder.prev_blob, "final_avg", kernel=8, stride=1)
    brew.fc(model, "final_avg", "last_out", 64, num_labels)
    return brew.softmax(model, "last_out", "softmax")
