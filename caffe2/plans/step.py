"""ExecutionStep: nets, or further steps, that run in order or side by side."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from caffe2.graph.blob import BlobReference, ScopedName
from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net, get_net_name
from caffe2.proto import caffe2_pb2

NetLike: TypeAlias = Net | caffe2_pb2.NetDef

_numbers = itertools.count()


def _next_step_name() -> str:
    """Of a step that was given none: "step", "step_1", ..."""
    number = next(_numbers)
    return f"step_{number}" if number else "step"


def keep_net(nets: dict[str, NetLike], net: Any) -> str:
    """Adds a net to those of a step or plan, by its name.

    UsageError for what is no net, and for another net of the same name.
    """
    if not isinstance(net, (Net, caffe2_pb2.NetDef)):
        raise UsageError(f"a Net or NetDef is needed, got {net!r}")
    name = get_net_name(net)
    known = nets.setdefault(name, net)
    if known is not net and (isinstance(known, Net) or known != net):
        raise UsageError(f"Different nets with same name: {name}")
    return name


def find_net(nets: Mapping[str, NetLike], name: str) -> NetLike:
    """The net of this name.  KeyError with near names."""
    if name in nets:
        return nets[name]
    near = difflib.get_close_matches(name, nets, 3)
    raise KeyError(f"no net '{name}'" + (f"; did you mean {' or '.join(near)}?" if near else ""))


def attributes_of(nets: Iterable[NetLike], name: str) -> list[Any]:
    """What the nets remember under an attribute's name, one net after the other."""
    return [value for net in nets if isinstance(net, Net) for value in net.get_attributes(name)]


class _Networks(Sequence[NetLike]):
    """The nets that a step runs itself, in order: `step.networks.extend([net, net_def])`."""

    def __init__(self, step: ExecutionStep) -> None:
        self._step = step

    def _names(self) -> Sequence[str]:
        return self._step.Proto().network

    def __len__(self) -> int:
        return len(self._names())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._step.get_net(name) for name in self._names()[index]]
        return self._step.get_net(self._names()[index])

    def append(self, net: NetLike) -> None:
        self._step.AddNet(net)

    def extend(self, nets: Iterable[NetLike]) -> None:
        for net in nets:
            self.append(net)


