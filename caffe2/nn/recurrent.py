"""Recurrent nets: a net for one step becomes an operator that runs it over whole sequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from caffe2.graph.backward import backward_pass
from caffe2.graph.blob import BlobReference, ScopedBlobReference
from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.graph.operator import MakeArgument
from caffe2.proto import caffe2_pb2

_EXECUTOR_ARGUMENTS = ("rnn_executor.num_threads", "rnn_executor.max_cuda_streams")


def recurrent_net(
    net: Net,
    cell_net: Net,
    inputs: Sequence[tuple[Any, Any]],
    initial_cell_inputs: Sequence[tuple[Any, Any]],
    links: Mapping[Any, Any],
    timestep: Any = None,
    scope: str | None = None,
    outputs_with_grads: Sequence[int] = (0,),
    recompute_blobs_on_backward: Sequence[Any] | None = None,
    forward_only: bool = False,
) -> tuple[BlobReference, ...]:
    """Appends a RecurrentNetwork that runs `cell_net` for each step of sequences to `net`.

    inputs               pairs: a blob of cell_net, (1, N, ...), and its sequence (T, N, ...)
    initial_cell_inputs  pairs: a blob of cell_net that holds a state before a step, (1, N, D), and
                         the initial state: (N, D), (1, N, D), or (D) for the whole batch
    links                from each of these blobs to the one that holds the state after the step
    timestep             the blob of cell_net that holds the number of the step
    scope                the first part of the names of the sequences of states; by default
                         "<net>/recurrent"
    outputs_with_grads   which of the results gradients come for
    recompute_blobs_on_backward
                         blobs of cell_net that are not kept for the gradient but computed again
    forward_only         no gradient is wanted

    Gives, for each state in the order of initial_cell_inputs, all T states (T, N, D) and the last
    one (1, N, D).  What cell_net reads otherwise are inputs of the operator, and have gradients.
    """
    recompute = [str(blob) for blob in recompute_blobs_on_backward or ()]
    link_to = {str(before): str(after) for before, after in links.items()}
    timestep = "timestep" if timestep is None else str(timestep)
    begins = [(str(before), str(initial)) for before, initial in initial_cell_inputs]
    sequences = [(str(blob), str(sequence)) for blob, sequence in inputs]
    cell = caffe2_pb2.NetDef()
    cell.CopyFrom(cell_net.Proto())
    cell.type = "simple"
    ours = {timestep, *(blob for blob, _ in sequences), *(before for before, _ in begins)}
    outside = [name for name in cell.external_input if name not in ours]

    prefix = scope or f"{net.Name()}/recurrent"
    states = {before: f"{prefix}/{before}_states" for before, _ in begins}
    forward = _Links()
    for before, _ in begins:
        forward.add(before, states[before], 0)
        forward.add(link_to[before], states[before], 1)
    for blob, sequence in sequences:
        forward.add(blob, sequence, 0)

    afters = [link_to[before] for before, _ in begins]
    results = [f"{after}_{part}" for after in afters for part in ("all", "last")]
    operator_inputs = [
        *(sequence for _, sequence in sequences),
        *(initial for _, initial in begins),
        *outside,
    ]
    arguments: dict[str, Any] = {
        "alias_src": [states[before] for before, _ in begins for _ in range(2)],
        "alias_dst": results,
        "alias_offset": [1, -1] * len(begins),
        "recurrent_states": list(states.values()),
        "initial_recurrent_state_ids": [len(sequences) + i for i in range(len(begins))],
        **forward.arguments("link"),
        "enable_rnn_executor": 1,
        "step_net": cell,
        "timestep": timestep,
    }
    if not forward_only:
        gradient_of, backward_net = _backward_step(cell_net, afters, recompute)
        params = [name for name in outside if name in gradient_of]
        backward = _Links()
        for before, _ in begins:
            backward.add(f"{link_to[before]}_grad", f"{states[before]}_grad", 1)
            if before in gradient_of:
                backward.add(gradient_of[before], f"{states[before]}_grad", 0)
        for blob, sequence in sequences:
            if blob in gradient_of:
                backward.add(gradient_of[blob], f"{sequence}_grad", 0)
        first = len(sequences) + len(begins)
        arguments.update(
            param=[first + outside.index(name) for name in params],
            **backward.arguments("backward_link"),
            outputs_with_grads=list(outputs_with_grads),
            recompute_blobs_on_backward=recompute,
            param_grads=[gradient_of[name] for name in params],
            backward_step_net=backward_net,
        )
    workspaces = ScopedBlobReference(f"{prefix}/step_workspaces")
    made = net.RecurrentNetwork(
        [BlobReference(name) for name in operator_inputs],
        [*map(BlobReference, results), workspaces],
        **arguments,
    )
    return tuple(made[:-1])


class _Links:
    """Which blob of a step is which row of a sequence."""

    def __init__(self) -> None:
        self.internal: list[str] = []
        self.external: list[str] = []
        self.offset: list[int] = []

    def add(self, internal: str, external: str, offset: int) -> None:
        self.internal.append(internal)
        self.external.append(external)
        self.offset.append(offset)

    def arguments(self, prefix: str) -> dict[str, Any]:
        return {f"{prefix}_{name}": getattr(self, name) for name in vars(self)}


def _backward_step(
    cell_net: Net, afters: Sequence[str], recompute: Sequence[str]
) -> tuple[dict[str, str], caffe2_pb2.NetDef]:
    """The names of the gradients of a step, and the net that computes them from those of `afters`.

    It begins with the operators that make the blobs which have to be computed again.
    """
    cell = cell_net.Proto()
    gradients = {BlobReference(after): BlobReference(f"{after}_grad") for after in afters}
    operators, found = backward_pass(cell.op, gradients, sites=cell_net.op_sites)
    again = [op for op in cell.op if set(op.output) & set(recompute)]
    backward_net = caffe2_pb2.NetDef(name="RecurrentBackwardStep", type="simple")
    backward_net.op.extend([*again, *operators])
    sparse = [str(blob) for blob in found if not isinstance(found[blob], BlobReference)]
    from_outside = [name for name in sparse if name in cell.external_input]
    if from_outside:
        raise UsageError(
            f"the gradients of {from_outside} are sparse; those of the steps of a recurrent net "
            "are added up and have to be dense. Look the rows up outside of the steps, or give "
            "forward_only=True"
        )
    written: set[str] = set()
    for op in backward_net.op:
        for name in op.input:
            if name not in written and name not in backward_net.external_input:
                backward_net.external_input.append(name)
        written.update(op.output)
    return {
        str(blob): str(gradient)
        for blob, gradient in found.items()
        if isinstance(gradient, BlobReference)
    }, backward_net


def set_rnn_executor_config(
    rnn_op: caffe2_pb2.OperatorDef,
    num_threads: int | None = None,
    max_cuda_streams: int | None = None,
) -> None:
    """Writes hints for the executor of steps into a RecurrentNetwork operator; this engine needs
    none."""
    kept = [arg for arg in rnn_op.arg if arg.name not in _EXECUTOR_ARGUMENTS]
    values = zip(_EXECUTOR_ARGUMENTS, (num_threads, max_cuda_streams), strict=True)
    kept.extend(MakeArgument(name, value) for name, value in values if value is not None)
    del rnn_op.arg[:]
    rnn_op.arg.extend(kept)


def retrieve_step_blobs(net: Net, prefix: str = "rnn") -> list[bytes]:
    """Copies what each step of the recurrent nets of `net`, which has run, has left to blobs of the
    workspace, `<prefix>_<blob><step>`, and gives their names."""
    from caffe2.runtime import workspace

    number, names = 1, []
    for op in net.Proto().op:
        if op.type != "RecurrentNetwork":
            continue
        target = f"{prefix}_{number}"
        fetch = ("RecurrentNetworkBlobFetcher", [op.output[-1]], [target], {"prefix": prefix})
        workspace.RunOperatorOnce(fetch)
        names.extend(workspace.FetchBlob(target))
        number += 1
    return names
