"""Nets that a function builds, and saved models by name; see `caffe2.nn.residual` and
`caffe2.runtime.model_store`."""

from caffe2.runtime.model_store import serve_models

serve_models(__name__)
