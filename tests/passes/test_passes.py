"""Rewritten nets compute what they did, with fewer operators."""

import subprocess
import sys

import numpy as np
import pytest

from caffe2 import ops, passes
from caffe2.graph.costs import steps
from caffe2.ops.declaration import Spec
from caffe2.proto import caffe2_pb2
from caffe2.python import core, optimize_for_inference, workspace

RNG = np.random.default_rng(5)
C = 6


def values(*shape):
    return RNG.normal(size=shape).astype(np.float32)


PARAMS = {
    "w": values(C, 3, 3, 3),
    "b": values(C),
    "wt": values(3, C, 2, 2),
    "wf": values(C, 12),
    "gamma": values(C),
    "beta": values(C),
    "mean": values(C),
    "var": np.abs(values(C)) + np.float32(0.3),
    "factor": values(C, 1, 1),
    "term": values(1, C, 1, 1),
    "legacy": values(C),
    "we": values(8, 3, 1, 1),
    "be": values(8),
    "wd": values(8, 1, 3, 3),
    "bd": values(8),
    "wp": values(5, 8, 1, 1),
    "bp": values(5),
}
BN = ("gamma", "beta", "mean", "var")
CONV = core.CreateOperator("Conv", ["x", "w", "b"], ["y"], kernel=3, pad=1)
NORM = core.CreateOperator("SpatialBN", ["y", *BN], ["z"], is_test=1, epsilon=1e-3)
RELU = core.CreateOperator("Relu", ["z"], ["z"])


def net_of(*operators, outputs=("z",)):
    net = caffe2_pb2.NetDef(name="net", op=operators, external_output=outputs)
    written = set()
    for op in operators:
        net.external_input.extend(n for n in op.input if n not in written)
        written.update(op.output)
    return net


def run(net, params, x):
    blobs = {**params, "x": x}
    for op in net.op:
        declaration = ops.find(op.type)
        found = declaration.run(declaration.view_of(op), [blobs[name] for name in op.input])
        blobs.update(zip(op.output, found, strict=True))
    return [blobs[name] for name in net.external_output]


