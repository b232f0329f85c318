"""How a layer normalizes its outputs, as options that the layer reads."""

from __future__ import annotations

from typing import Any


class Normalizer:
    """The base of normalizers."""

    def __call__(self, net: Any, param: Any) -> Any:
        return self._run(net, param)

    def _run(self, net: Any, param: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not normalize by itself")


class BatchNormalizer(Normalizer):
    """Batch normalization: the momentum of the running means, and the scale at first."""

    def __init__(self, momentum: float, scale_init_value: float = 1.0) -> None:
        self._momentum = float(momentum)
        self._scale_init_value = float(scale_init_value)

    def _run(self, layer_model: Any, param: Any) -> Any:
        return layer_model.BatchNormalization(
            param, momentum=self._momentum, scale_init_value=self._scale_init_value
        )


class LayerNormalizer(Normalizer):
    """Layer normalization: its epsilon, whether the operator LayerNorm does it, and the scale at
    first."""

    def __init__(
        self, epsilon: float, use_layer_norm_op: bool = True, scale_init_value: float = 1.0
    ) -> None:
        self._epsilon = float(epsilon)
        self._use_layer_norm_op = use_layer_norm_op
        self._scale_init_value = float(scale_init_value)

    def _run(self, layer_model: Any, param: Any) -> Any:
        return layer_model.LayerNormalization(
            param,
            epsilon=self._epsilon,
            use_layer_norm_op=self._use_layer_norm_op,
            scale_init_value=self._scale_init_value,
        )
