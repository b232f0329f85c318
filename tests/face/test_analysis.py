"""Blobs that nobody has written, and blobs that several write at a time."""

import pytest

from caffe2.graph.errors import UsageError
from caffe2.python import core, net_printer
from caffe2.python.net_builder import NetBuilder, ops
from caffe2.python.task import Task, TaskGroup


def writes(blob):
    net = core.Net("writes")
    net.ConstantFill([], blob, shape=[1])
    return core.execution_step(f"writes_{blob}", net)


def reads(blob):
    net = core.Net("reads")
    net.Copy(blob, f"copy_of_{blob}")
    return core.execution_step(f"reads_{blob}", net)


def test_undefined_blobs():
    net_printer.analyze(core.execution_step("right", [writes("a"), reads("a")]))
    with pytest.raises(UsageError, match=r"^Blob undefined: a$") as caught:
        net_printer.analyze(core.execution_step("wrong", [reads("a"), writes("a")]))
    assert str(caught.value.__cause__).startswith("operator 0 (Copy) of net reads")
    with pytest.raises(AssertionError, match="Blob undefined: a"):  # as it is known by
        net_printer.analyze(
            core.execution_step("w", [writes("a"), reads("a")], concurrent_substeps=True)
        )


def test_a_blob_defined_by_several():
    net_printer.analyze(core.execution_step("in_order", [writes("a"), writes("a")]))
    with pytest.raises(UsageError, match=r"^Blob defined twice: a, by steps that run side by side"):
        net_printer.analyze(
            core.execution_step("beside", [writes("a"), writes("a")], concurrent_substeps=True)
        )


def test_a_workspace_keeps_its_blobs():
    own = core.execution_step("own", [writes("a"), reads("a")], create_workspace=True)
    net_printer.analyze(own)
    with pytest.raises(UsageError, match="Blob undefined: a"):
        net_printer.analyze(core.execution_step("all", [own, reads("a")]))


def test_the_stop_blob():
    step = core.execution_step("loop", [writes("a")], should_stop_blob=core.BlobReference("stop"))
    with pytest.raises(UsageError, match="Blob undefined: stop, the stop blob of step loop"):
        net_printer.analyze(step)


def test_tasks_run_side_by_side():
    with TaskGroup() as group:
        with Task(name="first"):
            blob = ops.Const(1)
        with Task(name="second"):
            ops.Copy(blob)
    with pytest.raises(UsageError, match="Blob undefined: local/first"):
        net_printer.analyze(group)
    with NetBuilder() as builder:
        total = ops.Const(0)
        with ops.loop(10) as loop, ops.If(ops.GE([loop.iter(), ops.Const(5)])):
            ops.Add([total, loop.iter()], [total])
    net_printer.analyze(builder.step())
    with pytest.raises(UsageError, match="is needed, got 'text'"):
        net_printer.analyze("text")
