"""Steps that depend on conditions: loops and branches of plans.

A condition is a net, whose last external output is one bool, or a blob of one bool.  Bodies are
nets, steps or lists of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from caffe2.graph.blob import BlobReference
from caffe2.graph.datatype import DataType
from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.plans.step import ExecutionStep, execution_step


def GetConditionBlobFromNet(condition_net: Net) -> BlobReference:
    """The condition of a net: its last external output.  UsageError when it has none."""
    if not condition_net.Proto().external_output:
        raise UsageError(f"Condition net {condition_net} must have at least one external output")
    return BlobReference(condition_net.Proto().external_output[-1], condition_net)


def BoolNet(*blobs_with_bool_value: Any) -> Net:
    """A net that sets blobs: `BoolNet(("a", True), ("b", False))`, or a list of such pairs."""
    pairs = blobs_with_bool_value
    if len(pairs) == 1 and isinstance(pairs[0], list):
        pairs = tuple(pairs[0])
    net = Net("bool_net")
    for blob, value in pairs:
        out = net.ConstantFill([], [blob], shape=[], value=bool(value), dtype=DataType.BOOL)
        net.AddExternalOutput(out)
    return net


def NotNet(condition_blob_or_net: Any) -> Net:
    """A net that computes the opposite of a condition; a net as condition has to run before."""
    net = Net("not_net")
    opposite = net.Not(_condition_blob(condition_blob_or_net))
    net.AddExternalOutput(opposite)
    return net


def _condition_blob(condition: Any) -> BlobReference:
    if isinstance(condition, Net):
        return GetConditionBlobFromNet(condition)
    return BlobReference(condition)


def CombineConditions(name: str, condition_nets: Sequence[Net], relation: str) -> Net:
    """A net that joins the results of condition nets, which ran before, by "And" or "Or"."""
    net = Net(name)
    net.AddExternalOutput(
        _joined(net, [GetConditionBlobFromNet(condition) for condition in condition_nets], relation)
    )
    return net


def MergeConditionNets(name: str, condition_nets: Any, relation: str) -> Net:
    """A net that runs condition nets and joins their results by "And" or "Or"."""
    if not isinstance(condition_nets, list):
        return condition_nets  # type: ignore[no-any-return]
    merged = Net(name)
    for condition in condition_nets:
        merged.AppendNet(condition)
    blobs = [GetConditionBlobFromNet(condition) for condition in condition_nets]
    merged.AddExternalOutput(_joined(merged, blobs, relation))
    return merged


def _joined(net: Net, blobs: Sequence[BlobReference], relation: str) -> BlobReference:
    if relation not in ("And", "Or"):
        raise UsageError(f"conditions are joined by And or Or, not by {relation!r}")
    if not blobs:
        raise UsageError("there are no conditions to join")
    result = blobs[0]
    for blob in blobs[1:]:
        result = net.__getattr__(relation)([result, blob])
    return net.Copy(result) if len(blobs) == 1 else result


def Do(name: str, *nets_or_steps: Any) -> ExecutionStep:
    """Runs nets and steps in order."""
    return _sequence(name, nets_or_steps)


def DoParallel(name: str, *nets_or_steps: Any) -> ExecutionStep:
    """Runs nets and steps side by side."""
    steps = [_sequence(f"{name}/part", [part]) for part in _parts(nets_or_steps)]
    return execution_step(name, steps, concurrent_substeps=True)


def _parts(nets_or_steps: Any) -> list[Any]:
    if not isinstance(nets_or_steps, (list, tuple)):
        return [nets_or_steps]
    return [part for item in nets_or_steps for part in _parts(item)]


def _sequence(name: str, nets_or_steps: Any, **options: Any) -> ExecutionStep:
    parts = _parts(nets_or_steps)
    one_step = len(parts) == 1 and isinstance(parts[0], ExecutionStep)
    return execution_step(name, parts[0] if one_step else parts, **options)


def _stopping(condition: Any, stop_if: bool) -> tuple[list[Net], BlobReference]:
    """Nets that evaluate a condition, and the blob that says to stop: it is true when the condition
    is `stop_if`."""
    nets = [condition] if isinstance(condition, Net) else []
    if stop_if:
        return nets, _condition_blob(condition)
    opposite = NotNet(condition)
    return [*nets, opposite], GetConditionBlobFromNet(opposite)


def For(name: str, nets_or_steps: Any, iter_num: int) -> ExecutionStep:
    """Runs a body `iter_num` times."""
    return _sequence(name, nets_or_steps, num_iter=iter_num)


def _loop(name: str, condition: Any, body: Any, stop_if: bool, body_first: bool) -> ExecutionStep:
    nets, stop = _stopping(condition, stop_if)
    check = execution_step(f"{name}/condition", nets)
    run = _sequence(f"{name}/body", body)
    if not body_first:
        return execution_step(name, [check, run], should_stop_blob=stop)
    # The stop blob is looked at after the body, too: it is false until the condition was checked.
    before = BoolNet((stop, False))
    loop = execution_step(f"{name}/loop", [run, check], should_stop_blob=stop)
    return Do(name, before, loop)


def While(name: str, condition_blob_or_net: Any, nets_or_steps: Any) -> ExecutionStep:
    """Runs a body as long as the condition, checked before each run, is true."""
    return _loop(name, condition_blob_or_net, nets_or_steps, stop_if=False, body_first=False)


def Until(name: str, condition_blob_or_net: Any, nets_or_steps: Any) -> ExecutionStep:
    """Runs a body as long as the condition, checked before each run, is false."""
    return _loop(name, condition_blob_or_net, nets_or_steps, stop_if=True, body_first=False)


def DoWhile(name: str, condition_blob_or_net: Any, nets_or_steps: Any) -> ExecutionStep:
    """Runs a body once, and again as long as the condition, checked after each run, is true."""
    return _loop(name, condition_blob_or_net, nets_or_steps, stop_if=False, body_first=True)


def DoUntil(name: str, condition_blob_or_net: Any, nets_or_steps: Any) -> ExecutionStep:
    """Runs a body once, and again as long as the condition, checked after each run, is false."""
    return _loop(name, condition_blob_or_net, nets_or_steps, stop_if=True, body_first=True)


def _guarded(name: str, stop: BlobReference, body: Any) -> ExecutionStep:
    """Runs the body once, unless `stop` is true."""
    # The stop blob is looked at after a net, and there is one to look at it before the body.
    check, run = Net("check"), _sequence(f"{name}/body", body)
    return execution_step(name, [check, run], should_stop_blob=stop, only_once=True)


def If(
    name: str,
    condition_blob_or_net: Any,
    true_nets_or_steps: Any,
    false_nets_or_steps: Any = None,
) -> ExecutionStep:
    """Runs one body or the other, as the condition says."""
    return _branch(name, condition_blob_or_net, true_nets_or_steps, false_nets_or_steps, True)


def IfNot(
    name: str,
    condition_blob_or_net: Any,
    true_nets_or_steps: Any,
    false_nets_or_steps: Any = None,
) -> ExecutionStep:
    """Runs the first body if the condition is false, and the other one if it is true."""
    return _branch(name, condition_blob_or_net, true_nets_or_steps, false_nets_or_steps, False)


def _branch(name: str, condition: Any, body: Any, otherwise: Any, run_if: bool) -> ExecutionStep:
    # The condition is kept: a body may change the blobs that it is computed from.
    decide = Net("decide")
    holds = decide.Copy(_condition_blob(condition))
    fails = decide.Not(holds)
    evaluate = [condition] if isinstance(condition, Net) else []
    skip, run = (fails, holds) if run_if else (holds, fails)
    steps = [_guarded(f"{name}/then", skip, body)]
    if otherwise is not None:
        steps.append(_guarded(f"{name}/else", run, otherwise))
    return Do(name, *evaluate, decide, *steps)


def Switch(name: str, *conditions: Any) -> ExecutionStep:
    """Runs the body of every condition that is true: `Switch("s", (condition, body), ...)`.

    The conditions are evaluated first, each once.
    """
    return _switch(name, conditions, True)


def SwitchNot(name: str, *conditions: Any) -> ExecutionStep:
    """Runs the body of every condition that is false."""
    return _switch(name, conditions, False)


def _switch(name: str, conditions: Sequence[Any], run_if: bool) -> ExecutionStep:
    nets, branches = [], []
    for index, (condition, body) in enumerate(_pairs(conditions)):
        if isinstance(condition, Net):
            nets.append(condition)
        branch = f"{name}/{index}"
        branches.append(_branch(branch, _condition_blob(condition), body, None, run_if))
    return Do(name, *nets, *branches)


def _pairs(conditions: Sequence[Any]) -> Sequence[Any]:
    if len(conditions) == 1 and isinstance(conditions[0], list):
        return conditions[0]
    return conditions