class ExecutionStep:
    """One step of a plan: it runs its nets, or its substeps, in order and `num_iter` times.

    A step has either nets or substeps.  Once it is part of a plan or of another step, which copy
    it, it cannot be changed any more (UsageError).

    name      "step", "step_1", ... where none is given; several steps may have one name
    nets      a Net or NetDef, or a list of them
    num_iter  how often they run; once when it is absent

    num_threads     how many threads the engine uses while `workspace.RunStep` runs the step;
                    None leaves that to the engine
    concurrent_ops  True: the operators of each net run as soon as those they wait for are done,
                    side by side, except in nets that name their own type (`net.OrderedNet()`)
    """

    def __init__(
        self,
        name: str | None = None,
        nets: NetLike | Iterable[NetLike] | None = None,
        num_iter: int | None = None,
    ) -> None:
        self._step = caffe2_pb2.ExecutionStep(name=name or _next_step_name())
        self._nets: dict[str, NetLike] = {}
        self._substeps: list[ExecutionStep] = []
        self._is_used = False
        self.num_threads: int | None = None
        self.concurrent_ops = False
        # Attributes of nets that the step has seen to itself: nobody around it has to do so again.
        self.settled: frozenset[str] = frozenset()
        if nets is not None:
            self.networks.extend([nets] if isinstance(nets, (Net, caffe2_pb2.NetDef)) else nets)
        if num_iter is not None:
            self.SetIter(num_iter)

    # -- what there is ----------------------------------------------------------------------

    def Name(self) -> str:
        return self._step.name

    def __str__(self) -> str:
        return self._step.name

    def __repr__(self) -> str:
        count = len(self._substeps) or len(self._step.network)
        return f'<ExecutionStep "{self}" of {count} {"substeps" if self._substeps else "nets"}>'

    def Proto(self) -> caffe2_pb2.ExecutionStep:
        """The message under construction; it may be changed directly."""
        return self._step

    @property
    def networks(self) -> _Networks:
        """The nets that the step runs itself, which may be appended to."""
        return _Networks(self)

    def HasNets(self) -> bool:
        """Whether the step runs nets itself; a report net does not count."""
        return bool(self._step.network)

    def HasSubsteps(self) -> bool:
        return bool(self._step.substep)

    def Nets(self) -> list[NetLike]:
        """All nets of the step and its substeps, each once, report nets too."""
        return list(self._nets.values())

    def Substeps(self) -> list[ExecutionStep]:
        return list(self._substeps)

    def get_net(self, name: str) -> NetLike:
        """The net of the step or its substeps that has this name.  KeyError with near names."""
        return find_net(self._nets, name)

    def get_all_attributes(self, name: str) -> list[Any]:
        """What the nets of the step and its substeps remember under an attribute's name; nothing of
        those that have settled it."""
        return attributes_of(self._unsettled(name).values(), name)

    def _unsettled(self, name: str) -> dict[str, NetLike]:
        if name in self.settled:
            return {}
        below = {key for substep in self._substeps for key in substep._nets}
        found = {key: net for key, net in self._nets.items() if key not in below}
        for substep in self._substeps:
            found |= substep._unsettled(name)
        return found

    def concurrent_nets(self) -> Iterator[str]:
        """Names of the nets whose operators `concurrent_ops` lets run side by side."""
        if self.concurrent_ops:
            yield from self._nets
        for substep in self._substeps:
            yield from substep.concurrent_nets()

    # -- changing it --------------------------------------------------------------------------

    def mark_used(self) -> None:
        """Called by what copies the step."""
        self._is_used = True

    def _message(self) -> caffe2_pb2.ExecutionStep:
        if self._is_used:
            raise UsageError(
                f"Cannot mutate a step that has already been added to a plan/step: {self}"
            )
        return self._step

    def AddNet(self, net: NetLike) -> ExecutionStep:
        """Appends a net (or the same again) and gives the step back.

        UsageError when the step has substeps or another net of the same name.
        """
        step = self._message()
        if self._substeps:
            raise UsageError(f"Cannot have both network and substeps: step {self}")
        step.network.append(keep_net(self._nets, net))
        return self

    def AddSubstep(self, substep: ExecutionStep) -> ExecutionStep:
        """Appends a copy of a step, unless that has nothing to run, and gives this step back.

        UsageError when this step has nets, or when a net of the substep has the name of another.
        """
        step = self._message()
        if not isinstance(substep, ExecutionStep):
            raise UsageError(f"an ExecutionStep is needed, got {substep!r}")
        if self.HasNets():
            raise UsageError(f"Cannot have both network and substeps: step {self}")
        if substep.HasNets() or substep.HasSubsteps():
            for net in substep.Nets():
                keep_net(self._nets, net)
            step.substep.add().CopyFrom(substep.Proto())
            self._substeps.append(substep)
            substep.mark_used()
        return self

    def SetIter(self, num_iter: int) -> None:
        """How often the step runs its nets or substeps; not together with a stop blob."""
        self._message().num_iter = num_iter

    def SetShouldStopBlob(self, should_stop_blob: BlobReference) -> None:
        """A blob of one bool that is looked at after each net and each substep: when it is true,
        the step is done.  Until then it runs its nets or substeps again and again."""
        step = self._message()
        if not isinstance(should_stop_blob, BlobReference):
            raise UsageError(f"expects BlobReference here, got {type(should_stop_blob)}")
        step.should_stop_blob = str(should_stop_blob)

    def SetOnlyOnce(self, only_once: bool) -> None:
        """True: a step with a stop blob runs its nets or substeps once, at most."""
        self._message().only_once = only_once

    def SetConcurrentSubsteps(self, concurrent_substeps: bool) -> None:
        """True: the substeps run side by side, each on a thread of its own."""
        self._message().concurrent_substeps = concurrent_substeps

    def SetNumConcurrentInstances(self, num_concurrent_instances: int) -> None:
        """How many of each substep run side by side, where concurrent substeps are asked for."""
        self._message().num_concurrent_instances = num_concurrent_instances

    def SetCreateWorkspace(self, create_workspace: bool) -> None:
        """True: each run of the step has a workspace of its own inside the present one, where the
        blobs live that its nets make.  Blobs outside are read and written as always."""
        self._message().create_workspace = create_workspace

    def SetReportNet(self, report_net: NetLike | str, report_interval: int) -> None:
        """A net, or its name, that runs on a thread of its own every `report_interval` seconds
        while the step runs, and once more at its end."""
        step = self._message()
        if not isinstance(report_net, str):
            report_net = keep_net(self._nets, report_net)
        step.report_net = report_net
        step.report_interval = report_interval

    def RunEveryMillis(self, interval: int) -> None:
        """Takes the step out of the order of its siblings: it runs on a thread of its own every
        `interval` milliseconds while they run, and once more after them.  A step at the top of a
        plan has no siblings: there it means nothing."""
        self._message().run_every_ms = interval

    @classmethod
    def create_from_proto(
        cls,
        step_proto: caffe2_pb2.ExecutionStep,
        net_obj_dict: dict[str, Net],
        net_proto_dict: Mapping[str, caffe2_pb2.NetDef],
    ) -> ExecutionStep:
        """A step like a message.

        net_obj_dict    nets by the names that the message uses; those made here are added
        net_proto_dict  what they are made of; a new net may get a number behind its name

        UsageError for a net that neither knows.
        """

        def net(name: str) -> Net:
            if name not in net_obj_dict:
                if name not in net_proto_dict:
                    raise UsageError(f"step {step_proto.name} needs a net '{name}': not given")
                net_obj_dict[name] = Net(net_proto_dict[name])
            return net_obj_dict[name]

        parts: list[Any] = [
            cls.create_from_proto(substep, net_obj_dict, net_proto_dict)
            for substep in step_proto.substep
        ]
        parts.extend(net(name) for name in step_proto.network)
        given: dict[str, Any] = {
            field.name: value
            for field, value in step_proto.ListFields()
            if field.name not in ("name", "substep", "network", "criteria_network")
        }
        if "should_stop_blob" in given:
            given["should_stop_blob"] = BlobReference(given["should_stop_blob"])
        if "report_net" in given:
            given["report_net"] = net(given["report_net"])
        return execution_step(step_proto.name, parts, **given)


