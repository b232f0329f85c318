"""Plan: the steps that run one after the other, and their nets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.plans.step import ExecutionStep, NetLike, add_nets_in_order, attributes_of, keep_net
from caffe2.proto import caffe2_pb2


class Plan:
    """Steps in order, with copies of the nets that they use.

    name_or_step  the plan's name, or its first step, whose name it gets; ValueError otherwise
    """

    def __init__(self, name_or_step: str | ExecutionStep) -> None:
        if not isinstance(name_or_step, (str, ExecutionStep)):
            raise ValueError("name_or_step must be a string or ExecutionStep")
        self._plan = caffe2_pb2.PlanDef(name=str(name_or_step))
        self._nets: dict[str, NetLike] = {}
        self._steps: list[ExecutionStep] = []
        if isinstance(name_or_step, ExecutionStep):
            self.AddStep(name_or_step)

    def __str__(self) -> str:
        return self._plan.name

    def __repr__(self) -> str:
        return f'<Plan "{self}" of {len(self._steps)} steps>'

    def Proto(self) -> caffe2_pb2.PlanDef:
        """The message under construction; it may be changed directly."""
        return self._plan

    def Nets(self) -> list[NetLike]:
        return list(self._nets.values())

    def Steps(self) -> list[ExecutionStep]:
        return list(self._steps)

    @property
    def network_sites(self) -> list[list[str]]:
        """For each network of the message, the "file:line" that made each of its operators."""
        nets = (self._nets.get(network.name) for network in self._plan.network)
        return [net.op_sites if isinstance(net, Net) else [] for net in nets]

    def AddNets(self, nets: Iterable[NetLike]) -> None:
        """Appends copies of nets that the plan does not have yet.

        UsageError when it has another net of the same name.
        """
        for net in nets:
            known = len(self._nets)
            keep_net(self._nets, net)
            if len(self._nets) > known:
                proto = net.Proto() if isinstance(net, Net) else net
                self._plan.network.add().CopyFrom(proto)

    def AddStep(self, step: ExecutionStep) -> None:
        """Appends a copy of a step, unless that has nothing to run, and its nets.

        UsageError when a net has the name of another one of the plan.
        """
        if not isinstance(step, ExecutionStep):
            raise UsageError(f"an ExecutionStep is needed, got {step!r}")
        if not step.HasNets() and not step.HasSubsteps():
            return
        names: list[str] = []
        add_nets_in_order(step, names)
        self.AddNets(step.get_net(name) for name in names)
        concurrent = set(step.concurrent_nets())
        for network in self._plan.network:
            if network.name in concurrent and not network.type:
                network.type = "dag"
        self._plan.execution_step.add().CopyFrom(step.Proto())
        self._steps.append(step)
        step.mark_used()

    def get_all_attributes(self, name: str) -> list[Any]:
        """What the nets of the plan remember under an attribute's name."""
        return attributes_of(self._nets.values(), name)

    @classmethod
    def create_from_proto(cls, plan_proto: caffe2_pb2.PlanDef) -> Plan:
        """A plan like a message, whose nets may get a number behind their names."""
        plan = cls(plan_proto.name)
        nets: dict[str, Net] = {}
        protos = {network.name: network for network in plan_proto.network}
        for step in plan_proto.execution_step:
            plan.AddStep(ExecutionStep.create_from_proto(step, nets, protos))
        return plan
