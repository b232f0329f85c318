"""Saved models by name: `python -m caffe2.python.models.download squeezenet`; see
`caffe2.runtime.model_store`."""

import sys

from caffe2.runtime.model_store import (
    DOWNLOAD_BASE_URL,
    ModelDownloader,
    deleteDirectory,
    downloadFromURLToFile,
    getURLFromName,
    install,
)

__all__ = [
    "DOWNLOAD_BASE_URL",
    "ModelDownloader",
    "deleteDirectory",
    "downloadFromURLToFile",
    "getURLFromName",
]

if __name__ == "__main__":
    install([name for name in sys.argv[1:] if not name.startswith("-")])
