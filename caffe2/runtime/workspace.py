"""The workspace functions of the old API, on one current workspace per process.

Blob names are strings or BlobReferences.  Errors of the engine are `EngineError`, a RuntimeError.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from caffe2 import _native, ops
from caffe2.graph.scope import CurrentNameScope
from caffe2.proto import caffe2_pb2
from caffe2.runtime import finite
from caffe2.runtime.devices import note_devices
from caffe2.runtime.engine import default_engine, set_threads
from caffe2.runtime.feeding import feed
from caffe2.runtime.handles import Workspace
from caffe2.runtime.names import (
    GetNetName,
    StringifyBlobName,
    StringifyNetName,
    StringifyProto,
    site_of,
    sites_of,
)
from caffe2.runtime.observers import connect_observers
from caffe2.runtime.predictor import Predictor
from caffe2.runtime.workspaces import (
    CreateWorkspace,
    CurrentWorkspace,
    DeleteWorkspace,
    ShareWorkspace,
    SwitchWorkspace,
    WorkspaceGuard,
    Workspaces,
    current,
    resolve,
)

__all__ = [
    "Blobs",
    "CreateBlob",
    "CreateNet",
    "CreateWorkspace",
    "CurrentWorkspace",
    "DeleteWorkspace",
    "DeserializeBlob",
    "FeedBlob",
    "FetchBlob",
    "FetchBlobs",
    "GetBlobSizeBytes",
    "GetGlobalInitArgs",
    "GetNameScope",
    "GetNetName",
    "GlobalInit",
    "GpuDeviceType",
    "HasBlob",
    "Nets",
    "Predictor",
    "RegisteredOperators",
    "RemoveBlob",
    "ResetBlob",
    "ResetWorkspace",
    "RootFolder",
    "RunNet",
    "RunNetOnce",
    "RunNets",
    "RunOperatorMultiple",
    "RunOperatorOnce",
    "RunOperatorsOnce",
    "RunPlan",
    "RunPlanInBackground",
    "RunStep",
    "SerializeBlob",
    "ShareWorkspace",
    "StringifyBlobName",
    "StringifyNetName",
    "StringifyProto",
    "SwitchWorkspace",
    "Workspace",
    "WorkspaceGuard",
    "Workspaces",
    "blobs",
    "current",
    "has_cuda_support",
    "has_gpu_support",
]

GpuDeviceType = caffe2_pb2.PROTO_CUDA
has_cuda_support = False
has_gpu_support = False

_log = logging.getLogger(__name__)
_lock = threading.Lock()
_global_init_args: list[str] = []


# ------------------------------------------------------------------- workspaces


def ResetWorkspace(root_folder: str | None = None) -> bool:
    """Forgets all nets and blobs of the current workspace.

    root_folder is made where missing; operators read and write files in it (default: ".").
    """
    if root_folder is not None:
        os.makedirs(root_folder, exist_ok=True)
    workspace = current()
    workspace.reset()
    workspace.root_folder = os.fspath(root_folder or ".")
    return True


def RootFolder() -> str:
    """The folder of the files of the current workspace: what ResetWorkspace was given, or "."."""
    return current().root_folder


def GetNameScope() -> str:
    """The current NameScope."""
    return CurrentNameScope()


# ------------------------------------------------------------------- blobs


def FeedBlob(name: Any, arr: Any, device_option: Any = None, *, ws: Any = None) -> bool:
    """Writes a copy of `arr` to a blob, which is made where missing.

    arr: an array of bool, (u)int8, (u)int16, int32, int64, float16, float32, float64, str or bytes
    (str as UTF-8); a number or list (floats become float32, integers int64); a TensorProto; or a
    str or bytes, which is kept as one string.  TypeError or EngineError for other element types,
    ValueError for text that is no Unicode.

    ws: a workspace or its name, instead of the current one; so in the functions below.
    """
    blob = StringifyBlobName(name)
    if device_option is not None and device_option.device_type != caffe2_pb2.PROTO_CPU:
        _log.info("blob '%s' was fed for another device; it is kept on the CPU", blob)
    feed(resolve(ws), blob, arr)
    return True


def FetchBlob(name: Any, *, ws: Any = None) -> Any:
    """A copy of a blob: an array (of bytes objects for strings), or bytes for a single string.

    Of what is no value, such as a mutex, comes a text that says what it is, in bytes.  EngineError
    when there is no such blob, and when it holds nothing.
    """
    return resolve(ws).fetch(StringifyBlobName(name))


def FetchBlobs(names: Sequence[Any], *, ws: Any = None) -> list[Any]:
    """Copies of several blobs."""
    return [FetchBlob(name, ws=ws) for name in names]


def Blobs(*, ws: Any = None) -> list[str]:
    """The names of all blobs of the current workspace."""
    return resolve(ws).blobs()


def HasBlob(name: Any, *, ws: Any = None) -> bool:
    """Whether the current workspace has a blob of this name."""
    return resolve(ws).has_blob(StringifyBlobName(name))


def CreateBlob(name: Any, *, ws: Any = None) -> bool:
    """Makes an empty blob, where there is none yet."""
    resolve(ws).create_blob(StringifyBlobName(name))
    return True


def RemoveBlob(name: Any, *, ws: Any = None) -> bool:
    """Removes a blob; its memory goes back at once.  False when there was none."""
    return resolve(ws).delete_blob(StringifyBlobName(name))


def ResetBlob(name: Any, *, ws: Any = None) -> None:
    """Empties a blob, which stays.  EngineError when there is none."""
    resolve(ws).reset_blob(StringifyBlobName(name))


def SerializeBlob(name: Any) -> bytes:
    """A blob as the bytes of a BlobProto."""
    return current().serialize(StringifyBlobName(name))


def DeserializeBlob(name: Any, serialized: bytes) -> None:
    """Writes what SerializeBlob gave to a blob.  EngineError for other bytes."""
    if not isinstance(serialized, bytes):
        raise TypeError(f"a serialized blob is bytes, not {type(serialized).__name__}")
    current().deserialize(StringifyBlobName(name), serialized)


def GetBlobSizeBytes(name: Any, *, ws: Any = None) -> int:
    """The bytes that the tensor in a blob takes, for strings their texts too; 0 for other kinds.

    EngineError when there is no such blob.
    """
    workspace, blob = resolve(ws), StringifyBlobName(name)
    spec = workspace.tensor_spec(blob)
    if spec is None:
        return 0
    if spec[1] == "object":
        texts: Any = workspace.fetch(blob)
        return int(texts.nbytes) + sum(len(text) for text in texts.flat)
    return int(np.prod(spec[0], dtype=np.int64)) * np.dtype(spec[1]).itemsize


class _BlobDict(Mapping[str, Any]):
    """The blobs of the current workspace as a dictionary: `workspace.blobs["x"] = array`."""

    def __getitem__(self, key: Any) -> Any:
        return FetchBlob(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        FeedBlob(key, value)

    def __len__(self) -> int:
        return len(Blobs())

    def __iter__(self) -> Iterator[str]:
        return iter(Blobs())

    def __contains__(self, key: object) -> bool:
        return HasBlob(key)


blobs = _BlobDict()


# ------------------------------------------------------------------- running


def RunOperatorOnce(operator: Any) -> bool:
    """Runs one operator: an OperatorDef, its bytes, or (type, inputs, outputs[, arguments]).

    An error names the line of your program that ran it, or the one that is kept in the message.
    """
    if isinstance(operator, tuple):
        from caffe2.graph.operator import CreateOperator

        kind, inputs, outputs, *rest = operator
        operator = CreateOperator(kind, inputs, outputs, **(rest[0] if rest else {}))
    note_devices(operator)
    current().run_operator(StringifyProto(operator), site_of(operator))
    return True


def RunOperatorMultiple(operator: Any, num_runs: int) -> bool:
    """Runs one operator several times."""
    for _ in range(num_runs):
        RunOperatorOnce(operator)
    return True


def RunOperatorsOnce(operators: Sequence[Any]) -> bool:
    """Runs operators in order."""
    for operator in operators:
        RunOperatorOnce(operator)
    return True


def RunNetOnce(net: Any) -> bool:
    """Runs a Net or NetDef once, without keeping it."""
    note_devices(net)
    if finite.enabled():
        return _run_watched(net)
    current().run_net_once(StringifyProto(net), sites_of(net))
    return True


def _run_watched(net: Any) -> bool:
    """RunNetOnce, where numbers that are not finite are looked for."""
    proto = caffe2_pb2.NetDef.FromString(StringifyProto(net))
    taken = set(Nets())
    proto.name = next(name for i in count() if (name := f"{proto.name}_watched_{i}") not in taken)
    current().create_net(proto.SerializeToString(), sites_of(net))
    try:
        return RunNet(proto.name)
    finally:
        current().delete_net(proto.name)


def CreateNet(net: Any, overwrite: bool = False, input_blobs: Sequence[Any] | None = None) -> bool:
    """Makes a net ready to run by its name.

    Returns True; EngineError when the net is malformed, when a blob that it reads does not exist
    (those of the list `input_blobs` are made, empty), or when its name is taken and not to be
    overwritten.  Nothing in the workspace changes then.
    """
    if isinstance(input_blobs, (str, bytes)):
        raise TypeError(f"input_blobs is a list of names, not one name: {input_blobs!r:.200}")
    workspace, message = current(), StringifyProto(net)
    note_devices(net)
    wanted = dict.fromkeys(StringifyBlobName(blob) for blob in input_blobs or ())
    made = [blob for blob in wanted if not workspace.has_blob(blob)]
    for blob in made:
        workspace.create_blob(blob)
    try:
        workspace.create_net(message, sites_of(net), overwrite)
    except BaseException:
        for blob in made:
            workspace.delete_blob(blob)
        raise
    connect_observers(workspace, net)
    return True


def RunNet(name: Any, num_iter: int = 1, allow_fail: bool = False) -> bool:
    """Runs a net that CreateNet made, `num_iter` times.

    With allow_fail an error returns False instead of raising, unless it is one that no operator
    should have (code "internal").  ValueError for a negative number.
    """
    workspace, net, runs = current(), StringifyNetName(name), range(num_iter)
    if num_iter < 0:
        raise ValueError(f"num_iter is {num_iter}; a net runs 0 times or more")
    connect_observers(workspace, name)
    try:
        for _ in runs:
            workspace.run_net(net)
    except _native.EngineError as error:
        if not allow_fail or error.code == "internal":
            raise
        return False
    return True


def RunNets(nets: Sequence[Any]) -> bool:
    """Runs several created nets in order, each once."""
    for net in nets:
        RunNet(net)
    return True


def _plan_bytes(plan_or_step: Any) -> tuple[bytes, list[list[str]]]:
    """A plan for the engine: the bytes of its message, and the sites of its nets' operators."""
    from caffe2.plans.plan import Plan
    from caffe2.plans.step import ExecutionStep

    if isinstance(plan_or_step, ExecutionStep):
        plan_or_step = Plan(plan_or_step)
    if isinstance(plan_or_step, Plan):
        return StringifyProto(plan_or_step), plan_or_step.network_sites
    if isinstance(plan_or_step, (caffe2_pb2.PlanDef, bytes)):
        return StringifyProto(plan_or_step), []
    raise TypeError(
        "a Plan, an ExecutionStep, a PlanDef or its bytes is needed, "
        f"not {type(plan_or_step).__name__}"
    )


