"""Nets of image layers, drawn at random: what predictors and nets give is what the bodies give.

Inside, tensors are blocked, chains of operators are one step and blobs share memory.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caffe2 import ops
from caffe2.proto import caffe2_pb2
from caffe2.python import core, workspace

CHANNELS = (1, 3, 8, 16, 19, 32)


class Builder:
    """A net under construction, and the shapes of its values."""

    def __init__(self, draw, order):
        self.draw, self.order = draw, order
        self.net = caffe2_pb2.NetDef(name="net")
        self.params = {}
        self.rng = np.random.default_rng(draw(st.integers(0, 2**16)))
        self.values = {"x": (3, 12)}  # channels and size (square) by name
        self.count = 0

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def param(self, *shape):
        name = f"p{len(self.params)}"
        self.params[name] = self.rng.normal(size=shape).astype(np.float32) / np.float32(4)
        return name

    def op(self, type, inputs, outputs, **args):
        self.net.op.append(core.CreateOperator(type, inputs, outputs, **args))

    def source(self, fits=lambda c, size: True):
        return self.draw(st.sampled_from([n for n, value in self.values.items() if fits(*value)]))

    def conv(self):
        kernel, stride = self.draw(st.sampled_from([(1, 1), (3, 1), (3, 2), (5, 1)]))
        x = self.source(lambda c, size: size >= 3)
        c, size = self.values[x]
        depthwise = c > 1 and self.draw(st.booleans())
        k = c if depthwise else self.draw(st.sampled_from(CHANNELS))
        shape = (k, 1 if depthwise else c, kernel, kernel)
        if self.order == "NHWC":
            shape = (shape[0], *shape[2:], shape[1])
        inputs = [x, self.param(*shape)] + ([self.param(k)] if self.draw(st.booleans()) else [])
        y = self.name()
        group = {"group": c} if depthwise else {}
        pad = kernel // 2
        self.op(
            "Conv", inputs, [y], kernel=kernel, stride=stride, pad=pad, order=self.order, **group
        )
        self.values[y] = (k, (size - 1) // stride + 1)

    def inverted(self):
        """What a pass makes one operator of, where nothing else reads what is between."""
        x = self.source(lambda c, size: size >= 3)
        c, size = self.values[x]
        k, stride = self.draw(st.sampled_from(CHANNELS[1:])), self.draw(st.sampled_from([1, 2]))
        shape = (k, c, 1, 1) if self.order == "NCHW" else (k, 1, 1, c)
        e, y = self.name(), self.name()
        weights = [self.param(*shape), self.param(k)]
        self.op("Conv", [x, *weights], [e], kernel=1, order=self.order)
        if self.draw(st.booleans()):
            self.op("Relu", [e], [e])
        shape = (k, 1, 3, 3) if self.order == "NCHW" else (k, 3, 3, 1)
        args = {"kernel": 3, "pad": 1, "stride": stride, "group": k, "order": self.order}
        self.op("Conv", [e, self.param(*shape), self.param(k)], [y], **args)
        self.values[e], self.values[y] = (k, size), (k, (size - 1) // stride + 1)

    def pool(self):
        x = self.source(lambda c, size: size >= 2)
        c, size = self.values[x]
        y = self.name()
        kind = self.draw(st.sampled_from(["MaxPool", "AveragePool"]))
        self.op(kind, [x], [y], kernel=2, stride=2, order=self.order)
        self.values[y] = (c, (size - 2) // 2 + 1)

    def unary(self):
        x = self.source()
        kind = self.draw(st.sampled_from(["Relu", "Relu", "Tanh", "Sigmoid", "Clip"]))
        # A new value, in place, or over another one, which may be half of a chain.
        y = self.draw(st.sampled_from([self.name(), *(n for n in (x, *self.values) if n != "x")]))
        args = {"min": -0.5, "max": 1.5} if kind == "Clip" else {}
        self.op(kind, [x], [y], **args)
        self.values[y] = self.values[x]

    def sum(self):
        x = self.source()
        others = [n for n, value in self.values.items() if value == self.values[x] and n != x]
        if not others:
            return
        y = self.name()
        kind = self.draw(st.sampled_from(["Sum", "Add"]))
        self.op(kind, [x, self.draw(st.sampled_from(others))], [y])
        self.values[y] = self.values[x]

    def concat(self):
        x = self.source()
        other = self.source(lambda c, size: size == self.values[x][1])
        y = self.name()
        self.op("Concat", [x, other], [y, f"{y}_info"], order=self.order)
        self.values[y] = (self.values[x][0] + self.values[other][0], self.values[x][1])

    def normalize(self):
        x = self.source()
        c = self.values[x][0]
        names = [self.param(c) for _ in range(4)]
        self.params[names[3]] = np.abs(self.params[names[3]]) + np.float32(0.5)
        y = self.name()
        self.op("SpatialBN", [x, *names], [y], is_test=1, order=self.order)
        self.values[y] = self.values[x]


STEPS = ("conv", "conv", "conv", "inverted", "pool", "unary", "unary", "sum", "concat", "normalize")


@st.composite
def nets(draw):
    builder = Builder(draw, draw(st.sampled_from(["NCHW", "NCHW", "NHWC"])))
    for step in draw(st.lists(st.sampled_from(STEPS), min_size=2, max_size=10)):
        getattr(builder, step)()
    net = builder.net
    net.external_input.extend(["x", *builder.params])
    last = [name for op in net.op for name in op.output][-3:]
    net.external_output.extend(dict.fromkeys(draw(st.sampled_from([last, last[-1:]]))))
    return builder


def expected(builder, x):
    blobs = {**builder.params, "x": x}
    for op in builder.net.op:
        declaration = ops.find(op.type)
        found = declaration.run(declaration.view_of(op), [blobs[name] for name in op.input])
        blobs.update(zip(op.output, found, strict=True))
    return blobs


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4 * max(1, np.abs(wanted).max()))


@settings(max_examples=60, deadline=None)
@given(builder=nets(), batches=st.lists(st.sampled_from([2, 1, 3]), min_size=1, max_size=3))
def test_predictors_and_nets_give_what_the_bodies_give(builder, batches):
    if not builder.net.op:
        return
    init = caffe2_pb2.NetDef(name="init")
    for name, value in builder.params.items():
        init.op.append(
            core.CreateOperator(
                "GivenTensorFill", [], [name], shape=value.shape, values=value.ravel()
            )
        )
    predictor = workspace.Predictor(init, builder.net)
    workspace.ResetWorkspace()
    for name, value in builder.params.items():
        workspace.FeedBlob(name, value)
    for index, n in enumerate(batches):
        shape = (n, 3, 12, 12) if builder.order == "NCHW" else (n, 12, 12, 3)
        x = builder.rng.normal(size=shape).astype(np.float32)
        blobs = expected(builder, x)
        for name, found in zip(builder.net.external_output, predictor.run([x]), strict=True):
            close(found, blobs[name])
        workspace.FeedBlob("x", x)
        if index == 0:
            workspace.CreateNet(builder.net)
        workspace.RunNet("net")
        for name in blobs:
            close(workspace.FetchBlob(name), blobs[name])


@pytest.mark.parametrize("add", ["Sum", "Add"])
def test_a_sum_that_does_not_fit_runs_by_itself(add):
    """Add may broadcast where the fused step cannot; Sum may not, and says so itself."""
    rng = np.random.default_rng(1)
    w, small = rng.normal(size=(16, 3, 1, 1)), rng.normal(size=(1, 16, 1, 1))
    net = caffe2_pb2.NetDef(name="net", external_input=["x", "r", "w"], external_output=["z"])
    net.op.append(core.CreateOperator("Conv", ["x", "w"], ["y"], kernel=1))
    net.op.append(core.CreateOperator(add, ["y", "r"], ["s"]))
    net.op.append(core.CreateOperator("Relu", ["s"], ["z"]))
    init = caffe2_pb2.NetDef(name="init")
    init.op.append(
        core.CreateOperator("GivenTensorFill", [], ["w"], shape=w.shape, values=w.ravel())
    )
    predictor = workspace.Predictor(init, net)
    x = rng.normal(size=(1, 3, 4, 4)).astype(np.float32)
    y = np.einsum("kc,nchw->nkhw", w[:, :, 0, 0], x)
    big = rng.normal(size=y.shape).astype(np.float32)
    close(predictor.run([x, big])[0], np.maximum(y + big, 0))
    if add == "Add":
        for _ in range(2):
            close(predictor.run([x, small.astype(np.float32)])[0], np.maximum(y + small, 0))
    else:
        with pytest.raises(RuntimeError, match=r"Sum.*'r'"):
            predictor.run([x, small.astype(np.float32)])
    close(predictor.run([x, big])[0], np.maximum(y + big, 0))


def test_filters_are_packed_anew_when_they_change():
    rng = np.random.default_rng(2)
    shapes = {"x": (1, 5, 6, 6), "we": (20, 5, 1, 1), "be": (20,), "wd": (20, 1, 3, 3), "bd": (20,)}
    shapes |= {"wp": (7, 20, 1, 1), "bp": (7,)}
    net = caffe2_pb2.NetDef(name="net", external_input=shapes)
    net.op.append(core.CreateOperator("ExpandDepthwise", list(shapes), ["y"], kernel=3, max=1.0))
    workspace.ResetWorkspace()
    fed = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    for name, value in fed.items():
        workspace.FeedBlob(name, value)
    workspace.CreateNet(net)
    body = ops.find("ExpandDepthwise")
    for changed in ("x", "we", "wd", "be", "wp"):
        fed[changed] = rng.normal(size=shapes[changed]).astype(np.float32)
        workspace.FeedBlob(changed, fed[changed])
        workspace.RunNet("net")
        (wanted,) = body.run(body.view_of(net.op[0]), list(fed.values()))
        close(workspace.FetchBlob("y"), wanted)


@pytest.mark.parametrize("channels", [5, 16])  # plain and blocked
@pytest.mark.parametrize("output", ["y", "x"])
def test_an_inverted_residual_adds_its_input(channels, output):
    rng = np.random.default_rng(4)
    shapes = {"we": (40, channels, 1, 1), "be": (40,), "wd": (40, 1, 3, 3), "bd": (40,)}
    shapes |= {"wp": (channels, 40, 1, 1), "bp": (channels,)}
    params = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    init, net = core.Net("init"), core.Net("predict")
    for name, value in params.items():
        init.GivenTensorFill([], name, shape=value.shape, values=value.ravel())
    net.AddExternalInput("x", *params)
    net.Conv(["x", "we", "be"], "e", kernel=1)
    net.Relu("e", "e")
    net.Conv(["e", "wd", "bd"], "d", kernel=3, pad=1, group=40)
    net.Relu("d", "d")
    net.Conv(["d", "wp", "bp"], "p", kernel=1)
    net.Add(["p", "x"], output)
    net.Relu(output, "z")
    net.AddExternalOutput("z", output)
    fused, plain = (workspace.Predictor(init, net, optimize=opt) for opt in (True, False))
    image = np.ones((1, channels, 6, 6), np.float32)
    types = [op[0] for op in fused.time_operators([image], 1)]
    assert types == ["ExpandDepthwise", "Add", "Relu"]
    for size in (6, 9):
        x = rng.normal(size=(2, channels, size, size)).astype(np.float32)
        for found, wanted in zip(fused.run([x]), plain.run([x]), strict=True):
            close(found, wanted)
    # What cannot be added on the way is added afterwards, or refused as it ever was.
    wide = rng.normal(size=(1, channels, 6, 6)).astype(np.float32)
    close(fused.run([wide])[0], plain.run([wide])[0])


def test_a_projection_needs_a_bias():
    workspace.ResetWorkspace()
    for name, shape in {"x": (1, 2, 3, 3), "w": (4, 2, 1, 1), "f": (4, 1, 3, 3)}.items():
        workspace.FeedBlob(name, np.ones(shape, np.float32))
    workspace.FeedBlob("b", np.zeros(4, np.float32))
    inputs = ["x", "w", "b", "f", "b", "w"]
    op = core.CreateOperator("ExpandDepthwise", inputs, ["y"], kernel=3)
    with pytest.raises(RuntimeError, match=r"ExpandDepthwise.*'w' is given without a bias"):
        workspace.RunOperatorOnce(op)


def test_without_bounds_infinities_stay_between_two_convolutions():
    workspace.ResetWorkspace()
    for name, shape in {"we": (4, 2, 1, 1), "wd": (4, 1, 3, 3)}.items():
        workspace.FeedBlob(name, np.full(shape, 0.5, np.float32))
    workspace.FeedBlob("b", np.zeros(4, np.float32))
    workspace.FeedBlob("x", np.array([[[[np.inf]], [[1]]]], np.float32))
    op = core.CreateOperator("ExpandDepthwise", ["x", "we", "b", "wd", "b"], ["y"], kernel=3, pad=1)
    workspace.RunOperatorOnce(op)
    np.testing.assert_array_equal(workspace.FetchBlob("y"), np.full((1, 4, 1, 1), np.inf))
