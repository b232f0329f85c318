"""Records in database files; see `caffe2.data.db_files`."""

from caffe2.data.db_files import DBFileReader

__all__ = ["DBFileReader"]