def RunPlan(plan_or_step: Any) -> bool:
    """Runs a Plan, an ExecutionStep, a PlanDef or its bytes.

    The nets that its steps use become those of the current workspace and replace nets of the same
    name; a step with `create_workspace` keeps its own to itself.  Steps at the top of the plan run
    one after the other.  What a step runs is made ready when the step begins, and the first error
    ends the plan: EngineError, whose text and attributes name net, operator and step.  A malformed
    plan is refused before anything runs.  `criteria_network` has no effect, as ever.
    """
    current().run_plan(*_plan_bytes(plan_or_step))
    return True


def RunStep(step: Any) -> bool:
    """Runs an ExecutionStep as a plan of its own, on `step.num_threads` threads if it says so:
    that many the engine of all workspaces has meanwhile."""
    if step.num_threads is None:
        return RunPlan(step)
    threads = default_engine().threads
    set_threads(step.num_threads)
    try:
        return RunPlan(step)
    finally:
        set_threads(threads)


_background_plans: list[_native.BackgroundPlan] = []


def RunPlanInBackground(plan_or_step: Any) -> _native.BackgroundPlan:
    """Runs a plan (see RunPlan) on a thread of its own.

    What it gives has `is_done()`; `is_succeeded()`, which raises the plan's error, and EngineError
    while it runs; and `cancel()`, which ends the plan and waits for its end.  Plans that run when
    the interpreter exits are cancelled.
    """
    plan = _native.BackgroundPlan(current(), *_plan_bytes(plan_or_step))
    with _lock:
        _background_plans[:] = [*(p for p in _background_plans if not p.is_done()), plan]
    return plan


