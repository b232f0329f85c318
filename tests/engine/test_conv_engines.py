"""Kernels asked for by name, and weights that are kept in a kernel's order."""

import numpy as np
import pytest

from caffe2.python import core, workspace


@pytest.fixture(autouse=True)
def fresh_workspace():
    workspace.SwitchWorkspace("default")
    workspace.ResetWorkspace()


ENGINES = ["", "DIRECT", "IM2COL", "DEPTHWISE", "WINOGRAD", "WINOGRAD_2", "WINOGRAD_4"]
# channels, filters, group, size, window, stride, pad
SHAPES = {
    "3x3": (19, 33, 1, 13, 3, 1, 1),
    "3x3, small map": (48, 32, 1, 7, 3, 1, 1),
    "3x3, strided": (16, 32, 1, 14, 3, 2, 1),
    "1x1": (40, 24, 1, 9, 1, 1, 0),
    "first layer": (3, 32, 1, 30, 7, 2, 3),
    "depthwise": (35, 35, 35, 12, 3, 1, 1),
    "depthwise 5x5, strided": (32, 32, 32, 15, 5, 2, 2),
    "groups": (32, 64, 2, 9, 3, 1, 1),
}


def allowed(engine, group, window, stride):
    if engine == "DEPTHWISE":
        return group > 2
    if engine.startswith("WINOGRAD"):
        return group == 1 and window == 3 and stride == 1
    return engine != "DIRECT" or group <= 2


