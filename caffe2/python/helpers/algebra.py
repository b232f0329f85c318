"""Products and sums; see `caffe2.nn.helpers`."""

from caffe2.nn.helpers.algebra import arg_min, batch_mat_mul, mat_mul, reduce_sum, sub
from caffe2.nn.helpers.arrays import sum, transpose

__all__ = ["arg_min", "batch_mat_mul", "mat_mul", "reduce_sum", "sub", "sum", "transpose"]
