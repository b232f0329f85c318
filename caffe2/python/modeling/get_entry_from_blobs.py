"""Elements of blobs; see `caffe2.train.net_modifiers`."""

from caffe2.train.net_modifiers import GetEntryFromBlobs

__all__ = ["GetEntryFromBlobs"]