def convolution(x, w, b, group, stride, pad):
    """In double precision, one tap of the window after the other."""
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    n, c, _, window = w.shape
    size = (x.shape[2] - window) // stride + 1
    y = np.zeros((x.shape[0], group, n // group, size, size))
    for i in range(window):
        for j in range(window):
            rows, columns = i + stride * (size - 1) + 1, j + stride * (size - 1) + 1
            part = x[:, :, i:rows:stride, j:columns:stride].reshape(len(x), group, c, size, size)
            tap = w[:, :, i, j].reshape(group, n // group, c).astype(np.float64)
            y += np.einsum("gkc,ngchw->ngkhw", tap, part)
    return y.reshape(len(x), n, size, size) + b[:, None, None]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shape", SHAPES)
def test_engine_of_conv(shape, engine):
    c, k, group, size, window, stride, pad = SHAPES[shape]
    random = np.random.default_rng(5)
    x = random.uniform(-1, 1, (2, c, size, size)).astype(np.float32)
    w = random.uniform(-1, 1, (k, c // group, window, window)).astype(np.float32)
    b = random.uniform(-1, 1, k).astype(np.float32)
    for name, value in (("x", x), ("w", w), ("b", b)):
        workspace.FeedBlob(name, value)
    conv = core.CreateOperator(
        "Conv",
        ["x", "w", "b"],
        "y",
        kernel=window,
        stride=stride,
        pad=pad,
        group=group,
        engine=engine,
    )
    if not allowed(engine, group, window, stride):
        with pytest.raises(RuntimeError, match=f"engine '{engine}' has no kernel"):
            workspace.RunOperatorOnce(conv)
        return
    workspace.RunOperatorOnce(conv)
    want = convolution(x, w, b, group, stride, pad)
    error = np.abs(workspace.FetchBlob("y") - want).max() / np.abs(want).max()
    assert error < (2e-5 if "WINOGRAD" in engine or engine == "" else 4e-6)


def test_engine_of_conv_gradient():
    """An engine without a kernel for a gradient leaves it to the usual one."""
    random = np.random.default_rng(6)
    x = random.uniform(-1, 1, (2, 16, 9, 9)).astype(np.float32)
    w = random.uniform(-1, 1, (24, 16, 3, 3)).astype(np.float32)
    dy = random.uniform(-1, 1, (2, 24, 9, 9)).astype(np.float32)
    for name, value in (("x", x), ("w", w), ("dy", dy)):
        workspace.FeedBlob(name, value)
    got = {}
    for engine in ("REFERENCE", "WINOGRAD", "WINOGRAD_2", "DIRECT", "DEPTHWISE"):
        workspace.RunOperatorOnce(
            core.CreateOperator(
                "ConvGradient",
                ["x", "w", "dy"],
                ["dw", "db", "dx"],
                kernel=3,
                pad=1,
                engine=engine,
            )
        )
        got[engine] = [workspace.FetchBlob(name) for name in ("dw", "db", "dx")]
    for engine, values in got.items():
        for value, want in zip(values, got["REFERENCE"], strict=True):
            assert np.abs(value - want).max() < 2e-5 * np.abs(want).max(), engine


@pytest.mark.parametrize("rows", [1, 3, 4, 17])
@pytest.mark.parametrize("units", [1, 33])
def test_weights_of_fc_are_packed_anew_when_written(rows, units):
    random = np.random.default_rng(7)
    x = random.uniform(-1, 1, (rows, 600)).astype(np.float32)
    workspace.FeedBlob("x", x)
    workspace.FeedBlob("b", np.ones(units, np.float32))
    net = core.Net("fc")
    net.FC(["x", "w", "b"], "y")
    first = True
    for seed in (1, 2):
        w = np.random.default_rng(seed).uniform(-1, 1, (units, 600)).astype(np.float32)
        workspace.FeedBlob("w", w)
        if first:
            workspace.CreateNet(net)
            first = False
        runs = []
        for _ in range(3):
            workspace.RunNet(net)
            runs.append(workspace.FetchBlob("y"))
        want = x.astype(np.float64) @ w.T.astype(np.float64) + 1
        assert np.abs(runs[0] - want).max() < 2e-5 * np.abs(want).max()
        for y in runs[1:]:
            np.testing.assert_array_equal(y, runs[0])


@pytest.mark.parametrize(
    ("kind", "x", "w", "args"),
    [
        ("Conv", (2, 5, 9, 9), (20, 5, 3, 3), {"kernel": 3}),
        ("Conv", (2, 5, 6, 6), (20, 5, 1, 1), {"kernel": 1}),
        ("Conv", (2, 20, 6, 6), (20, 1, 3, 3), {"kernel": 3, "group": 20}),
        ("FC", (5, 7), (20, 7), {}),
    ],
)
def test_each_run_reads_the_weights_that_the_step_before_wrote(kind, x, w, args):
    got = {}
    for engine in ("", "REFERENCE"):
        workspace.FeedBlob("rate", np.float32([-0.01]))
        workspace.FeedBlob("one", np.ones(1, np.float32))
        for name, shape in (("x", x), ("w", w), ("b", w[:1])):
            value = np.random.default_rng(len(shape)).uniform(-1, 1, shape)
            workspace.FeedBlob(name, value.astype(np.float32))
        net = core.Net("step")
        net.Proto().op.extend(
            core.CreateOperator(*described, engine=engine, **more)
            for *described, more in (
                (kind, ["x", "w", "b"], ["y"], args),
                (kind + "Gradient", ["x", "w", "y"], ["dw", "db", "dx"], args),
                ("WeightedSum", ["w", "one", "dw", "rate"], ["w"], {}),
            )
        )
        workspace.CreateNet(net)
        got[engine] = []
        for _ in range(4):
            workspace.RunNet(net)
            got[engine].append(workspace.FetchBlob("y"))
    for before, now in zip(got[""], got[""][1:], strict=False):
        assert np.abs(now - before).max() > 1e-2 * np.abs(now).max()
    for value, want in zip(got[""], got["REFERENCE"], strict=True):
        assert np.abs(value - want).max() < 2e-5 * np.abs(want).max()


@pytest.mark.parametrize("lost", [np.nan, np.inf])
@pytest.mark.parametrize("engine", ["DIRECT", "IM2COL", "WINOGRAD_2", "WINOGRAD_4"])
def test_how_far_one_value_that_is_no_number_reaches(engine, lost):
    x = np.ones((2, 32, 24, 24), np.float32)
    places = [(0, 0), (11, 12), (23, 8)]
    for row, column in places:
        x[0, 5, row, column] = lost
    workspace.FeedBlob("x", x)
    workspace.FeedBlob("w", np.full((32, 32, 3, 3), 0.5, np.float32))
    operator = core.CreateOperator("Conv", ["x", "w"], ["y"], kernel=3, pad=1, engine=engine)
    workspace.RunOperatorOnce(operator)
    whole = np.isfinite(workspace.FetchBlob("y"))
    assert whole[1].all()
    rows, columns = np.mgrid[:24, :24]
    away = [np.maximum(abs(rows - row), abs(columns - column)) for row, column in places]
    distance = np.minimum.reduce(away)
    assert not whole[0][:, distance <= 1].any()
    reach = {"WINOGRAD_4": 4, "WINOGRAD_2": 2}.get(engine, 1)
    assert whole[0][:, distance > reach].all()
