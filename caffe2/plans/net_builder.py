"""Writing plans as programs: operators one after the other, loops and branches as `with` blocks.

with NetBuilder() as builder:
    total = ops.Const(0)
    with ops.loop(10) as loop:
        ops.Add([total, loop.iter()], [total])
workspace.RunPlan(builder.step())
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from caffe2.graph.blob import BlobReference
from caffe2.graph.control_ops import add_if_op, add_while_op
from caffe2.graph.datatype import DataType
from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.plans.context import Managed
from caffe2.plans.step import ExecutionStep, execution_step
from caffe2.plans.task_setup import Reporter, SetupNets, TaskKeys


class NetBuilder(Managed):
    """Nets and steps that run in order; a `with` block in which `ops` appends to it.

    A block may end early: `ops.stop_if(blob)` leaves it when the blob is true.

    initial_scope     blobs from elsewhere that the nets of `IfNet` and `WhileNet` may use
    _use_control_ops  at its end the block is one net; it takes nets, `IfNet` and `WhileNet`
    """

    def __init__(
        self,
        name: str | None = None,
        initial_scope: Iterable[Any] | None = None,
        _use_control_ops: bool = False,
    ) -> None:
        self.name = name or "builder"
        self._children: list[Any] = []
        self._outside = NetBuilder.current(required=False)
        self._initial_scope = {str(blob) for blob in initial_scope or ()}
        self._use_control_ops = _use_control_ops
        self._stop_blob: BlobReference | None = None
        self._frozen = False
        self._repeats = False

    def __str__(self) -> str:
        return self.name

    def add(self, child: Any) -> Any:
        """Appends a net, a step or a builder, and gives it.  UsageError behind the end."""
        if self._frozen:
            raise UsageError(f"the block '{self}' has ended: nothing can be added to it")
        if self._use_control_ops and not (
            isinstance(child, Net) or (isinstance(child, NetBuilder) and child._use_control_ops)
        ):
            raise UsageError(f"the block '{self}' takes nets, IfNet and WhileNet, not {child!r}")
        self._children.append(child)
        return child

    def current_net(self, name: str | None = None) -> Net:
        """The net that operators go to: the last one, unless it has another name."""
        last = self._children[-1] if self._children else None
        if isinstance(last, Net) and not self._frozen and name is None:
            return last
        return self.add(Net(name or self.name))  # type: ignore[no-any-return]

    def stop_blob(self) -> BlobReference:
        """The blob that ends the block when it is true."""
        if self._use_control_ops:
            raise UsageError(f"the block '{self}' becomes one net, which cannot end early")
        if self._stop_blob is None:
            net = Net(f"{self.name}_stop_init")
            self._stop_blob = net.ConstantFill([], shape=[], value=False, dtype=DataType.BOOL)
            self._children.insert(0, net)
        return self._stop_blob

    def has_stop_blob(self) -> bool:
        """Whether the block can end early."""
        return self._stop_blob is not None

    def stop_if(self, blob: Any) -> None:
        """Leaves the block here when a blob of one bool is true."""
        stop = self.stop_blob()
        self.current_net().Copy([blob], [stop])
        self.add(Net(f"{self.name}_after_stop"))

    def freeze(self) -> None:
        self._frozen = True

    def get(self) -> list[Any]:
        """The nets, steps and builders, in order."""
        return list(self._children)

    def __exit__(self, *exc_info: Any) -> None:
        super().__exit__(*exc_info)
        if exc_info[0] is None:
            if self._use_control_ops:
                self._children = self._as_nets()
            self.freeze()

    def _around(self) -> set[str]:
        """The blobs from outside of the block that nets in it may use."""
        outside = set() if self._outside is None else self._outside._scope()
        return self._initial_scope | outside

    def _scope(self) -> set[str]:
        """The blobs that nets behind the last one may use."""
        nets = [child for child in self._children if isinstance(child, Net)]
        return self._around().union(*(net.UsedBlobNames() for net in nets))

    def _as_nets(self) -> list[Net]:
        """What the block is at its end, if that is a net: one, or none."""
        merged = self._merged()
        return [] if merged is None else [merged]

    def _merged(self) -> Net | None:
        """One net of all, whose outputs are what it writes of the blobs around it."""
        nets = [
            net
            for child in self._children
            for net in (child.get() if isinstance(child, NetBuilder) else [child])
        ]
        if not nets:
            return None
        for net in nets[1:]:
            nets[0].AppendNet(net)
        outputs, around = nets[0].Proto().external_output, self._around()
        outputs[:] = [name for name in outputs if name in around]
        return nets[0]  # type: ignore[no-any-return]

    def step(self) -> ExecutionStep:
        """What runs all of it."""
        parts = [_part(child) for child in self._children]
        return execution_step(
            self.name,
            [
                part if isinstance(part, ExecutionStep) else execution_step("nets", part)
                for part in parts
            ],
            should_stop_blob=self._stop_blob,
            only_once=True if self._stop_blob is not None and not self._repeats else None,
        )


def _part(child: Any) -> Any:
    if isinstance(child, NetBuilder):
        return child.step()
    return child.to_task().get_step() if hasattr(child, "to_task") else child


class StopGuard(NetBuilder):
    """A block that may be left early without leaving the blocks around it."""

    def __init__(self, has_stopped_blob: Any = None, name: str | None = None) -> None:
        super().__init__(name or "stop_guard")
        self._before = Net(f"{self.name}_begin")
        self._stop_blob = self._before.ConstantFill([], shape=[], value=False, dtype=DataType.BOOL)
        self._after = Net(f"{self.name}_end")
        outputs = None if has_stopped_blob is None else [has_stopped_blob]
        self._stopped = self._after.Copy([self._stop_blob], outputs)
        self.add(Net(self.name))

    def has_stopped(self) -> BlobReference:
        """bool: whether the block was left before its end."""
        return self._stopped  # type: ignore[no-any-return]

    def step(self) -> ExecutionStep:
        parts = [self._before, super().step(), self._after]
        return execution_step(f"{self.name}_guarded", [execution_step(None, p) for p in parts])


class Loop(NetBuilder):
    """A block that runs again and again: `iters` times (a number or a blob), or until it is left.

    Each run begins with the count of the runs before it, `iter()`.
    """

    def __init__(self, iters: Any = None, name: str | None = None) -> None:
        super().__init__(name or "loop")
        self._repeats = True
        self._before = Net(f"{self.name}_init")
        self._stop_blob = self._before.ConstantFill([], shape=[], value=False, dtype=DataType.BOOL)
        self._counter = self._before.CreateCounter([], init_count=0)
        check = self.add(Net(f"{self.name}_iter"))
        self._iter = check.CountUp([self._counter])
        if iters is not None:
            if not isinstance(iters, BlobReference):
                iters = self._before.Const(iters, dtype="int64")
            check.GE([self._iter, iters], [self._stop_blob])
        self.add(Net(self.name))

    def iter(self) -> BlobReference:
        """int64, shape (1,): how many runs of the block were before this one."""
        return self._iter  # type: ignore[no-any-return]

    def step(self) -> ExecutionStep:
        before = execution_step(f"{self.name}_init", self._before)
        return execution_step(f"{self.name}_loop", [before, super().step()])


class Branch(NetBuilder):
    """A block that runs if a condition is true; `Elif` and `Else` give those that follow it."""

    def __init__(self, condition: Any, undecided: BlobReference | None, name: str) -> None:
        super().__init__(name)
        self._before = Net(f"{name}_condition")
        if undecided is None:
            taken = condition
        elif condition is None:
            taken = undecided
        else:
            taken = self._before.And([undecided, condition])
        self._stop_blob = self._before.Not(taken)
        # What those behind it begin with: nobody before was true.
        self._undecided = (
            self._before.Copy(self._stop_blob)
            if undecided is None
            else self._before.And([undecided, self._stop_blob])
        )
        self._parent = NetBuilder.current()
        self.add(Net(f"{name}_check"))  # the stop blob is looked at after it
        self.add(Net(name))

    def step(self) -> ExecutionStep:
        before = execution_step(f"{self.name}_condition", self._before)
        return execution_step(f"{self.name}_if", [before, super().step()])

    def Elif(self, cond: Any, name: str | None = None) -> Branch:
        """A block that runs if none before did and its condition is true."""
        return self._next(cond, name or "elif")

    def Else(self, name: str | None = None) -> Branch:
        """A block that runs if none before did."""
        return self._next(None, name or "else")

    def _next(self, condition: Any, name: str) -> Branch:
        assert self._parent is not None
        return self._parent.add(Branch(condition, self._undecided, name))  # type: ignore[no-any-return]


class IfNet(NetBuilder):
    """A block that becomes the operator If in a net, and so has gradients; `Else` may follow."""

    def __init__(self, condition: Any, name: str | None = None) -> None:
        super().__init__(name or "if_net", _use_control_ops=True)
        self._condition = condition
        self._then: Net | None = None

    def _as_nets(self) -> list[Net]:
        self._then = self._merged() or Net("empty_then_net")
        return self.branches(None)

    def branches(self, otherwise: Net | None) -> list[Net]:
        """The net of an If with this block, and another one for when the condition is false."""
        assert self._then is not None
        scope, net = self._around(), Net(self.name)
        written = {name for op in self._then.Proto().op for name in op.output}
        if otherwise is not None:
            written.update(name for op in otherwise.Proto().op for name in op.output)
        for name in sorted(written & scope):
            net.AddExternalInput(name)
        add_if_op(net, self._condition, scope, self._then, otherwise)
        return [net]


class ElseNet(NetBuilder):
    """The block for when the condition of the IfNet just before it is false."""

    def __init__(self, first: IfNet, name: str | None = None) -> None:
        super().__init__(name or "else_net", _use_control_ops=True)
        self._first = first

    def _as_nets(self) -> list[Net]:
        otherwise = self._merged()
        if otherwise is not None:
            self._first._children = self._first.branches(otherwise)
        return []


class WhileNet(NetBuilder):
    """A block that becomes the operator While in a net; a block `ops.Condition()` is first."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name or "while_net", _use_control_ops=True)
        self.condition: ConditionNet | None = None

    def _as_nets(self) -> list[Net]:
        found = None if self.condition is None else self.condition.get()
        if not found or not found[0].Proto().op:
            raise UsageError(f"the block '{self}' needs a block ops.Condition() with operators")
        outputs = found[0].Proto().op[-1].output
        if len(outputs) != 1:
            raise UsageError(
                f"the last operator of a Condition gives one bool, not {list(outputs)}"
            )
        net, body = Net(self.name), self._merged() or Net("empty_loop_body_net")
        go_on = BlobReference(outputs[0])
        net.ConstantFill([], go_on, shape=[], value=False, dtype=DataType.BOOL)
        add_while_op(net, go_on, self._around() | {str(go_on)}, body, found[0])
        return [net]


