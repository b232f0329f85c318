"""Readers of text files; see `caffe2.data.text_files`."""

from caffe2.data.text_files import TextFileReader

__all__ = ["TextFileReader"]
