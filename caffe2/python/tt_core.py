"""Tensors as products of small ones; see `caffe2.nn.tensor_train`."""

from caffe2.nn.tensor_train import tt_svd

__all__ = ["tt_svd"]
