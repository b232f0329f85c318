"""Nets that ask for devices which are not there."""

from __future__ import annotations

import logging
import os
from typing import Any

from caffe2.graph.device import IsGPUDeviceType
from caffe2.proto import caffe2_pb2

_log = logging.getLogger(__name__)
_noted = False


def note_devices(runnable: Any) -> None:
    """Says once in the log (level warning) that what asks for a GPU runs on the CPU.

    runnable: an operator, a net or their messages.  With CAFFE2_STRICT_DEVICES=1 in the
    environment it is a RuntimeError instead, every time.
    """
    global _noted  # noqa: PLW0603 - once per process
    if isinstance(runnable, caffe2_pb2.OperatorDef) and not runnable.HasField("device_option"):
        return  # nearly all: without the time that a look at the environment takes
    strict = os.environ.get("CAFFE2_STRICT_DEVICES", "0") not in ("", "0")
    if _noted and not strict:
        return
    message = runnable.Proto() if hasattr(runnable, "Proto") else runnable
    if isinstance(message, caffe2_pb2.OperatorDef):
        ops = [message]
    elif isinstance(message, caffe2_pb2.NetDef):
        ops = list(message.op)
        if IsGPUDeviceType(message.device_option.device_type):
            ops = ops[:1]
    else:
        return
    for op in ops:
        device = op.device_option if op.HasField("device_option") else None
        if device is None and isinstance(message, caffe2_pb2.NetDef):
            device = message.device_option
        if device is None or not IsGPUDeviceType(device.device_type):
            continue
        kind, outputs = repr(op.type)[1:-1], ", ".join(op.output)  # repr: nothing for terminals
        where = f"{kind} {outputs!r} asks for GPU {device.device_id}"
        if strict:
            raise RuntimeError(f"{where}; there is none, and CAFFE2_STRICT_DEVICES is set")
        _log.warning("%s; there is none: it runs on the CPU (said once)", where)
        _noted = True
        return
