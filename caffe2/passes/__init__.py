"""Rewrites of nets that keep their meaning: NetDef in, NetDef out.

Each pass has a name, by which it can be left out, and says in a line what it changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, MutableMapping

from caffe2.graph.verify import verify
from caffe2.passes.cleanup import drop_dead_code, drop_identities
from caffe2.passes.folding import fold_affine, fold_constants
from caffe2.passes.fusing import fuse_depthwise
from caffe2.passes.model import Array, InferenceModel
from caffe2.proto import caffe2_pb2

__all__ = ["INFERENCE", "InferenceModel", "optimize"]

Pass = Callable[[InferenceModel], list[str]]

# In this order.
INFERENCE: dict[str, Pass] = {
    run.__name__: run
    for run in (drop_identities, fold_constants, fold_affine, drop_dead_code, fuse_depthwise)
}


def optimize(
    net: caffe2_pb2.NetDef,
    params: MutableMapping[str, Array],
    outputs: Iterable[str] | None = None,
    *,
    without: Collection[str] = (),
    owned: bool = False,
) -> tuple[caffe2_pb2.NetDef, list[str]]:
    """A net with the same outputs and less work, and a line for each change.

    net      what predicts; it stays as it is
    params   the values that are the same in every run, by name; new ones are added
    outputs  what is wanted; the net's external outputs unless given
    without  names of passes to leave out: drop_identities, fold_constants, fold_affine,
             drop_dead_code, fuse_depthwise
    owned    nobody else wants `params`: weights go from there as soon as others take their place

    Blobs other than the inputs and outputs may be gone or hold other values.  ValueError for a name
    of a pass or of an output that there is not.
    """
    unknown = set(without) - set(INFERENCE)
    if unknown:
        raise ValueError(
            f"no pass is called {', '.join(sorted(unknown))}; there are {', '.join(INFERENCE)}"
        )
    model = InferenceModel(net, params, outputs, owned)
    written = {name for op in net.op for name in op.output} | set(net.external_input)
    missing = [name for name in model.outputs if name not in written]
    if missing:
        raise ValueError(f"the net does not compute {', '.join(missing)}")
    before = set(verify(model.net, known=params))
    notes: list[str] = []
    for name, run in INFERENCE.items():
        if name in without:
            continue
        notes.extend(f"{name}: {note}" for note in run(model))
        wrong = [line for line in verify(model.net, known=model.params) if line not in before]
        if wrong and not before:
            raise AssertionError(f"pass {name} made a wrong net: {wrong[0]}")
    read = {name for op in model.op for name in (*op.input, *op.control_input)}
    read |= model.nested
    kept = [name for name in model.net.external_input if name in read or name not in params]
    del model.net.external_input[:]
    model.net.external_input.extend(dict.fromkeys(kept))
    return model.net, notes
