"""Nets as branches and bodies of If and While, and the gradients of If, While and Do.

Branches and bodies run in workspaces of their own (Do), which a scope keeps for the gradient.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from caffe2.graph.backward import IR, rename_inside
from caffe2.graph.blob import BlobReference
from caffe2.graph.errors import GradientError, UsageError
from caffe2.graph.gradients import GradientRegistry, gradient_name
from caffe2.graph.net import Net
from caffe2.graph.operator import CreateOperator
from caffe2.ops.declaration import GradientSlice
from caffe2.proto import caffe2_pb2

Operator = caffe2_pb2.OperatorDef

_INNER_GRAD = "/_DO_OPERATOR_INNER_GRAD_"
_INNER_COPY = "/_DO_OPERATOR_INNER_GRAD_COPY_"


# ------------------------------------------------------------------- building


def get_external_blob_names(net: Net, lexical_scope: Iterable[Any]) -> tuple[set[str], set[str]]:
    """The blobs of the scope around it that `net` reads before it writes them, and those that it
    writes.  UsageError for a blob that it reads and nobody has."""
    known = {str(name) for name in lexical_scope}
    read: dict[str, None] = {}
    written: dict[str, None] = {}
    for op in net.Proto().op:
        read.update(dict.fromkeys(name for name in op.input if name not in written))
        written.update(dict.fromkeys(op.output))
    read.update(dict.fromkeys(name for name in net.Proto().external_input if name not in written))
    missing = sorted(set(read) - known)
    if missing:
        raise UsageError(
            f"net {net.Name()} reads {', '.join(missing)}, which neither it nor the net around "
            "it has"
        )
    return set(read), set(written) & known


def add_if_op(
    if_net: Net, cond_blob: Any, lexical_scope: Iterable[Any], then_net: Net, else_net: Any = None
) -> None:
    """Appends an If, whose branches run in workspaces of their own, to `if_net`.

    lexical_scope: the blobs of if_net that the branches may read and write.
    """
    scope = list(lexical_scope)
    branches = [
        _in_workspace(if_net, net, scope, part, f"{if_net.Name()}/workspace_if_{part}")
        for part, net in (("then", then_net), ("else", else_net))
        if net is not None
    ]
    inputs = dict.fromkeys(name for _, op in branches for name in op.input[:-1])
    outputs = dict.fromkeys(name for _, op in branches for name in op.output[:-1])
    # What only one branch writes stays as it was in the other one.
    for name in outputs:
        both = len(branches) == 2 and all(name in op.output for _, op in branches)
        if not both and if_net.BlobIsDefined(name):
            inputs[name] = None
    scopes = [op.input[-1] for _, op in branches]
    names = ("then_net", "else_net")
    if_net.If(
        _references([str(cond_blob), *inputs, *scopes]),
        _references([*outputs, *scopes]),
        **{name: net for name, (net, _) in zip(names, branches, strict=False)},
    )


def add_while_op(
    while_net: Net,
    cond_blob: Any,
    lexical_scope: Iterable[Any],
    loop_body_net: Net,
    condition_body_net: Any = None,
) -> None:
    """Appends a While, whose nets run in workspaces of their own, to `while_net`.

    cond_blob: looked at before each turn, after condition_body_net where there is one.
    lexical_scope: the blobs of while_net that the nets may read and write.
    """
    scope = list(lexical_scope)
    name = f"{while_net.Name()}/workspace_loop_body"
    body = _in_workspace(while_net, loop_body_net, scope, "loop_body", name, copy_external_blobs=1)
    parts = {"loop_net": body}
    if condition_body_net is not None:
        _, written = get_external_blob_names(condition_body_net, scope)
        if str(cond_blob) not in written:
            raise UsageError(
                f"the condition net {condition_body_net.Name()} does not write {cond_blob}"
            )
        name = f"{while_net.Name()}/workspace_loop_cond"
        parts["cond_net"] = _in_workspace(
            while_net, condition_body_net, scope, "loop_condition", name
        )
    made = [op for _, op in parts.values()]
    inputs = dict.fromkeys(name for op in made for name in op.input if name != str(cond_blob))
    outputs = dict.fromkeys(name for op in made for name in op.output)
    while_net.While(
        _references([str(cond_blob), *inputs]),
        _references(outputs),
        **{name: net for name, (net, _) in parts.items()},
    )


def _references(names: Iterable[str]) -> list[BlobReference]:
    return [BlobReference(name) for name in names]


def _in_workspace(
    outer: Net, net: Net, scope: Sequence[Any], part: str, workspace: str, **arguments: Any
) -> tuple[Net, Operator]:
    """A net with one Do that runs `net`, and this Do; its scope is made in `outer`."""
    read, written = get_external_blob_names(net, scope)
    inputs, outputs = sorted(read), sorted(written)
    numbers = {name: number for number, name in enumerate([*inputs, *outputs])}
    numbers.update({name: number for number, name in enumerate(inputs)})
    stack = outer.CreateScope([], BlobReference(outer.NextBlob(workspace)))
    op = CreateOperator(
        "Do",
        [*_references(inputs), stack],
        [*_references(outputs), stack],
        net=net,
        inner_blobs=list(numbers),
        outer_blobs_idx=list(numbers.values()),
        **arguments,
    )
    around = Net(f"do_{part}_net")
    around.extend_ops([op])
    around.AddExternalOutputs(*op.output)
    return around, op


# ------------------------------------------------------------------- gradients


def getNetArgument(op: Operator, net_name: str) -> caffe2_pb2.NetDef | None:
    """The net in an argument, or None."""
    for arg in op.arg:
        if arg.name == net_name and arg.HasField("n"):
            return arg.n
    return None


def _net_gradient(
    net: caffe2_pb2.NetDef, given: Mapping[str, str]
) -> tuple[caffe2_pb2.NetDef, dict[str, str]]:
    """The net that computes the gradients of what `net` reads, from those of blobs it writes."""
    written = {name for op in net.op for name in op.output}
    ir = IR(net.op)
    operators, gradients = ir.GetBackwardPass({y: g for y, g in given.items() if y in written})
    found = {}
    for name in _read_from_outside(net.op):
        gradient = gradients.get(BlobReference(name))
        # Not that of what the net itself has written there.
        if gradient is None or ir.latest[name] != (name, 0):
            continue
        if isinstance(gradient, GradientSlice):
            raise GradientError(
                f"the gradient of '{name}' in net {net.name} is sparse; the gradients of nets "
                "inside operators are dense"
            )
        found[name] = str(gradient)
    return caffe2_pb2.NetDef(name=f"{net.name}_grad", type=net.type, op=operators), found


def _read_from_outside(operators: Iterable[Operator]) -> list[str]:
    read: dict[str, None] = {}
    written: set[str] = set()
    for op in operators:
        read.update(dict.fromkeys(name for name in op.input if name not in written))
        written.update(op.output)
    return list(read)


def _given(op: Operator, g_output: Sequence[Any]) -> dict[str, str]:
    """The gradients of the outputs that have one."""
    given = {}
    for name, gradient in zip(op.output, map(gradient_name, g_output), strict=False):
        if isinstance(gradient, GradientSlice):
            raise GradientError(f"the gradient of output '{name}' is sparse (expected dense)")
        if gradient is not None:
            given[name] = gradient
    return given


def disambiguate_grad_if_op_output(grad_op: Operator, idx: int, new_grad_output: str) -> None:
    """Gives an output of the gradient of an If another name, also in its nets."""
    old = grad_op.output[idx]
    grad_op.output[idx] = new_grad_output
    rename_inside(grad_op, old, new_grad_output)


def _free(name: str, taken: Iterable[str]) -> str:
    while name in taken:
        name += "_in"
    return name


def _zeros(like: str, name: str) -> Operator:
    return _operator("ConstantFill", [like], [name], value=0.0)


def _operator(type: str, inputs: Sequence[str], outputs: Sequence[str], **args: Any) -> Operator:
    return CreateOperator(type, _references(inputs), _references(outputs), **args)


@GradientRegistry.RegisterGradient("Do")
def gen_do_gradient(op: Operator, g_output: Sequence[Any]) -> tuple[list[Operator], list[Any]]:
    """The gradient of a Do: a Do that runs in the workspace that it has left."""
    gradient, g_input = _do_gradient(op, g_output, "_grad")
    return [gradient], g_input


def _do_gradient(
    op: Operator, g_output: Sequence[Any], suffix: str
) -> tuple[Operator, list[str | None]]:
    """The same; the gradient of an input gets its name and `suffix`."""
    given = _given(op, g_output)
    inner_net = getNetArgument(op, "net")
    if inner_net is None:
        raise GradientError("it has no net")
    arguments = {name: caffe2_pb2.Argument() for name in ("inner_blobs", "outer_blobs_idx")}
    arguments.update((arg.name, arg) for arg in op.arg)
    inner = [s.decode() for s in arguments["inner_blobs"].strings]
    indices = list(arguments["outer_blobs_idx"].ints)
    inputs, outputs = list(op.input[:-1]), list(op.output[:-1])
    outer_of = dict(zip(inner, ([*inputs, *outputs][k] for k in indices), strict=True))
    from_outside = [name for name, k in zip(inner, indices, strict=True) if k < len(inputs)]
    net_given = {
        name: name + _INNER_GRAD for name in inner if outer_of[name] in set(outputs) & set(given)
    }
    gradient_net, found = _net_gradient(inner_net, net_given)
    wanted = [name for name in from_outside if name in found]
    for name in wanted:
        gradient_net.op.append(_operator("Copy", [found[name]], [name + _INNER_COPY]))
    read = _read_from_outside(gradient_net.op)
    new_inputs = {name + _INNER_GRAD: given[outer_of[name]] for name in net_given}
    new_inputs.update({name: outer_of[name] for name in read if name in outer_of})
    results = {name: _free(outer_of[name] + suffix, given.values()) for name in wanted}
    copies = {name + _INNER_COPY: result for name, result in results.items()}
    outer_inputs = list(dict.fromkeys(new_inputs.values()))
    names = {**copies, **new_inputs}
    numbers = [
        len(outer_inputs) + list(copies.values()).index(outer)
        if name in copies
        else outer_inputs.index(outer)
        for name, outer in names.items()
    ]
    gradient = _operator(
        "Do",
        [*outer_inputs, op.input[-1]],
        [*copies.values(), op.output[-1]],
        net=gradient_net,
        inner_blobs=list(names),
        outer_blobs_idx=numbers,
        saved_fwd_blobs=[n for n in read if n not in outer_of and not n.endswith(_INNER_GRAD)],
    )
    if "reuse_workspace" in arguments:
        gradient.arg.append(arguments["reuse_workspace"])
    gradient.is_gradient_op = True
    by_outer = {outer_of[name]: result for name, result in results.items()}
    return gradient, [by_outer.get(name) for name in op.input]


@GradientRegistry.RegisterGradient("AsyncIf")
@GradientRegistry.RegisterGradient("If")
def gen_if_gradient(op: Operator, g_output: Sequence[Any]) -> tuple[list[Operator], list[Any]]:
    """The gradient of an If: an If whose branches are the gradients of its branches."""
    given = _given(op, g_output)
    branches = {name: getNetArgument(op, name) for name in ("then_net", "else_net")}
    made = {}
    for name, branch in branches.items():
        net = branch or caffe2_pb2.NetDef(name=f"no_{name}")
        gradient_net, found = _net_gradient(net, given)
        written = {blob for inner in net.op for blob in inner.output}
        # What the branch leaves as it was hands its gradient on.
        found.update({blob: g for blob, g in given.items() if blob not in written})
        made[name] = gradient_net, found
    wanted = [
        blob
        for blob in dict.fromkeys(op.input[1:])
        if any(blob in found for _, found in made.values())
    ]
    results = {blob: _free(f"{blob}_grad", given.values()) for blob in wanted}
    for gradient_net, found in made.values():
        for blob, result in results.items():
            if blob not in found:
                gradient_net.op.append(_zeros(blob, result))
            elif found[blob] != result:
                gradient_net.op.append(_operator("Copy", [found[blob]], [result]))
    nets = [gradient_net for gradient_net, _ in made.values()]
    read = dict.fromkeys(blob for net in nets for blob in _read_from_outside(net.op))
    scopes = dict.fromkeys(
        inner.output[-1] for net in nets for inner in net.op if inner.type == "Do"
    )
    gradient = _operator(
        op.type,
        [op.input[0], *(blob for blob in read if blob != op.input[0])],
        [*results.values(), *(scope for scope in scopes if scope in op.output)],
        **{name: gradient_net for name, (gradient_net, _) in made.items()},
    )
    gradient.is_gradient_op = True
    return [gradient], [results.get(blob) for blob in op.input]


@GradientRegistry.RegisterGradient("While")
def gen_while_gradient(op: Operator, g_output: Sequence[Any]) -> tuple[list[Operator], list[Any]]:
    """The gradient of a While over a Do: a While that takes back one turn after the other, as long
    as the scope of the Do has workspaces.

    `<blob>_grad` holds, during the loop, the gradient of the blob after the turn that comes next;
    of what no turn writes, the sum so far.
    """
    given = _given(op, g_output)
    loop_net = getNetArgument(op, "loop_net")
    if loop_net is None or len(loop_net.op) != 1 or loop_net.op[0].type != "Do":
        raise GradientError("only a While whose loop_net is one Do has a gradient")
    turn = loop_net.op[0]
    scope = turn.input[-1]
    carried = {name: f"{name}_grad" for name in turn.output[:-1] if name in given}
    while True:
        gradients = [carried.get(name) for name in turn.output]
        step, found = _do_gradient(turn, gradients, "_grad_of_turn")
        of_turn = {name: g for name, g in zip(turn.input, found, strict=True) if g is not None}
        # What a turn reads of the one before has a gradient there, too.
        more = [name for name in turn.output if name in of_turn and name not in carried]
        if not more:
            break
        carried.update({name: f"{name}_grad" for name in more})
    before, after = [], []
    for name, total in carried.items():
        if given.get(name) != total:
            source = given.get(name)
            before.append(_operator("Copy", [source], [total]) if source else _zeros(name, total))
        after.append(
            _operator("Copy", [of_turn[name]], [total]) if name in of_turn else _zeros(total, total)
        )
    sums = {name: f"{name}_grad" for name in of_turn if name not in carried}
    for name, total in sums.items():
        before.append(_zeros(name, total))
        after.append(_operator("Sum", [total, of_turn[name]], [total]))
    has_turn = f"{scope}_has_turn"
    check = _operator("HasScope", [scope], [has_turn])
    net = caffe2_pb2.NetDef(name=f"{loop_net.name}_grad", op=[step, *after, check])
    totals = {**carried, **sums}
    read = [name for name in _read_from_outside(net.op) if name != has_turn]
    gradient = _operator(
        "While",
        [has_turn, *read],
        [*totals.values(), scope, has_turn],
        loop_net=net,
    )
    gradient.is_gradient_op = True
    return [*before, check, gradient], [totals.get(name) for name in op.input]
