"""Libraries of further operators; see `caffe2.runtime.plugins`."""

from caffe2.runtime.plugins import GetImportedOpsLibraries, InitOpsLibrary, dll_lock

__all__ = ["GetImportedOpsLibraries", "InitOpsLibrary", "dll_lock"]
