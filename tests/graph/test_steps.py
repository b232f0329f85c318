"""Plans and steps as messages: what each call puts into them, and what is refused."""

import pytest
from google.protobuf import text_format

from caffe2.graph.errors import UsageError
from caffe2.proto import caffe2_pb2
from caffe2.python import core


def text(thing):
    message = thing.Proto() if hasattr(thing, "Proto") else thing
    return text_format.MessageToString(message, as_one_line=True)


def nets(*names):
    made = []
    for name in names:
        net = core.Net(caffe2_pb2.NetDef(name=name))
        net.Proto().name = name  # the same in every test
        made.append(net)
    return made


def test_a_step_of_nets():
    n, m = nets("n", "m")
    step = core.ExecutionStep("s", [n, m], 3)
    assert text(step) == 'name: "s" network: "n" network: "m" num_iter: 3'
    assert (step.Name(), str(step)) == ("s", "s")
    assert (step.Nets(), step.HasNets(), step.Substeps(), step.HasSubsteps()) == (
        [n, m],
        True,
        [],
        False,
    )
    assert text(core.ExecutionStep("s", n)) == 'name: "s" network: "n"'
    step = core.ExecutionStep("s")
    assert step.AddNet(n) is step
    step.AddNet(n)
    assert text(step) == 'name: "s" network: "n" network: "n"'
    assert step.Nets() == [n]
    assert step.get_net("n") is n
    with pytest.raises(KeyError, match="no net 'nn'; did you mean n"):
        step.get_net("nn")


def test_the_same_name_for_several_steps_and_names_for_those_without():
    first, second = core.ExecutionStep(), core.ExecutionStep("")
    base, _, number = first.Name().partition("_")
    assert base == "step"
    assert second.Name() == f"step_{int(number or 0) + 1}"
    with core.NameScope("scope"):
        assert [core.ExecutionStep("a").Name() for _ in range(2)] == ["a", "a"]


def test_a_step_of_steps():
    n, m = nets("n", "m")
    outer, inner = core.ExecutionStep("u"), core.ExecutionStep("c", [n])
    assert outer.AddSubstep(inner) is outer
    assert text(outer) == 'name: "u" substep { name: "c" network: "n" }'
    assert (outer.HasNets(), outer.HasSubsteps()) == (False, True)
    assert (outer.Nets(), outer.Substeps()) == ([n], [inner])
    assert outer.get_net("n") is n
    # A step with nothing to run is left out.
    outer.AddSubstep(core.ExecutionStep("nothing"))
    assert outer.Substeps() == [inner]
    with pytest.raises(AssertionError, match="Cannot have both network and substeps"):
        outer.AddNet(m)
    with pytest.raises(AssertionError, match="Cannot have both network and substeps"):
        core.ExecutionStep("s", [n]).AddSubstep(core.ExecutionStep("x", [m]))
    with pytest.raises(UsageError, match="an ExecutionStep is needed"):
        outer.AddSubstep(n)
    with pytest.raises(UsageError, match="a Net or NetDef is needed, got 'n'"):
        core.ExecutionStep("s").AddNet("n")


def test_setters():
    (n,) = nets("n")
    step = core.ExecutionStep("v")
    step.SetIter(3)
    step.SetConcurrentSubsteps(True)
    step.SetReportNet(n, 7)
    step.SetShouldStopBlob(core.BlobReference("stop"))
    step.SetOnlyOnce(True)
    step.RunEveryMillis(50)
    step.SetCreateWorkspace(True)
    step.SetNumConcurrentInstances(4)
    assert text(step) == (
        'name: "v" num_iter: 3 concurrent_substeps: true report_net: "n" report_interval: 7 '
        'should_stop_blob: "stop" only_once: true run_every_ms: 50 create_workspace: true '
        "num_concurrent_instances: 4"
    )
    assert step.Nets() == [n]
    assert not step.HasNets()
    with pytest.raises(AssertionError, match="expects BlobReference here, got <class 'str'>"):
        step.SetShouldStopBlob("stop")
    with pytest.raises(TypeError):
        step.SetIter(2.5)
    by_name = core.ExecutionStep("w")
    by_name.SetReportNet("n", 3)
    assert text(by_name) == 'name: "w" report_net: "n" report_interval: 3'


def test_a_step_that_is_part_of_something_cannot_be_changed():
    n, m = nets("n", "m")
    in_plan, in_step = core.ExecutionStep("s", [n]), core.ExecutionStep("s", [n])
    core.Plan(in_plan)
    core.ExecutionStep("u").AddSubstep(in_step)
    for step in (in_plan, in_step):
        for change in (
            lambda: step.SetIter(3),  # noqa: B023 - called at once
            lambda: step.AddNet(m),  # noqa: B023
            lambda: step.networks.append(m),  # noqa: B023
            lambda: step.SetReportNet(m, 1),  # noqa: B023
            lambda: step.RunEveryMillis(10),  # noqa: B023
        ):
            with pytest.raises(AssertionError, match="Cannot mutate a step that has already been"):
                change()


