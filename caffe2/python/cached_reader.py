"""Readers whose records are kept in a database; see `caffe2.data.db_files`."""

from caffe2.data.db_files import CachedReader

__all__ = ["CachedReader"]
