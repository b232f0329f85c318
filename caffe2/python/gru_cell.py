"""Gated recurrent units; see `caffe2.nn.recurrent_cells`."""

from caffe2.nn.recurrent_cells import GRUCell
from caffe2.nn.recurrent_layers import GRU

__all__ = ["GRU", "GRUCell"]
