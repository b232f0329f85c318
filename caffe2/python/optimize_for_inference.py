"""`optimize(predict_net, ["data"], ["prob"])`; see `caffe2.runtime.inference`."""

from caffe2.runtime.inference import optimize

__all__ = ["optimize"]
