"""Cores of weights in the tensor-train format."""

from caffe2.nn.tensor_train import init_tt_cores, matrix_to_tt, tt_svd

__all__ = ["init_tt_cores", "matrix_to_tt", "tt_svd"]
