"""Layers, by module; see `caffe2.layers`."""

from caffe2.layers import model_layer_subcls
from caffe2.layers.layer import find_subclasses_recursively, import_recursive

__all__ = ["find_subclasses_recursively", "import_recursive", "model_layer_subcls"]
