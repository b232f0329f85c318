"""The old name of `caffe2.python._C`."""

from caffe2.python._C import *  # noqa: F403