def check(net, types, x=None, without=()):
    """Optimizes; the result has these operators and computes the same."""
    x = values(2, 3, 5, 4) if x is None else x
    params, before = dict(PARAMS), net.SerializeToString()
    optimized, notes = passes.optimize(net, params, without=without)
    assert net.SerializeToString() == before
    assert [op.type for op in optimized.op] == types
    assert all(np.array_equal(params[name], value) for name, value in PARAMS.items())
    for found, expected in zip(run(optimized, params, x), run(net, PARAMS, x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    return optimized, notes


def op(type, inputs, outputs, **args):
    return core.CreateOperator(type, inputs, outputs, **args)


EXPAND = op("Conv", ["x", "we", "be"], ["e"], kernel=1)
DEPTHWISE = op("Conv", ["e", "wd", "bd"], ["z"], kernel=3, pad=1, stride=2, group=8)


@pytest.mark.parametrize(
    "between",
    [(), (op("Relu", ["e"], ["e"]),), (op("Clip", ["e"], ["e"], min=-0.5, max=1.0),)],
    ids=["nothing", "Relu", "Clip"],
)
def test_a_depthwise_convolution_computes_its_input(between):
    net = net_of(EXPAND, *between, DEPTHWISE, op("Relu", ["z"], ["z"]))
    x = values(2, 3, 5, 4)
    x[1, 2, 3, 2] = np.inf  # stays one, unless it is cut off between them
    net.op[-2].name, net.op[-2].device_option.node_name = "down", "here"
    optimized, notes = check(net, ["ExpandDepthwise", "Relu"], x)
    assert (optimized.op[0].name, optimized.op[0].device_option.node_name) == ("down", "here")
    assert notes == ["fuse_depthwise: Conv 'e' computed within Conv 'z'"]
    check(net, [o.type for o in net.op], without=["fuse_depthwise"])


PROJECT = op("Conv", ["z", "wp", "bp"], ["p"], kernel=1)


@pytest.mark.parametrize("clip", [None, "Relu", "Clip"])
def test_three_convolutions_become_one(clip):
    between = {
        None: (),
        "Relu": (op("Relu", ["z"], ["z"]),),
        "Clip": (op("Clip", ["z"], ["c"], min=-0.5, max=0.5),),
    }[clip]
    project = op("Conv", [between[0].output[0] if clip else "z", "wp", "bp"], ["p"], kernel=1)
    net = net_of(EXPAND, op("Relu", ["e"], ["e"]), DEPTHWISE, *between, project, outputs=("p",))
    net.op[-1].name = "last"
    optimized, notes = check(net, ["ExpandDepthwise"])
    assert optimized.op[0].name == "last"
    assert notes == [
        "fuse_depthwise: Conv 'e' computed within Conv 'z'",
        "fuse_depthwise: ExpandDepthwise 'z' computed within Conv 'p'",
    ]


@pytest.mark.parametrize("alone", [{}, {"engine": "REFERENCE"}, {"control_input": ["e"]}])
def test_an_expand_depthwise_that_was_there_takes_a_convolution(alone):
    """Unless that loses what it says; its bounds for one count from now on, and were not meant."""
    group = op("Conv", ["e", "wd", "bd"], ["g"], kernel=3, group=8)
    inputs = ["x", "we", "be", "wd", "bd"]
    made = op("ExpandDepthwise", inputs, ["z"], kernel=3, pad=1, filtered_max=-5.0)
    made.MergeFrom(caffe2_pb2.OperatorDef(**alone))
    net = net_of(EXPAND, group, made, PROJECT, outputs=("e", "g", "p"))
    types = ["Conv", "Conv", "ExpandDepthwise"]
    check(net, [*types, "Conv"] if alone else types)


def test_a_fused_net_costs_what_its_convolutions_cost():
    net = net_of(EXPAND, DEPTHWISE, PROJECT, outputs=("p",))
    known = {name: Spec(value.shape, value.dtype) for name, value in PARAMS.items()}
    known["x"] = Spec((2, 3, 5, 4), np.dtype(np.float32))
    optimized, _ = check(net, ["ExpandDepthwise"])
    flops = [sum(step.flops for step in steps(each, known)) for each in (net, optimized)]
    expand, filtered, project = 8 * 3 * 40, 8 * 9 * 12, 5 * 8 * 12
    assert flops == [2 * (expand + filtered + project)] * 2


@pytest.mark.parametrize(
    "operators, outputs",
    [
        ((PROJECT,), ("z", "p")),
        ((op("Conv", ["z", "wp", "bp"], ["p"], kernel=1, stride=2),), ("p",)),
        ((op("Relu", ["x"], ["x"]), PROJECT), ("p",)),
        ((op("Clip", ["z"], ["z"], max=float("nan")), PROJECT), ("p",)),
        ((op("Conv", ["z", "wp"], ["p"], kernel=1),), ("p",)),
    ],
    ids=["output", "stride", "x changes", "no bound", "no bias"],
)
def test_what_is_seen_of_the_filtered_stays(operators, outputs):
    types = ["ExpandDepthwise", *(o.type for o in operators)]
    check(net_of(EXPAND, DEPTHWISE, *operators, outputs=outputs), types)


@pytest.mark.parametrize(
    "operators, outputs",
    [
        ((EXPAND, DEPTHWISE), ("e", "z")),
        ((EXPAND, DEPTHWISE, op("Relu", ["e"], ["r"])), ("z", "r")),
        ((EXPAND, op("Relu", ["e"], ["x"]), DEPTHWISE), ("x", "z")),
        ((EXPAND, op("Clip", ["e"], ["e"], min=float("nan")), DEPTHWISE), ("z",)),
        ((op("Conv", ["x", "we", "be"], ["e"], kernel=1, pad=1), DEPTHWISE), ("z",)),
        ((op("Conv", ["x", "we", "be"], ["e"], kernel=1, engine="IM2COL"), DEPTHWISE), ("z",)),
        ((op("Conv", ["x", "we"], ["e"], kernel=1), DEPTHWISE), ("z",)),
        ((EXPAND, op("Relu", ["x"], ["x"]), DEPTHWISE), ("x", "z")),
        ((EXPAND, op("Conv", ["e", "wd", "bd"], ["x"], kernel=3, group=8)), ("x",)),
    ],
    ids=[
        "output",
        "two readers",
        "renamed",
        "no bound",
        "pad",
        "engine",
        "no bias",
        "x changes",
        "written in place",
    ],
)
def test_what_is_seen_of_two_convolutions_stays(operators, outputs):
    check(net_of(*operators, outputs=outputs), [o.type for o in operators])


def test_batch_norm_becomes_a_part_of_the_convolution():
    optimized, notes = check(net_of(CONV, NORM, RELU), ["Conv", "Relu"])
    assert notes == ["fold_affine: SpatialBN 'z' folded into Conv 'y'"]
    assert list(optimized.external_input) == ["x", "w_folded", "b_folded"]


@pytest.mark.parametrize(
    "layer, x",
    [
        (op("Conv", ["x", "w"], ["y"], kernel=3, stride=2), None),
        (op("FC", ["x", "wf", "b"], ["y"]), values(4, 12)),
    ],
    ids=["Conv without bias", "FC"],
)
def test_layers_that_take_a_batch_norm(layer, x):
    check(net_of(layer, NORM), [layer.type], x)


def test_a_chain_of_scales_and_shifts():
    check(
        net_of(
            CONV,
            op("SpatialBN", ["y", *BN], ["y"], is_test=1),
            op("Mul", ["y", "factor"], ["y"]),
            op("Add", ["y", "term"], ["u"]),
            op("Sub", ["u", "legacy"], ["v"], broadcast=1, axis=1),
            op("AffineChannel", ["v", "gamma", "beta"], ["z"]),
        ),
        ["Conv"],
    )


def test_weights_that_two_layers_share_stay_for_the_other():
    second = op("Conv", ["x", "w", "b"], ["other"], kernel=3, pad=1)
    check(net_of(CONV, second, NORM, outputs=("z", "other")), ["Conv", "Conv"])


@pytest.mark.parametrize(
    "operators, outputs",
    [
        ([CONV, NORM], ("z", "y")),
        ([CONV, NORM, op("Relu", ["y"], ["u"])], ("z", "u")),
        ([CONV, op("SpatialBN", ["y", *BN], ["z"], is_test=1, order="NHWC")], None),
        ([op("Relu", ["x"], ["w"]), CONV, NORM], None),
        ([CONV, op("Relu", ["x"], ["z"]), op("Relu", ["z"], ["u"]), NORM], ("z", "u")),
        ([CONV, op("Mul", ["y", "legacy"], ["z"], broadcast=1, axis=2)], None),
        ([CONV, op("Add", ["y", "y"], ["z"])], None),
    ],
    ids=[
        "wanted itself",
        "read by another operator",
        "another order",
        "weights that are computed",
        "the name is in use in between",
        "another axis",
        "not constant",
    ],
)
def test_what_has_to_stay(operators, outputs):
    net = net_of(*operators, outputs=outputs or ("z",))
    optimized, notes = passes.optimize(net, dict(PARAMS))
    assert [o.type for o in optimized.op] == [o.type for o in operators]
    assert notes == []


def test_identities_go():
    dropout = op("Dropout", ["z"], ["d"], is_test=1)
    _, notes = check(
        net_of(CONV, NORM, dropout, op("Copy", ["d"], ["out"]), outputs=("out",)), ["Conv"]
    )
    assert notes[0] == "drop_identities: Dropout 'd' taken out"
    # The input of the net is no operator's output: the readers take it.
    check(net_of(op("Copy", ["x"], ["u"]), op("Relu", ["u"], ["z"])), ["Relu"])
    # Written while the copy is still read.
    kept = net_of(op("Copy", ["x"], ["u"]), op("Relu", ["x"], ["x"]), op("Add", ["u", "x"], ["z"]))
    check(kept, ["Copy", "Relu", "Add"])
    check(net_of(op("Copy", ["x"], ["z"])), ["Copy"])


def test_constants_are_computed_and_dead_code_goes():
    optimized, notes = check(
        net_of(
            op("Add", ["gamma", "beta"], ["sum"]),
            op("Relu", ["sum"], ["more"]),
            op("Mul", ["x", "more"], ["z"], broadcast=1),
            op("Relu", ["x"], ["unused"]),
        ),
        ["Mul"],
        values(3, C),
    )
    assert list(optimized.external_input) == ["x", "more"]
    assert "drop_dead_code: Relu 'unused' taken out: nothing reads it" in notes


def test_blobs_that_a_quoted_net_may_read_stay():
    step = str(net_of(op("Relu", ["y"], ["h"]), outputs=("h",)))
    recurrent = op("RecurrentNetwork", ["x"], ["h", "steps"], step_net=step)
    net = net_of(CONV, op("Relu", ["x"], ["r"]), recurrent, NORM)
    optimized, _ = passes.optimize(net, dict(PARAMS), without=["drop_dead_code"])
    assert [o.type for o in optimized.op] == ["Conv", "Relu", "RecurrentNetwork", "SpatialBN"]


def test_weights_that_a_nested_net_reads_stay():
    branch = net_of(op("Mul", ["x", "gamma"], ["z"], broadcast=1))
    net = net_of(CONV, NORM, op("If", ["yes"], [], then_net=branch))
    net.external_input.append("yes")
    optimized, notes = passes.optimize(net, dict(PARAMS))
    assert "gamma" in optimized.external_input
    assert [o.type for o in optimized.op] == ["Conv", "SpatialBN", "If"], notes


def test_owned_weights_go_when_others_take_their_place():
    params = dict(PARAMS)
    optimized, _ = passes.optimize(net_of(CONV, NORM, RELU), params, owned=True)
    assert set(PARAMS) - set(params) == {"w", "b"} and "w_folded" in params
    assert list(optimized.external_input) == ["x", "w_folded", "b_folded"]
    other = op("Conv", ["x", "w", "b"], ["other"], kernel=3, pad=1)
    for net in (net_of(CONV, NORM, other), net_of(CONV, NORM, outputs=("z", "w", "b"))):
        params = dict(PARAMS)
        optimized, _ = passes.optimize(net, params, owned=True)
        assert set(PARAMS) <= set(params) and "w_folded" in optimized.external_input


def test_passes_can_be_left_out():
    check(net_of(CONV, NORM), ["Conv", "SpatialBN"], without=["fold_affine"])
    with pytest.raises(ValueError, match="no pass is called fold_all; there are drop_identities"):
        passes.optimize(net_of(CONV), {}, without=["fold_all"])
    with pytest.raises(ValueError, match="does not compute prob"):
        passes.optimize(net_of(CONV), {}, ["prob"])


@pytest.fixture
def model():
    init = caffe2_pb2.NetDef(name="init")
    for name in ("w", "b", *BN):
        init.op.append(
            op("GivenTensorFill", [], [name], shape=PARAMS[name].shape, values=PARAMS[name])
        )
    net = net_of(CONV, NORM, RELU)
    x = values(1, 3, 8, 8)
    return init, net, x, run(net, PARAMS, x)[0]


def test_a_predictor_folds(model):
    init, net, x, expected = model
    predictor = workspace.Predictor(init, net)
    np.testing.assert_allclose(predictor.run([x])[0], expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match=r"'gamma' has become a part.*optimize=False"):
        predictor.run({"x": x, "gamma": PARAMS["gamma"]})
    # In a list, too, which is for the first inputs where all are filled.
    init.op.append(op("GivenTensorFill", [], ["x"], shape=x.shape, values=x))
    net.external_input[:] = ["gamma", *(name for name in net.external_input if name != "gamma")]
    with pytest.raises(ValueError, match="'gamma' has become a part"):
        workspace.Predictor(init, net).run([PARAMS["gamma"]])
    plain = workspace.Predictor(init, net, optimize=False)
    found = plain.run({"x": x, "gamma": PARAMS["gamma"] * 0})[0]
    np.testing.assert_allclose(
        found, run(net, {**PARAMS, "gamma": PARAMS["gamma"] * 0}, x)[0], rtol=1e-5, atol=1e-5
    )


def test_optimize_for_inference_in_a_workspace(model):
    init, net, x, expected = model
    workspace.ResetWorkspace()
    workspace.RunNetOnce(init)
    optimized = optimize_for_inference.optimize(net, ["x"], ["z"])
    assert [o.type for o in optimized.op] == ["Conv", "Relu"]
    workspace.FeedBlob("x", x)
    workspace.RunNetOnce(optimized)
    np.testing.assert_allclose(workspace.FetchBlob("z"), expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="does not read data"):
        optimize_for_inference.optimize(net, ["data"], ["z"])


def test_c9_the_command(model, tmp_path):
    init, net, x, expected = model
    (tmp_path / "init.pb").write_bytes(init.SerializeToString())
    (tmp_path / "predict.pb").write_bytes(net.SerializeToString())
    command = (
        "-m caffe2.python.utils optimize_net --init_model init.pb --predict_model predict.pb "
        "--output_model fused.pb --fuse_bn_into_conv"
    )
    done = subprocess.run(
        [sys.executable, *command.split()], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "SpatialBN 'z' folded into Conv 'y'\n3 operators before, 2 after" in done.stdout
    fused = caffe2_pb2.ModelDef.FromString((tmp_path / "fused.pb").read_bytes())
    found = workspace.Predictor(fused.net[0], fused.net[1]).run([x])[0]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
