"""An init net and a predict net for serving; see `caffe2.graph.predictor`."""

from caffe2.graph.predictor import Export, add_tensor

__all__ = ["Export", "add_tensor"]
