"""The process's default engine, which the workspaces of the old API share.

It is made when first needed.  `CAFFE2_ISA` in the environment ("sse4", "avx2", "avx512", "neon", or
"generic" where the engine was built with it) forces the instruction set of its kernels, and
`CAFFE2_ENGINE` ("Conv:IM2COL,FC:REFERENCE") the kernel of all operators of a type, whatever they
ask for with `engine=`.  `set_threads` and `GlobalInit` say how many threads it uses (by default all
cores), `set_memory_limit` and `CAFFE2_MEMORY_LIMIT`, in bytes, how much memory its tensors may take
(by default three quarters of what the machine or container has).
"""

from __future__ import annotations

import functools
import logging
import operator
import os
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from caffe2 import _native, ops
from caffe2.ops.python import running_in
from caffe2.proto import caffe2_pb2
from caffe2.runtime.databases import open_database

_MAX_THREADS = 1024
_MAX_BYTES = 2 * sys.maxsize + 1  # no limit
_STALL_SECONDS = 60.0
_log = logging.getLogger(__name__)
_lock = threading.Lock()
_engine: _native.Engine | None = None


def default_engine() -> _native.Engine:
    """The engine of the process.

    ValueError when CAFFE2_ISA or CAFFE2_ENGINE names what this CPU or build lacks, or when
    CAFFE2_MEMORY_LIMIT is no number of bytes.
    """
    global _engine  # noqa: PLW0603 - the one lazy object of the process
    with _lock:
        if _engine is None:
            isa, known = os.environ.get("CAFFE2_ISA") or "auto", _native.instruction_sets()
            if isa not in ("auto", *known):
                raise ValueError(
                    f"CAFFE2_ISA in the environment is '{isa}'; this CPU and build have "
                    f"{', '.join(known)}, and auto takes the best of them"
                )
            limit = os.environ.get("CAFFE2_MEMORY_LIMIT") or "0"
            if not limit.isdecimal() or int(limit) > _MAX_BYTES:
                raise ValueError(
                    f"CAFFE2_MEMORY_LIMIT in the environment is '{limit:.80}'; a number of bytes "
                    f"is needed, or 0 for three quarters of the memory there is"
                )
            try:
                _engine = _native.Engine(
                    isa=isa,
                    memory_limit=int(limit),
                    kernels=os.environ.get("CAFFE2_ENGINE", ""),
                    on_stall=_report_stall,
                    print=_print,
                    open_database=open_database,
                )
            except _native.EngineError as error:
                raise ValueError(f"CAFFE2_ENGINE in the environment: {error}") from None
            _engine.stall_seconds = _STALL_SECONDS
        return _engine


def _find_declaration(type: bytes) -> ops.Declaration | None:
    """Asked by the engine for operators that were declared after it was built."""
    try:
        return ops.find(type.decode("utf-8", "replace"))
    except ops.UnknownOperatorError:
        return None


_native.set_declarations(_find_declaration)


def _print(text: bytes) -> None:
    """What Print shows."""
    print(text.decode("utf-8", "replace"), file=sys.stderr)


def _report_stall(text: bytes) -> None:
    """Called by the engine, on any thread."""
    _log.warning("%s; it has waited for a while", text.decode("utf-8", "replace"))


def report_stalls(seconds: float) -> None:
    """After how many seconds an operator that waits is reported; 0: never; 60 at the beginning.

    The report is a warning of the logger "caffe2.runtime.engine", one for each wait: which operator
    waits for what.  ValueError for a negative or infinite number.
    """
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"stalls cannot be reported after {seconds} seconds; 0 means never")
    default_engine().stall_seconds = float(seconds)


def set_threads(threads: int) -> None:
    """Number of threads that operators may use, the calling one included; 0: all cores.

    ValueError for numbers below 0 or above 1024.
    """
    threads = operator.index(threads)
    if not 0 <= threads <= _MAX_THREADS:
        raise ValueError(
            f"{threads} threads are asked for; 0 (all cores) to {_MAX_THREADS} are allowed"
        )
    default_engine().threads = threads


def set_memory_limit(limit: int) -> None:
    """How many bytes the tensors and the scratch memory of the engine may take together.

    0: three quarters of the memory of the machine or container, as at the beginning.  What would
    pass it is an EngineError that names the operator and the bytes, and nothing else happens.
    Memory of other engines, of mapped model files and of NumPy does not count.  ValueError for
    numbers that are negative or no size of memory.
    """
    limit = operator.index(limit)
    if not 0 <= limit <= _MAX_BYTES:
        raise ValueError(f"a limit of memory is 0 to {_MAX_BYTES} bytes, not {limit}")
    default_engine().memory_limit = limit


def new_workspace(
    engine: _native.Engine | None = None, parent: _native.Workspace | None = None
) -> _native.Workspace:
    """An empty workspace that can also run operators on their NumPy bodies.

    parent: a workspace around it, whose engine it shares; its blobs are there too.
    """
    workspace = _native.Workspace(engine or default_engine(), parent)
    workspace.set_reference(functools.partial(prepare_body, weakref.ref(workspace)))
    return workspace


def _handle(workspace: _native.Workspace | None) -> Any:
    """What a Python function gets as its workspace."""
    from caffe2.runtime.handles import Workspace

    return None if workspace is None else Workspace.of(workspace)


def prepare_body(
    workspace: Callable[[], _native.Workspace | None], op_def: bytes
) -> Callable[[Sequence[npt.NDArray[Any]], tuple[int, int, int]], list[npt.NDArray[Any]]]:
    """What computes the outputs of an operator by its NumPy body: a function of the inputs and of
    (seed, position in the net, number of the run), which names the random numbers.

    workspace: gives the one that the operator runs in.
    """
    message = caffe2_pb2.OperatorDef.FromString(op_def)
    declaration = ops.find(message.type)
    view = declaration.view_of(message)

    def body(
        inputs: Sequence[npt.NDArray[Any]], stream: tuple[int, int, int]
    ) -> list[npt.NDArray[Any]]:
        seed, position, run = stream
        view.set_rng(np.random.Generator(np.random.Philox(key=[seed, position << 32 | run])))
        with running_in(lambda: _handle(workspace())):
            outputs = declaration.run(view, inputs)
        return [np.asarray(output, order="C") for output in outputs]

    return body