class ConditionNet(NetBuilder):
    """What is computed before each turn of a WhileNet; the last operator gives the bool."""


class Operations:
    """What appends to the current NetBuilder: operators by their names, and blocks."""

    def net(self, net: Any = None, name: str | None = None) -> Net:
        """The current net, or a given one, which is appended."""
        builder = _builder()
        return builder.current_net(name) if net is None else builder.add(net)

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        if op_type.startswith("__"):
            raise AttributeError(op_type)
        return getattr(self.net(), op_type)  # type: ignore[no-any-return]

    def stop(self) -> None:
        """Leaves the block here."""
        self.stop_if(self.Const(True))

    def stop_if(self, blob: Any) -> None:
        """Leaves the block here when a blob of one bool is true."""
        _builder().stop_if(blob)

    def loop(self, iters: Any = None, name: str | None = None) -> Loop:
        """A block that runs again and again; see Loop."""
        return _builder().add(Loop(iters, name))  # type: ignore[no-any-return]

    def If(self, cond: Any, name: str | None = None) -> Branch:
        """A block that runs if a blob of one bool is true; see Branch."""
        return _builder().add(Branch(cond, None, name or "if"))  # type: ignore[no-any-return]

    def IfNet(self, cond: Any, name: str | None = None) -> IfNet:
        """A block that becomes the operator If; see IfNet."""
        return _builder().add(IfNet(cond, name))  # type: ignore[no-any-return]

    def WhileNet(self, name: str | None = None) -> WhileNet:
        """A block that becomes the operator While; see WhileNet."""
        return _builder().add(WhileNet(name))  # type: ignore[no-any-return]

    def Condition(self, name: str | None = None) -> ConditionNet:
        """The first block in a WhileNet: what is computed before each turn; its last operator
        gives one bool.  UsageError elsewhere."""
        loop = _builder()
        if not isinstance(loop, WhileNet) or loop.condition is not None or loop.get():
            raise UsageError("Condition is the first block in a WhileNet, and the only one")
        loop.condition = ConditionNet(name or "condition", _use_control_ops=True)
        return loop.condition

    def Else(self, name: str | None = None) -> Branch | ElseNet:
        """A block that runs if the If or IfNet just before it did not.  UsageError without one."""
        children = _builder().get()
        if children and isinstance(children[-1], IfNet):
            return ElseNet(children[-1], name)
        if not children or not isinstance(children[-1], Branch):
            raise UsageError("Else must come right behind the block of an If")
        return children[-1].Else(name)

    def stop_guard(self, has_stopped_blob: Any = None, name: str | None = None) -> StopGuard:
        """A block that `stop` and `stop_if` in it leave, and no other; see StopGuard."""
        return _builder().add(StopGuard(has_stopped_blob, name))  # type: ignore[no-any-return]

    def task_group(self) -> Any:
        """A block of tasks, which run side by side as the next step."""
        from caffe2.plans.task import TaskGroup  # tasks are built of blocks themselves

        return _builder().add(TaskGroup())

    def task_init(self) -> Any:
        """A block that runs once before all instances of the task."""
        return self._setup(TaskKeys.TASK_SETUP, before=True)

    def task_exit(self) -> Any:
        """A block that runs once after all instances of the task."""
        return self._setup(TaskKeys.TASK_SETUP, before=False)

    def task_instance_init(self) -> Any:
        """A block that runs before each instance of the task."""
        return self._setup(TaskKeys.TASK_INSTANCE_SETUP, before=True)

    def task_instance_exit(self) -> Any:
        """A block that runs after each instance of the task."""
        return self._setup(TaskKeys.TASK_INSTANCE_SETUP, before=False)

    local_init, local_exit = task_instance_init, task_instance_exit

    @contextmanager
    def _setup(self, key: str, before: bool) -> Iterator[NetBuilder]:
        owner = self.net()
        with NetBuilder(key.lower()) as block:
            yield block
        nets = [block.step()]
        owner.add_attribute(key, SetupNets(nets, None) if before else SetupNets(None, nets))

    @contextmanager
    def task_reporter(
        self, interval_ms: int = 1000, name: str | None = None
    ) -> Iterator[NetBuilder]:
        """A block that runs every `interval_ms` milliseconds while the task runs."""
        owner = self.net()
        with NetBuilder(name or "report") as block:
            yield block
        owner.add_attribute(TaskKeys.REPORT_STEP, Reporter(block.step(), interval_ms))

    local_reporter = task_reporter


def _builder() -> NetBuilder:
    builder = NetBuilder.current()
    assert builder is not None  # it is required
    return builder


ops = Operations()
