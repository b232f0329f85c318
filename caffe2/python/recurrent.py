"""Recurrent nets from a net for one step; see `caffe2.nn.recurrent`."""

from caffe2.nn.recurrent import recurrent_net, retrieve_step_blobs, set_rnn_executor_config

__all__ = ["recurrent_net", "retrieve_step_blobs", "set_rnn_executor_config"]
