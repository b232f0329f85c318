"""The same operator or net on several devices; for tests of the old API."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from caffe2.proto import caffe2_pb2
from caffe2.runtime import workspace


class DeviceChecker:
    """Runs things on each device and compares the results with those of the first.

    threshold       how far apart elements may be
    device_options  the devices
    """

    def __init__(self, threshold: float, device_options: Sequence[Any]) -> None:
        self._threshold, self._device_options = threshold, list(device_options)

    def CheckSimple(
        self,
        op: caffe2_pb2.OperatorDef,
        inputs: Sequence[npt.NDArray[Any]],
        outputs_to_check: Sequence[int],
        input_device_options: Mapping[str, Any] | None = None,
    ) -> bool:
        """Whether the outputs of an operator agree."""
        results = []
        for device in self._device_options:
            op.device_option.CopyFrom(device)
            with workspace.Workspace():
                for name, value in zip(op.input, inputs, strict=True):
                    workspace.FeedBlob(name, value, (input_device_options or {}).get(name, device))
                workspace.RunOperatorOnce(op)
                names = [op.output[index] for index in outputs_to_check]
                results.append([workspace.FetchBlob(name) for name in names])
        return self._agree(results)

    def CheckNet(
        self,
        net: caffe2_pb2.NetDef,
        inputs: Mapping[str, npt.NDArray[Any]] | None = None,
        blobs_to_check: Sequence[str] | None = None,
        ignore: Sequence[str] | None = None,
    ) -> bool:
        """Whether the blobs of a net (default: all that it writes) agree."""
        written = dict.fromkeys(name for op in net.op for name in op.output)
        names = [name for name in blobs_to_check or written if name not in (ignore or ())]
        results = []
        for device in self._device_options:
            placed = copy.deepcopy(net)
            for op in placed.op:
                op.device_option.CopyFrom(device)
            with workspace.Workspace():
                for name, value in (inputs or {}).items():
                    workspace.FeedBlob(name, value, device)
                workspace.RunNetOnce(placed)
                results.append([workspace.FetchBlob(name) for name in names])
        return self._agree(results)

    def _agree(self, results: Sequence[Sequence[Any]]) -> bool:
        return all(
            np.allclose(first, other, rtol=0, atol=self._threshold)
            for found in results[1:]
            for first, other in zip(results[0], found, strict=True)
        )
