"""Layers in general; see `caffe2.layers.layer` and `caffe2.layers.features`."""

from caffe2.layers.features import (
    IdList,
    IdListWithEvicted,
    IdScoreList,
    IdScoreListWithEvicted,
    almost_equal_schemas,
    get_avg_length,
    get_categorical_limit,
    get_key,
    is_request_only_scalar,
    set_request_only,
)
from caffe2.layers.layer import (
    AccessedFeatures,
    InstantiationContext,
    LayerParameter,
    LayerPsParam,
    ModelLayer,
    create_layer,
    get_layer_class,
    layer_exists,
    register_layer,
)

__all__ = [
    "AccessedFeatures",
    "IdList",
    "IdListWithEvicted",
    "IdScoreList",
    "IdScoreListWithEvicted",
    "InstantiationContext",
    "LayerParameter",
    "LayerPsParam",
    "ModelLayer",
    "almost_equal_schemas",
    "create_layer",
    "get_avg_length",
    "get_categorical_limit",
    "get_key",
    "get_layer_class",
    "is_request_only_scalar",
    "layer_exists",
    "register_layer",
    "set_request_only",
]
