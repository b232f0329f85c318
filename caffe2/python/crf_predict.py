"""The best sequences of conditional random fields; see `caffe2.nn.crf`."""

from caffe2.nn.crf import CRFWithLoss, apply_crf, crf_update_predictions

__all__ = ["CRFWithLoss", "apply_crf", "crf_update_predictions"]