def test_attributes_of_all_nets():
    n, m = nets("n", "m")
    n.add_attribute("at", 1)
    for value in (2, 2):
        m.add_attribute("at", value)
    step = core.ExecutionStep("w")
    step.AddSubstep(core.ExecutionStep("x", [n])).AddSubstep(core.ExecutionStep("y", [m, n]))
    assert step.get_all_attributes("at") == [1, 2, 2]
    assert step.get_all_attributes("none") == []
    assert core.Plan(step).get_all_attributes("at") == [1, 2, 2]


def test_plans():
    n, m, k = nets("n", "m", "k")
    plan = core.Plan("p")
    assert (text(plan), str(plan)) == ('name: "p"', "p")
    step = core.ExecutionStep("s", [n, m], 3)
    plan = core.Plan(step)
    assert text(plan) == (
        'name: "s" network { name: "n" } network { name: "m" } '
        'execution_step { name: "s" network: "n" network: "m" num_iter: 3 }'
    )
    assert (plan.Nets(), plan.Steps()) == ([n, m], [step])
    plan.AddNets([k, k, n])
    plan.AddStep(step)
    plan.AddStep(core.ExecutionStep("nothing"))
    assert [net.name for net in plan.Proto().network] == ["n", "m", "k"]
    assert plan.Steps() == [step, step]
    for wrong in (None, 3):
        with pytest.raises(ValueError, match="name_or_step must be a string or ExecutionStep"):
            core.Plan(wrong)
    with pytest.raises(UsageError, match="an ExecutionStep is needed"):
        plan.AddStep(n)
    with pytest.raises(UsageError, match="a Net or NetDef is needed"):
        plan.AddNets(["n"])


def test_two_nets_of_one_name():
    (n,), (other,) = nets("n"), nets("n")
    other.Proto().type = "dag"
    plan = core.Plan("p")
    plan.AddNets([n])
    with pytest.raises(AssertionError, match="Different nets with same name: n"):
        plan.AddNets([other])
    step = core.ExecutionStep("s", [n])
    with pytest.raises(AssertionError, match="Different nets with same name: n"):
        step.AddNet(other)
    with pytest.raises(AssertionError, match="Different nets with same name: n"):
        core.Plan(core.ExecutionStep("t", [other])).AddStep(step)


def test_nets_in_the_order_in_which_they_first_run():
    n, m, k = nets("n", "m", "k")
    outer = core.ExecutionStep("u")
    outer.SetReportNet(k, 5)
    outer.AddSubstep(core.ExecutionStep("c", [m, n])).AddSubstep(core.ExecutionStep("d", [m, k]))
    names = []
    assert core.add_nets_in_order(outer, names) is None
    assert names == ["m", "n", "k"]
    names = ["k", "x"]
    core.add_nets_in_order(outer, names)
    assert names == ["k", "x", "m", "n"]
    assert [net.name for net in core.Plan(outer).Proto().network] == ["m", "n", "k"]


def test_execution_step():
    n, m, k = nets("n", "m", "k")
    make, inner = core.execution_step, core.ExecutionStep
    stop = core.BlobReference("stop")
    for step, expected in (
        (make("e", n), 'name: "e" network: "n" num_iter: 1'),
        (make("e", [n, m], num_iter=2), 'name: "e" network: "n" network: "m" num_iter: 2'),
        (make("e", []), 'name: "e" num_iter: 1'),
        (make("e", None), 'name: "e" num_iter: 1'),
        (make("e", inner("a", [n])), 'name: "e" substep { name: "a" network: "n" } num_iter: 1'),
        (
            make("e", [inner("a", [n]), inner("b", [m])], 2, concurrent_substeps=True),
            'name: "e" substep { name: "a" network: "n" } substep { name: "b" network: "m" } '
            "num_iter: 2 concurrent_substeps: true",
        ),
        (
            make("e", n, report_net=m, report_interval=4),
            'name: "e" network: "n" num_iter: 1 report_net: "m" report_interval: 4',
        ),
        (make("e", n, report_interval=4), 'name: "e" network: "n" num_iter: 1'),
        (
            make("e", n, should_stop_blob=stop, only_once=False),
            'name: "e" network: "n" should_stop_blob: "stop" only_once: false',
        ),
        (
            make("e", n, num_concurrent_instances=2, create_workspace=True, run_every_ms=10),
            'name: "e" network: "n" num_iter: 1 run_every_ms: 10 create_workspace: true '
            "num_concurrent_instances: 2",
        ),
        (
            make("e", n, 0, num_concurrent_instances=0, run_every_ms=0, concurrent_substeps=False),
            'name: "e" network: "n" num_iter: 0 concurrent_substeps: false '
            "num_concurrent_instances: 0",
        ),
    ):
        assert text(step) == expected
    assert make("e", n, report_net=m, report_interval=4).Nets() == [m, n]
    mixed = make("e", [inner("a", [n]), m, [k]])
    made = mixed.Substeps()[1].Name()  # "step", or with a number where there was one before
    name, _, number = made.partition("_")
    following = f"step_{int(number or 0) + 1}"
    assert name == "step"
    assert text(mixed) == (
        f'name: "e" substep {{ name: "a" network: "n" }} substep {{ name: "{made}" '
        f'network: "m" num_iter: 1 }} substep {{ name: "{following}" network: "k" num_iter: 1 }} '
        "num_iter: 1"
    )


