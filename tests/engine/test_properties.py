"""Random nets and random things that users do between runs, against the NumPy bodies."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caffe2 import ops
from caffe2.proto import caffe2_pb2
from caffe2.python import core, workspace
from caffe2.runtime import workspace as runtime

BLOBS = [f"b{i}" for i in range(6)]
WEIGHTS = ["w0", "w1"]
UNARY = {"Relu": {}, "Tanh": {}, "Scale": {"scale": 0.5}, "Copy": {}, "Sigmoid": {}}


@st.composite
def operators(draw):
    kind = draw(st.sampled_from([*UNARY, "Sum", "WeightedSum", "Softmax", *["FC"] * 4]))
    target = draw(st.sampled_from(BLOBS))
    if kind in UNARY:
        inplace = ops.find(kind).inplace
        source = draw(st.sampled_from([b for b in BLOBS if b != target or inplace]))
        return core.CreateOperator(kind, [source], [target], **UNARY[kind])
    if kind == "FC":
        source = draw(st.sampled_from([b for b in BLOBS if b != target]))
        weight = draw(st.sampled_from(WEIGHTS))
        return core.CreateOperator("FC", [source, weight, "bias"], [target])
    others = draw(st.lists(st.sampled_from(BLOBS), min_size=1, max_size=2))
    if kind == "Softmax":
        source = next(b for b in others + BLOBS if b != target)
        return core.CreateOperator(kind, [source], [target])
    first, *rest = [target, *(b for b in others if b != target)]
    inputs = [first, *rest] if kind == "Sum" else [x for b in [first, *rest] for x in (b, "half")]
    return core.CreateOperator(kind, inputs, [target])


run = st.tuples(st.just("run"), st.integers(1, 3))
actions = st.one_of(
    run,
    run,
    st.tuples(st.just("feed"), st.sampled_from(BLOBS), st.integers(0, 2**16)),
    st.tuples(st.just("resize"), st.integers(1, 9), st.integers(0, 2**16)),
    st.tuples(st.just("delete"), st.sampled_from(BLOBS)),
    st.tuples(st.just("fetch"), st.sampled_from(BLOBS)),
    # While somebody watches, nothing is fused.
    st.tuples(st.just("watch"), st.booleans()),
    # Weights are packed by the second run, and written in all the ways there are.
    st.tuples(
        st.sampled_from(["feed weights", "update", "write through a view"]),
        st.sampled_from(WEIGHTS),
        st.integers(0, 2**16),
    ),
)


class Model:
    """What the blobs should hold, by the bodies in order."""

    def __init__(self, net):
        self.net, self.blobs = net, {"half": np.float32([0.5])}

    def run(self):
        """Whether all operators ran; those before a failing one have written."""
        if any(name not in self.blobs for name in self.read_first()):
            return False
        for op in self.net.op:
            declaration = ops.find(op.type)
            try:
                found = declaration.run(
                    declaration.view_of(op), [self.blobs[name] for name in op.input]
                )
            except ops.OperatorError:
                return False
            self.blobs.update(zip(op.output, found, strict=True))
        return True

    def read_first(self):
        written = set()
        for op in self.net.op:
            yield from set(op.input) - written
            written.update(op.output)


def assert_close(found, wanted):
    # Of the range: sums of large values that cancel keep the rounding of these.
    scale = max(1.0, float(np.abs(wanted).max(initial=0)))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * scale)


@pytest.mark.parametrize("kind", ["simple", "dag"])
@settings(max_examples=60, deadline=None)
@given(
    body=st.lists(operators(), min_size=1, max_size=12),
    steps=st.lists(actions, min_size=2, max_size=12),
)
def test_a_net_is_its_operators_in_order_whatever_happens_between_runs(kind, body, steps):
    workspace.SwitchWorkspace("default")
    workspace.ResetWorkspace()
    net = caffe2_pb2.NetDef(name="net", type=kind, op=body)
    model = Model(net)
    rows = 5  # more than three: weights of FC are packed

    def feed(name, seed, rows):
        model.blobs[name] = np.random.default_rng(seed).normal(size=(rows, 4)).astype(np.float32)
        workspace.FeedBlob(name, model.blobs[name])

    workspace.FeedBlob("half", model.blobs["half"])
    views, seen, watched = {}, [], False
    for name in WEIGHTS:
        feed(name, 2, 4)
    model.blobs["bias"] = np.ones(4, np.float32)
    workspace.FeedBlob("bias", model.blobs["bias"])
    for name in BLOBS:
        feed(name, 1, rows)
    workspace.CreateNet(net)
    for action, *details in [("run", 2), *steps]:
        if action == "run":
            for _ in range(details[0]):
                fits = model.run()
                assert workspace.RunNet("net", allow_fail=True) == fits
                assert len(seen) == 2 * len(body) * watched or not fits
                seen.clear()
                if not fits:
                    # What ran beside the failing operator is not the same in all executors.
                    return
        elif action == "feed":
            feed(*details, rows)
        elif action == "resize":
            rows = details[0]
            for name in BLOBS:
                feed(name, details[1], rows)
        elif action == "feed weights":
            views.pop(details[0], None)
            feed(*details, 4)
        elif action == "update":
            name, _ = details
            workspace.RunOperatorOnce(core.CreateOperator("Scale", [name], [name], scale=0.75))
            model.blobs[name] = model.blobs[name] * np.float32(0.75)
        elif action == "write through a view":
            name, seed = details
            view = views.setdefault(name, runtime.current().view(name))
            model.blobs[name] = np.random.default_rng(seed).normal(size=(4, 4)).astype(np.float32)
            view[:] = model.blobs[name]
        elif action == "watch":
            seen.clear()
            watcher = (lambda op, done: seen.append(op)) if details[0] else None
            runtime.current().observe_net("net", watcher)
            watched = details[0]
        elif action == "delete":
            workspace.RemoveBlob(details[0])
            model.blobs.pop(details[0], None)
        elif details[0] in model.blobs:
            assert_close(workspace.FetchBlob(details[0]), model.blobs[details[0]])
    for name, value in model.blobs.items():
        assert_close(workspace.FetchBlob(name), value)