def add_nets_in_order(step: ExecutionStep, net_list: list[str]) -> None:
    """Appends the names of the nets of a step and its substeps that are not in `net_list` yet, in
    the order in which they first run; the report net of each step comes last."""

    def collect(proto: caffe2_pb2.ExecutionStep) -> None:
        for substep in proto.substep:
            collect(substep)
        report = [proto.report_net] if proto.HasField("report_net") else []
        net_list.extend(
            name for name in dict.fromkeys([*proto.network, *report]) if name not in net_list
        )

    collect(step.Proto())


def execution_step(
    default_name: str | None,
    steps_or_nets: Any,
    num_iter: int | None = None,
    report_net: NetLike | str | None = None,
    report_interval: int | None = None,
    concurrent_substeps: bool | None = None,
    should_stop_blob: BlobReference | None = None,
    only_once: bool | None = None,
    num_concurrent_instances: int | None = None,
    create_workspace: bool = False,
    run_every_ms: int | None = None,
) -> ExecutionStep:
    """A step that runs nets or steps.

    steps_or_nets  a net, a step, None, or a list: of nets, which become those of the step, or of
                   nets, steps and further lists, which become substeps

    The other arguments are those of the setters of ExecutionStep; `report_interval` in seconds.
    Without `num_iter` and `should_stop_blob` the step runs once.  UsageError when both are given
    or when a report net has no interval; ValueError for what is neither net nor step.
    """
    if should_stop_blob is not None and num_iter is not None:
        raise UsageError("Cannot set both should_stop_blob and num_iter.")
    step = ExecutionStep(default_name)
    if should_stop_blob is not None:
        step.SetShouldStopBlob(should_stop_blob)
    else:
        step.SetIter(1 if num_iter is None else num_iter)
    if only_once is not None:
        step.SetOnlyOnce(only_once)
    if concurrent_substeps is not None:
        step.SetConcurrentSubsteps(concurrent_substeps)
    if report_net is not None:
        if report_interval is None:
            raise UsageError(f"report net {report_net} needs a report_interval, in seconds")
        step.SetReportNet(report_net, report_interval)
    if num_concurrent_instances is not None:
        step.SetNumConcurrentInstances(num_concurrent_instances)
    if create_workspace:
        step.SetCreateWorkspace(True)
    if run_every_ms:
        step.RunEveryMillis(run_every_ms)
    _add_parts(step, steps_or_nets)
    return step


def _add_parts(step: ExecutionStep, parts: Any) -> None:
    if parts is None:
        return
    if isinstance(parts, ExecutionStep):
        step.AddSubstep(parts)
    elif isinstance(parts, Net):
        step.AddNet(parts)
    elif not isinstance(parts, (list, tuple)):
        raise ValueError("steps_or_nets must be a step, a net, or a list of nets or steps.")
    elif all(isinstance(part, Net) for part in parts):
        step.networks.extend(parts)
    else:
        for part in parts:
            step.AddSubstep(to_execution_step(part))


def to_execution_step(step_or_nets: Any, default_name: str | None = None) -> ExecutionStep:
    """The step itself, that of a NetBuilder, or a new one that runs nets or steps (see
    `execution_step`)."""
    from caffe2.plans.net_builder import NetBuilder  # builders are made of steps themselves

    if isinstance(step_or_nets, ExecutionStep):
        return step_or_nets
    if isinstance(step_or_nets, NetBuilder):
        return step_or_nets.step()
    return execution_step(default_name, step_or_nets)


def scoped_execution_step(name: str, *args: Any, **kwargs: Any) -> ExecutionStep:
    """`execution_step` whose name is put in the current NameScope."""
    return execution_step(ScopedName(name), *args, **kwargs)
