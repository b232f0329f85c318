"""ShuffleNet V2 (Ma et al., "ShuffleNet V2: Practical Guidelines for Efficient CNN Architecture
Design", 2018)."""

from __future__ import annotations

from typing import Any

from caffe2.graph.errors import UsageError
from caffe2.nn.brew import brew

# Channels after the first stage, the three others and the last convolution.
OUTPUT_CHANNELS = {
    "0.5x": [24, 48, 96, 192, 1024],
    "1.0x": [24, 116, 232, 464, 1024],
    "1.5x": [24, 176, 352, 704, 1024],
    "2.0x": [24, 244, 488, 976, 2048],
}
_REPEATS = (3, 7, 3)


class ShuffleNetV2Builder:
    """Adds the layers up to the last one, `last_out_L<labels>`.

    width       a key of OUTPUT_CHANNELS
    num_groups  how many groups of channels are shuffled
    detection   a 3x3 depthwise convolution more before each branch, for larger receptive fields
    """

    def __init__(
        self,
        model: Any,
        data: Any,
        num_input_channels: int,
        num_labels: int,
        num_groups: int = 2,
        width: str = "1.0x",
        is_test: bool = False,
        detection: bool = False,
        bn_epsilon: float = 1e-5,
    ) -> None:
        if width not in OUTPUT_CHANNELS:
            raise UsageError(f"width is {width!r}; it must be one of {', '.join(OUTPUT_CHANNELS)}")
        self.model = model
        self.prev_blob = data
        self.num_input_channels = num_input_channels
        self.num_labels = num_labels
        self.num_groups = num_groups
        self.output_channels = OUTPUT_CHANNELS[width]
        self.stage_repeats = list(_REPEATS)
        self.is_test = is_test
        self.detection = detection
        self.bn_epsilon = bn_epsilon

    def create(self) -> Any:
        """Adds all layers; gives the blob of the last one."""
        channels = self.output_channels
        self.prev_blob = brew.conv(
            self.model,
            self.prev_blob,
            "stage1_conv",
            self.num_input_channels,
            channels[0],
            weight_init=("MSRAFill", {}),
            kernel=3,
            stride=2,
        )
        self.prev_blob = brew.max_pool(
            self.model, self.prev_blob, "stage1_pool", kernel=3, stride=2
        )
        for stage, repeats in enumerate(self.stage_repeats):
            before, after = channels[stage], channels[stage + 1]
            self.add_spatial_ds_unit(f"stage{stage + 2}_stride2", before, after)
            for repeat in range(1, repeats + 1):
                self.add_basic_unit(f"stage{stage + 2}_stride1_repeat{repeat}", after)
        self.last_conv = brew.conv(
            self.model, self.prev_blob, "conv5", channels[-2], channels[-1], kernel=1
        )
        self.avg_pool = brew.average_pool(self.model, self.last_conv, "avg_pool", kernel=7)
        self.last_out = brew.fc(
            self.model, self.avg_pool, f"last_out_L{self.num_labels}", channels[-1], self.num_labels
        )
        return self.last_out

    def add_spatial_ds_unit(
        self, prefix: str, in_channels: int, out_channels: int, stride: int = 2
    ) -> None:
        """Halves the map: two branches, each with half of the output channels."""
        half = out_channels // 2
        left = right = self.prev_blob
        if self.detection:
            left = self.add_detection_unit(left, f"{prefix}_left", in_channels, in_channels)
        left = self.add_dwconv3x3_bn(left, f"{prefix}left_dwconv", in_channels, stride)
        left = self.add_conv1x1_bn(left, f"{prefix}_left_conv1", in_channels, half)
        if self.detection:
            right = self.add_detection_unit(right, f"{prefix}_right", in_channels, in_channels)
        right = self.add_conv1x1_bn(right, f"{prefix}_right_conv1", in_channels, half)
        right = self.add_dwconv3x3_bn(right, f"{prefix}_right_dwconv", half, stride)
        right = self.add_conv1x1_bn(right, f"{prefix}_right_conv2", half, half)
        self._join(prefix, right, left)

    def add_basic_unit(self, prefix: str, in_channels: int, stride: int = 1) -> None:
        """One half of the channels passes, the other goes through three convolutions."""
        half = in_channels // 2
        left, right = self.model.net.Split(self.prev_blob, [f"{prefix}_left", f"{prefix}_right"])
        if self.detection:
            right = self.add_detection_unit(right, f"{prefix}_right", half, half)
        right = self.add_conv1x1_bn(right, f"{prefix}_right_conv1", half, half)
        right = self.add_dwconv3x3_bn(right, f"{prefix}_right_dwconv", half, stride)
        right = self.add_conv1x1_bn(right, f"{prefix}_right_conv2", half, half)
        self._join(prefix, right, left)

    def _join(self, prefix: str, right: Any, left: Any) -> None:
        joined = brew.concat(self.model, [right, left], f"{prefix}_concat")
        self.prev_blob = self.model.net.ChannelShuffle(
            joined, f"{prefix}_ch_shuffle", group=self.num_groups, kernel=1
        )

    def add_detection_unit(
        self,
        prev_blob: Any,
        prefix: str,
        in_channels: int,
        out_channels: int,
        kernel: int = 3,
        pad: int = 1,
    ) -> Any:
        """A depthwise convolution, normalized."""
        blob = self._conv(
            prev_blob,
            f"{prefix}_detection_conv",
            in_channels,
            out_channels,
            kernel=kernel,
            group=in_channels,
            pad=pad,
        )
        return self._spatial_bn(blob, f"{prefix}_detection_bn", out_channels)

    def add_conv1x1_bn(self, prev_blob: Any, blob: str, in_channels: int, out_channels: int) -> Any:
        """A convolution of 1x1, normalized, and Relu."""
        conv = self._conv(prev_blob, blob, in_channels, out_channels, kernel=1)
        normalized = self._spatial_bn(conv, f"{blob}_bn", out_channels)
        return brew.relu(self.model, normalized, normalized)

    def add_dwconv3x3_bn(self, prev_blob: Any, blob: str, channels: int, stride: int) -> Any:
        """A depthwise convolution of 3x3, normalized."""
        conv = self._conv(
            prev_blob, blob, channels, channels, kernel=3, stride=stride, group=channels, pad=1
        )
        return self._spatial_bn(conv, f"{blob}_bn", channels)

    def _conv(
        self, blob: Any, name: str, in_channels: int, out_channels: int, **kwargs: Any
    ) -> Any:
        return brew.conv(
            self.model,
            blob,
            name,
            in_channels,
            out_channels,
            weight_init=("MSRAFill", {}),
            **kwargs,
        )

    def _spatial_bn(self, blob: Any, name: str, channels: int) -> Any:
        return brew.spatial_bn(
            self.model, blob, name, channels, epsilon=self.bn_epsilon, is_test=self.is_test
        )


def create_shufflenet(
    model: Any,
    data: Any,
    num_input_channels: int,
    num_labels: int,
    label: Any = None,
    is_test: bool = False,
    no_loss: bool = False,
) -> Any:
    """ShuffleNet V2 of width 1 for pictures of 224x224.

    Gives the blob before the softmax with `no_loss`, else `softmax`, and `loss` with a label.
    """
    builder = ShuffleNetV2Builder(model, data, num_input_channels, num_labels, is_test=is_test)
    builder.create()
    if no_loss:
        return builder.last_out
    if label is None:
        return brew.softmax(model, builder.last_out, "softmax")
    return tuple(model.net.SoftmaxWithLoss([builder.last_out, label], ["softmax", "loss"]))
