"""Records in blobs; see `caffe2.data.dataset`."""

from caffe2.data.dataset import Const, Dataset, execution_step_with_progress

__all__ = ["Const", "Dataset", "execution_step_with_progress"]
