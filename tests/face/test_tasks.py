"""Plans written as programs (`net_builder`), tasks and sessions."""

import numpy as np
import pytest

from caffe2.graph.errors import UsageError
from caffe2.python import core, workspace
from caffe2.python.net_builder import NetBuilder, ops
from caffe2.python.session import LocalSession
from caffe2.python.task import Node, Task, TaskGroup, final_output


def run(*outputs, builder):
    workspace.ResetWorkspace()
    workspace.RunPlan(builder.step())
    return [workspace.FetchBlob(output).item() for output in outputs]


def test_loops_and_branches():
    with NetBuilder("main") as builder:
        total, large, small, rest = (ops.Const(0, dtype="int64") for _ in range(4))
        with ops.loop(10) as loop:
            ops.Add([total, loop.iter()], [total])
            with ops.If(ops.GE([loop.iter(), ops.Const(8, dtype="int64")])) as branch:
                ops.Add([large, loop.iter()], [large])
            with branch.Elif(ops.GE([loop.iter(), ops.Const(5, dtype="int64")])) as branch:
                ops.Add([small, loop.iter()], [small])
            with branch.Else():
                ops.Add([rest, loop.iter()], [rest])
    expected = [sum(range(10)), 8 + 9, 5 + 6 + 7, 1 + 2 + 3 + 4]
    assert run(total, large, small, rest, builder=builder) == expected


def test_loops_whose_number_is_a_blob_and_stops():
    with NetBuilder("main") as builder:
        count, one, three = (ops.Const(n, dtype="int64") for n in (0, 1, 3))
        with ops.loop(three):
            ops.Add([count, one], [count])
        after = ops.Const(0, dtype="int64")
        with ops.loop() as endless:
            ops.stop_if(ops.GE([endless.iter(), three]))
            ops.Add([after, one], [after])
        last = ops.Copy(after)
        ops.stop()
        ops.Add([last, one], [last])
    assert run(count, after, last, builder=builder) == [3, 3, 3]
    with pytest.raises(UsageError, match="the block 'main' has ended"):
        builder.add(core.Net("late"))


def test_tasks_with_what_runs_around_them():
    workspace.ResetWorkspace()
    with TaskGroup() as group, Node("local"):
        with Task(name="sums"):
            with ops.task_init():
                one = ops.Const(1, dtype="int64")
            two = ops.Add([one, one])
            with ops.task_init():
                three = ops.Const(3, dtype="int64")
            total = ops.Add([two, three])
            with ops.task_exit():
                seven = ops.Add([total, one])
            ops.Add([total, one], [total])
            o7, o6 = final_output(seven), final_output(total)
        with Task(num_instances=2):
            with ops.task_init():
                shared = ops.Const(5, dtype="int64")
            with ops.task_instance_init():
                local = ops.Const(2, dtype="int64")
            ops.Add([local, shared])
    assert group.num_registered_tasks() == 2 and group.used_nodes() == ["local"]
    with LocalSession() as session:
        session.run(group)
    assert (o6.fetch(), o7.fetch()) == (6, 7)
    assert workspace.HasBlob(shared) and not workspace.HasBlob(local)
    with pytest.raises(UsageError, match="the session is closed"):
        session.run(group)
    np.testing.assert_array_equal(session.fetch_output(total), 6)


def test_guards_and_groups_as_steps():
    with NetBuilder("main") as builder:
        left, whole = ops.Const(0, dtype="int64"), ops.Const(0, dtype="int64")
        one, ten = ops.Const(1, dtype="int64"), ops.Const(10, dtype="int64")
        with ops.stop_guard() as first:
            ops.Add([left, one], [left])
            ops.stop_if(ops.Const(True))
            ops.Add([left, ten], [left])
        with ops.stop_guard() as second:
            ops.stop_if(ops.Const(False))
            ops.Add([whole, one], [whole])
        answers = []
        for guard in (first, second):
            answer = ops.Const(0, dtype="int64")
            with ops.If(guard.has_stopped()):
                ops.Add([answer, one], [answer])
            with ops.Else():
                ops.Add([answer, ten], [answer])
            answers.append(answer)
        with ops.task_group():
            with Task():
                copy = ops.Copy(left)
            with Task():
                ops.Copy(left)
    assert run(left, whole, *answers, copy, builder=builder) == [1, 1, 1, 10, 1]
    with NetBuilder(), pytest.raises(UsageError, match="right behind the block of an If"):
        ops.Else()


def test_tasks_as_text():
    from caffe2.python import net_printer

    with TaskGroup() as group, Task(name="first"):
        ops.Const(1, blob_out="one")
    text = net_printer.to_string(group)
    assert text.startswith("task local/first on local\n") and "one = GivenTensorInt64Fill(" in text


def test_tasks_are_named_after_their_nodes_and_blobs_after_their_tasks():
    """As recorded from the original: names in checkpoints are these."""

    def blobs(node):
        made = []
        with Node(node):
            for names in ((None, None, "read", "read"), (None,)):
                with TaskGroup():
                    for name in names:
                        with Task(name=name) as task:
                            made.append((task.name, str(ops.Const([1]))))
        return made

    for node in ("names_0", "names_1"):
        fill = "GivenTensorInt64Fill:0"
        assert blobs(node) == [
            (f"{node}/task", f"{node}/task/{fill}"),
            (f"{node}/task:1", f"{node}/task:1/{fill}"),
            (f"{node}/read", f"{node}/read/{fill}"),
            (f"{node}/read:1", f"{node}/read:1/{fill}"),
            (f"{node}/task", f"{node}/task_1/{fill}"),
        ]
