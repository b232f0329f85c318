"""Models of layers that know their records.

Every class of layers in this package is found by itself and is a method of models.
"""

import sys

from caffe2.layers.layer import (
    ModelLayer,
    find_subclasses_recursively,
    import_recursive,
    register_layer,
)

import_recursive(sys.modules[__name__])
model_layer_subcls: set[type] = set()
find_subclasses_recursively(ModelLayer, model_layer_subcls)
for _layer in model_layer_subcls:
    if not _layer.__name__.startswith("_"):  # bases of others
        register_layer(_layer.__name__, _layer)
