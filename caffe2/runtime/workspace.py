"""The workspace functions of the old API, on one current workspace per process.

Blob names are strings or BlobReferences.  Errors of the engine are `EngineError`, a RuntimeError.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from google.protobuf.message import Message

from caffe2 import _native, ops
from caffe2.proto import caffe2_pb2
from caffe2.runtime.engine import default_engine, new_workspace, set_threads
from caffe2.runtime.feeding import feed
from caffe2.runtime.predictor import Predictor

__all__ = [
    "Blobs",
    "CreateBlob",
    "CreateNet",
    "CurrentWorkspace",
    "DeserializeBlob",
    "FeedBlob",
    "FetchBlob",
    "FetchBlobs",
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
    "RunNet",
    "RunNetOnce",
    "RunNets",
    "RunOperatorOnce",
    "RunOperatorsOnce",
    "RunPlan",
    "RunPlanInBackground",
    "RunStep",
    "SerializeBlob",
    "StringifyBlobName",
    "StringifyNetName",
    "StringifyProto",
    "SwitchWorkspace",
    "WorkspaceGuard",
    "Workspaces",
    "blobs",
    "has_cuda_support",
    "has_gpu_support",
]

GpuDeviceType = caffe2_pb2.PROTO_CUDA
has_cuda_support = False
has_gpu_support = False

_DEFAULT = "default"
_log = logging.getLogger(__name__)
_lock = threading.Lock()
_workspaces: dict[str, _native.Workspace] = {}
_current = _DEFAULT
_active: _native.Workspace | None = None  # that of _current, once it was needed


def current() -> _native.Workspace:
    """The native workspace that the functions of this module work on."""
    global _active  # noqa: PLW0603 - see SwitchWorkspace
    if _active is None:
        with _lock:
            if _current not in _workspaces:
                _workspaces[_current] = new_workspace()
            _active = _workspaces[_current]
    return _active


# ------------------------------------------------------------------- names


def StringifyBlobName(name: Any) -> str:
    """The name of a blob given as str, bytes or BlobReference."""
    return _name(name, "blob")


def StringifyNetName(name: Any) -> str:
    """The name of a net given as str, bytes or Net."""
    return _name(name, "net")


def _name(value: Any, what: str) -> str:
    if type(value).__name__ in ("BlobReference", "ScopedBlobReference", "Net"):
        value = str(value)
    if isinstance(value, str) and value.isascii():
        return value
    if not isinstance(value, (str, bytes)):
        raise TypeError(
            f"a {what} is named by a str, not by {type(value).__name__}: {value!r:.200}"
        )
    try:
        return value.decode() if isinstance(value, bytes) else value.encode().decode()
    except UnicodeError:
        raise ValueError(
            f"the name of a {what} is UTF-8 text, which {value[:80]!a} is not"
        ) from None


def StringifyProto(obj: Any) -> bytes:
    """The bytes of a message, of an object with `Proto()`, or bytes as they are."""
    if isinstance(obj, Message):
        return obj.SerializeToString()
    if isinstance(obj, bytes):
        return obj
    if hasattr(obj, "Proto"):
        return StringifyProto(obj.Proto())
    raise TypeError(f"a protobuf message or an object with Proto() is needed, not {obj!r}")


def GetNetName(net: Any) -> str:
    """The name of a Net or NetDef."""
    if isinstance(net, caffe2_pb2.NetDef):
        return str(net.name)
    return str(net.Name())


# ------------------------------------------------------------------- workspaces


def SwitchWorkspace(name: str | bytes, create_if_missing: bool = False) -> None:
    """Makes `name` the current workspace.  RuntimeError when there is none and none is wanted."""
    global _active, _current
    name = _name(name, "workspace")
    with _lock:
        if name not in _workspaces and name != _DEFAULT:
            if not create_if_missing:
                raise RuntimeError(
                    f"there is no workspace '{name}'; there are: {', '.join(_names())}. "
                    "create_if_missing=True makes it."
                )
            _workspaces[name] = new_workspace()
        _current, _active = name, _workspaces.get(name)


def _names() -> list[str]:
    return sorted({_DEFAULT, *_workspaces})


def CurrentWorkspace() -> str:
    """The name of the current workspace."""
    return _current


def Workspaces() -> list[str]:
    """The names of all workspaces."""
    with _lock:
        return _names()


@contextlib.contextmanager
def WorkspaceGuard(workspace_name: str | bytes) -> Iterator[None]:
    """Switches to a workspace, made where missing, and back at the end of the `with` block."""
    before = CurrentWorkspace()
    SwitchWorkspace(workspace_name, True)
    try:
        yield
    finally:
        SwitchWorkspace(before)


def ResetWorkspace(root_folder: str | None = None) -> bool:
    """Forgets all nets and blobs of the current workspace.  A root folder has no effect."""
    current().reset()
    return True


# ------------------------------------------------------------------- blobs


def FeedBlob(name: Any, arr: Any, device_option: Any = None) -> bool:
    """Writes a copy of `arr` to a blob, which is made where missing.

    arr: an array of bool, (u)int8, (u)int16, int32, int64, float16, float32, float64, str or bytes
    (str as UTF-8); a number or list (floats become float32, integers int64); a TensorProto; or a
    str or bytes, which is kept as one string.  TypeError or EngineError for other element types,
    ValueError for text that is no Unicode.
    """
    blob = StringifyBlobName(name)
    if device_option is not None and device_option.device_type != caffe2_pb2.PROTO_CPU:
        _log.info("blob '%s' was fed for another device; it is kept on the CPU", blob)
    feed(current(), blob, arr)
    return True


def FetchBlob(name: Any) -> Any:
    """A copy of a blob: an array (of bytes objects for strings), or bytes for a single string.

    EngineError when there is none.
    """
    return current().fetch(StringifyBlobName(name))


def FetchBlobs(names: Sequence[Any]) -> list[Any]:
    """Copies of several blobs."""
    return [FetchBlob(name) for name in names]


def Blobs() -> list[str]:
    """The names of all blobs of the current workspace."""
    return current().blobs()


def HasBlob(name: Any) -> bool:
    """Whether the current workspace has a blob of this name."""
    return current().has_blob(StringifyBlobName(name))


def CreateBlob(name: Any) -> bool:
    """Makes an empty blob, where there is none yet."""
    current().create_blob(StringifyBlobName(name))
    return True


def RemoveBlob(name: Any) -> bool:
    """Removes a blob; its memory goes back at once.  False when there was none."""
    return current().delete_blob(StringifyBlobName(name))


def ResetBlob(name: Any) -> None:
    """Empties a blob, which stays.  EngineError when there is none."""
    current().reset_blob(StringifyBlobName(name))


def SerializeBlob(name: Any) -> bytes:
    """A blob as the bytes of a BlobProto."""
    return current().serialize(StringifyBlobName(name))


def DeserializeBlob(name: Any, serialized: bytes) -> None:
    """Writes what SerializeBlob gave to a blob.  EngineError for other bytes."""
    if not isinstance(serialized, bytes):
        raise TypeError(f"a serialized blob is bytes, not {type(serialized).__name__}")
    current().deserialize(StringifyBlobName(name), serialized)


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


def _sites(net: Any) -> list[str]:
    return [str(site) for site in getattr(net, "op_sites", ())]


def RunOperatorOnce(operator: Any) -> bool:
    """Runs one operator: an OperatorDef, its bytes, or (type, inputs, outputs[, arguments])."""
    if isinstance(operator, tuple):
        from caffe2.graph.operator import CreateOperator

        kind, inputs, outputs, *rest = operator
        operator = CreateOperator(kind, inputs, outputs, **(rest[0] if rest else {}))
    current().run_operator(StringifyProto(operator))
    return True


def RunOperatorsOnce(operators: Sequence[Any]) -> bool:
    """Runs operators in order."""
    for operator in operators:
        RunOperatorOnce(operator)
    return True


def RunNetOnce(net: Any) -> bool:
    """Runs a Net or NetDef once, without keeping it."""
    current().run_net_once(StringifyProto(net), _sites(net))
    return True


def CreateNet(net: Any, overwrite: bool = False, input_blobs: Sequence[Any] | None = None) -> bool:
    """Makes a net ready to run by its name.

    Returns True; EngineError when the net is malformed, when a blob that it reads does not exist
    (those of the list `input_blobs` are made, empty), or when its name is taken and not to be
    overwritten.  Nothing in the workspace changes then.
    """
    if isinstance(input_blobs, (str, bytes)):
        raise TypeError(f"input_blobs is a list of names, not one name: {input_blobs!r:.200}")
    workspace, message = current(), StringifyProto(net)
    wanted = dict.fromkeys(StringifyBlobName(blob) for blob in input_blobs or ())
    made = [blob for blob in wanted if not workspace.has_blob(blob)]
    for blob in made:
        workspace.create_blob(blob)
    try:
        workspace.create_net(message, _sites(net), overwrite)
    except BaseException:
        for blob in made:
            workspace.delete_blob(blob)
        raise
    return True


def RunNet(name: Any, num_iter: int = 1, allow_fail: bool = False) -> bool:
    """Runs a net that CreateNet made, `num_iter` times.

    With allow_fail an error returns False instead of raising.  ValueError for a negative number.
    """
    workspace, net, runs = current(), StringifyNetName(name), range(num_iter)
    if num_iter < 0:
        raise ValueError(f"num_iter is {num_iter}; a net runs 0 times or more")
    try:
        for _ in runs:
            workspace.run_net(net)
    except _native.EngineError:
        if not allow_fail:
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


@atexit.register
def _end_background_plans() -> None:
    for plan in _background_plans:
        plan.cancel()
    _background_plans.clear()


def Nets() -> list[str]:
    """The names of all created nets of the current workspace."""
    return current().nets()


def RegisteredOperators() -> list[str]:
    """The types of all operators."""
    return sorted(ops.all())


# ------------------------------------------------------------------- start


def GlobalInit(args: Sequence[str | bytes]) -> None:
    """Takes the command line flags of the old API: `["caffe2", "--flag=value", ...]`.

    --caffe2_omp_num_threads=N sets the number of threads (0: all cores).  Other flags of the old
    API are noted (logging, level info) and have no effect.  TypeError for what is no list of str;
    ValueError for a flag without `--` or a number of threads that is none.
    """
    if isinstance(args, (str, bytes)):
        raise TypeError(f"flags are a list, the name of the program first, not {args!r:.200}")
    for item in list(args)[1:]:
        flag = _flag(item)
        if not flag.startswith("--"):
            raise ValueError(f"flags look like --name=value; found '{flag}'")
        name, _, value = flag[2:].partition("=")
        if name == "caffe2_omp_num_threads":
            if not value.isdecimal() or len(value) > 20:
                raise ValueError(f"--{name} needs a number of threads, not '{value:.80}'")
            set_threads(int(value))
        else:
            _log.info("flag --%s has no effect", name)


def _flag(item: Any) -> str:
    if isinstance(item, str):
        return item
    if not isinstance(item, bytes):
        raise TypeError(f"a flag is a str, not {type(item).__name__}: {item!r:.200}")
    try:
        return item.decode()
    except UnicodeDecodeError:
        raise ValueError(f"a flag is UTF-8 text, which {item[:80]!r} is not") from None
