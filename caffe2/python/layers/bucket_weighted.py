"""The layer BucketWeighted; see `caffe2.layers.sparse`."""

from caffe2.layers.sparse import BucketWeighted

__all__ = ["BucketWeighted"]