def test_execution_step_refuses():
    n, m = nets("n", "m")
    with pytest.raises(AssertionError, match="Cannot set both should_stop_blob and num_iter"):
        core.execution_step("e", n, num_iter=0, should_stop_blob=core.BlobReference("stop"))
    with pytest.raises(AssertionError, match="report net m needs a report_interval, in seconds"):
        core.execution_step("e", n, report_net=m)
    for wrong in ("n", n.Proto(), 3):
        with pytest.raises(ValueError, match="steps_or_nets must be a step, a net, or a list"):
            core.execution_step("e", wrong)
    with pytest.raises(ValueError, match="steps_or_nets must be a step, a net, or a list"):
        core.execution_step("e", [n.Proto()])


def test_steps_from_nets_and_in_scopes():
    n, m = nets("n", "m")
    step = core.ExecutionStep("a", [n])
    assert core.to_execution_step(step) is step
    assert text(core.to_execution_step([n], "z")) == 'name: "z" network: "n" num_iter: 1'
    with core.NameScope("sc"):
        scoped = core.scoped_execution_step("e", [n, m], num_iter=3)
        assert core.execution_step("e", n).Name() == "e"
    assert text(scoped) == 'name: "sc/e" network: "n" network: "m" num_iter: 3'


def test_steps_and_plans_from_messages():
    n, m, k = nets("n", "m", "k")
    outer = core.ExecutionStep("u")
    outer.AddSubstep(core.execution_step("c", [n], should_stop_blob=core.BlobReference("stop")))
    outer.AddSubstep(core.ExecutionStep("d", [m, k], 2))
    outer.SetReportNet(k, 5)
    outer.SetCreateWorkspace(True)
    plan = core.Plan.create_from_proto(core.Plan(outer).Proto())
    new = {net.Name().split("_")[0]: net.Name() for net in plan.Nets()}
    assert sorted(new) == ["k", "m", "n"]
    assert all(new[name] != name for name in new)  # made anew, so they have names of their own
    assert text(plan.Proto().execution_step[0]) == (
        f'name: "u" substep {{ name: "c" network: "{new["n"]}" should_stop_blob: "stop" }} '
        f'substep {{ name: "d" network: "{new["m"]}" network: "{new["k"]}" num_iter: 2 }} '
        f'num_iter: 1 report_net: "{new["k"]}" report_interval: 5 create_workspace: true'
    )
    known = {"n": n}
    step = core.ExecutionStep.create_from_proto(
        core.ExecutionStep("s", [n, m]).Proto(), known, {"m": m.Proto()}
    )
    assert step.Nets() == [n, known["m"]]
    with pytest.raises(UsageError, match="step s needs a net 'n': not given"):
        core.ExecutionStep.create_from_proto(core.ExecutionStep("s", [n]).Proto(), {}, {})


def test_networks_of_a_step_and_concurrent_operators():
    n, m, ordered = nets("n", "m", "ordered")
    assert ordered.OrderedNet() is ordered
    assert ordered.Proto().type == "simple"
    step = core.ExecutionStep()
    assert list(step.networks) == []
    step.networks.extend([n.Proto(), m, ordered])
    assert [core.get_net_name(net) for net in step.networks] == ["n", "m", "ordered"]
    assert step.networks[1] is m
    assert step.networks[1:] == [m, ordered]
    assert list(step.Proto().network) == ["n", "m", "ordered"]
    step.concurrent_ops = True
    alone = nets("alone")[0]
    plan = core.Plan("p")
    plan.AddStep(core.ExecutionStep("t", [alone]))
    plan.AddStep(core.ExecutionStep("u").AddSubstep(step))
    types = {net.name: net.type for net in plan.Proto().network}
    assert types == {"alone": "", "n": "dag", "m": "dag", "ordered": "simple"}
    assert n.Proto().type == ""
