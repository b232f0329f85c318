"""Cells and layers of recurrent nets; see `caffe2.nn.recurrent_cells` and `recurrent_layers`."""

from caffe2.nn.brew import brew
from caffe2.nn.model_helper import ModelHelper
from caffe2.nn.parameters import Initializer, ParameterTags
from caffe2.nn.recurrent_attention import (
    AttentionCell,
    AttentionType,
    LSTMWithAttention,
    LSTMWithAttentionCell,
    MILSTMWithAttentionCell,
    apply_dot_attention,
    apply_recurrent_attention,
    apply_regular_attention,
    apply_soft_coverage_attention,
)
from caffe2.nn.recurrent_cells import (
    BasicRNNCell,
    LayerNormLSTMCell,
    LayerNormMILSTMCell,
    LSTMCell,
    LSTMInitializer,
    MILSTMCell,
    RNNCell,
)
from caffe2.nn.recurrent_layers import (
    LSTM,
    MILSTM,
    BasicRNN,
    GetLSTMParamNames,
    InitFromLSTMParams,
    LayerNormLSTM,
    LayerNormMILSTM,
    UnrolledCell,
    layered_LSTM,
)
from caffe2.nn.recurrent_stacks import DropoutCell, MultiRNNCell, MultiRNNCellInitializer

__all__ = [
    "LSTM",
    "MILSTM",
    "AttentionCell",
    "AttentionType",
    "BasicRNN",
    "BasicRNNCell",
    "DropoutCell",
    "GetLSTMParamNames",
    "InitFromLSTMParams",
    "Initializer",
    "LSTMCell",
    "LSTMInitializer",
    "LSTMWithAttention",
    "LSTMWithAttentionCell",
    "LayerNormLSTM",
    "LayerNormLSTMCell",
    "LayerNormMILSTM",
    "LayerNormMILSTMCell",
    "MILSTMCell",
    "MILSTMWithAttentionCell",
    "ModelHelper",
    "MultiRNNCell",
    "MultiRNNCellInitializer",
    "ParameterTags",
    "RNNCell",
    "UnrolledCell",
    "apply_dot_attention",
    "apply_recurrent_attention",
    "apply_regular_attention",
    "apply_soft_coverage_attention",
    "brew",
    "layered_LSTM",
]
