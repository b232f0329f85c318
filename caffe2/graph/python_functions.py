"""Operators that stand for Python functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from caffe2.graph.operator import CreateOperator
from caffe2.ops.python import PythonFunction
from caffe2.proto import caffe2_pb2


def python_arguments(
    f: Any,
    grad_f: Any = None,
    pass_workspace: bool = False,
    grad_output_indices: Sequence[int] | None = None,
    grad_input_indices: Sequence[int] | None = None,
) -> tuple[dict[str, Any], PythonFunction]:
    """The arguments of a Python operator, and what has to live as long as it may run."""
    held = PythonFunction(f, grad_f, pass_workspace)
    arguments = {
        "grad_output_indices": list(grad_output_indices or ()),
        "grad_input_indices": list(grad_input_indices or ()),
        "token": held.token,
    }
    return arguments, held


_kept: list[PythonFunction] = []


def CreatePythonOperator(
    f: Any,
    inputs: Any,
    outputs: Any,
    grad_f: Any = None,
    pass_workspace: bool = False,
    python_func_type: Any = None,
    *args: Any,
    **kwargs: Any,
) -> caffe2_pb2.OperatorDef:
    """A Python operator (see `Net.Python`) that no net owns: its functions live as long as the
    process."""
    arguments, held = python_arguments(f, grad_f, pass_workspace)
    _kept.append(held)
    return CreateOperator("Python", inputs, outputs, *args, token=arguments["token"], **kwargs)
