"""Looks for blobs that are read before anything writes them, or that several write at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from caffe2.graph.errors import UsageError
from caffe2.plans.plan import Plan
from caffe2.plans.step import ExecutionStep
from caffe2.plans.task import Task, TaskGroup
from caffe2.proto import caffe2_pb2


def analyze(obj: Any) -> None:
    """UsageError for a net, step, task, group of tasks, plan or job in which an operator reads a
    blob that nothing has written, or in which steps that run side by side write the same blob.

    It begins with no blobs at all; what a step with a workspace of its own writes stays in it.
    """
    _visit(obj, frozenset())


def _visit(obj: Any, known: frozenset[str]) -> frozenset[str]:
    """The blobs that there are after it."""
    if hasattr(obj, "init_group"):  # a Job
        stages = (obj.init_group, obj.epoch_group, obj.download_group, obj.exit_group)
        return _in_order(stages, known)
    if isinstance(obj, TaskGroup):
        return _beside(obj.tasks(), known) if obj.tasks() else known
    if isinstance(obj, Task):
        return _visit(obj.get_step(), known)
    if isinstance(obj, Plan):
        return _in_order(obj.Steps(), known)
    if isinstance(obj, ExecutionStep):
        return _step(obj, known)
    net = obj.Proto() if hasattr(obj, "Proto") else obj
    if not isinstance(net, caffe2_pb2.NetDef):
        raise UsageError(f"a net, step, task, group, plan or job is needed, got {obj!r:.200}")
    return _net(net, known)


def _net(net: caffe2_pb2.NetDef, known: frozenset[str]) -> frozenset[str]:
    written = set(known)
    for index, op in enumerate(net.op):
        for name in op.input:
            if name not in written:
                where = f"operator {index} ({op.type}) of net {net.name} reads it"
                raise UsageError(f"Blob undefined: {name}") from UsageError(where)
        written.update(op.output)
    return frozenset(written)


def _step(step: ExecutionStep, known: frozenset[str]) -> frozenset[str]:
    proto = step.Proto()
    parts: Iterable[Any] = step.Substeps() if step.HasSubsteps() else step.Nets()
    beside = proto.concurrent_substeps and step.HasSubsteps()
    after = (_beside if beside else _in_order)(parts, known)
    if proto.should_stop_blob and proto.should_stop_blob not in after:
        raise UsageError(
            f"Blob undefined: {proto.should_stop_blob}, the stop blob of step {proto.name}"
        )
    return known if proto.create_workspace else after


def _in_order(parts: Iterable[Any], known: frozenset[str]) -> frozenset[str]:
    for part in parts:
        known = _visit(part, known)
    return known


def _beside(parts: Iterable[Any], known: frozenset[str]) -> frozenset[str]:
    after = known
    for part in parts:
        new = _visit(part, known) - known
        twice = sorted(new & after)
        if twice:
            raise UsageError(
                f"Blob defined twice: {', '.join(twice)}, by steps that run side by side ({part})"
            )
        after |= new
    return after
