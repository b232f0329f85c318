"""Ending a process that hangs; see `caffe2.runtime.timeout`."""

from caffe2.runtime.timeout import CompleteInTimeOrDie, EuthanizeIfNecessary, WatcherThread

__all__ = ["CompleteInTimeOrDie", "EuthanizeIfNecessary", "WatcherThread"]