def Nets() -> list[str]:
    """The names of all created nets of the current workspace."""
    return current().nets()


def RegisteredOperators() -> list[str]:
    """The types of all operators."""
    return sorted(ops.all())


# ------------------------------------------------------------------- start


def GlobalInit(args: Sequence[str | bytes]) -> None:
    """Takes the command line flags of the old API: `["caffe2", "--flag=value", ...]`.

    --caffe2_omp_num_threads=N sets the number of threads (0: all cores).
    --caffe2_operator_throw_if_fp_exceptions=1 lets nets that run end with an EngineError, whose
    cause is a FloatingPointError, at the first operator that makes infinities or what is no number
    out of finite numbers; they are slow then.
    Other flags of the old API are noted (logging, level info) and have no effect.  TypeError for
    what is no list of str; ValueError for a flag with one `-` or a number of threads that is none.
    Other words are for the program.
    """
    if isinstance(args, (str, bytes)):
        raise TypeError(f"flags are a list, the name of the program first, not {args!r:.200}")
    _global_init_args[:] = map(_flag, args)
    for item in list(args)[1:]:
        flag = _flag(item)
        if not flag.startswith("-"):
            continue
        if not flag.startswith("--"):
            raise ValueError(f"flags look like --name=value; found '{flag}'")
        name, _, value = flag[2:].partition("=")
        if name == "caffe2_omp_num_threads":
            if not value.isdecimal() or len(value) > 20:
                raise ValueError(f"--{name} needs a number of threads, not '{value:.80}'")
            set_threads(int(value))
        elif name == "caffe2_operator_throw_if_fp_exceptions":
            finite.enable(value.lower() in ("", "1", "true"))
        else:
            _log.info("flag --%s has no effect", name)


def GetGlobalInitArgs() -> list[str]:
    """The flags that GlobalInit was given last, the name of the program first."""
    return list(_global_init_args)


def _flag(item: Any) -> str:
    if isinstance(item, str):
        return item
    if not isinstance(item, bytes):
        raise TypeError(f"a flag is a str, not {type(item).__name__}: {item!r:.200}")
    try:
        return item.decode()
    except UnicodeDecodeError:
        raise ValueError(f"a flag is UTF-8 text, which {item[:80]!r} is not") from None
