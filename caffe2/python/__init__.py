"""The API that scripts written for Caffe2 import: `from caffe2.python import core, workspace`.

Its modules only re-export.
"""
