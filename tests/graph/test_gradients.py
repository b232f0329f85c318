"""Backward passes: the operators and names of the original, sums, versions, errors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caffe2 import ops
from caffe2.graph.errors import GradientError
from caffe2.graph.printer import operator_line
from caffe2.proto import caffe2_pb2
from caffe2.python import core

TAG = 'device={extra_info: "is_auto_gen_sum_ops:1"}'

# What torch 1.10.2 makes of these nets, operator by operator.
RECORDED = json.loads((Path(__file__).parent / "recorded" / "gradients.json").read_text())


def build(*operators):
    net = core.Net("net")
    for kind, inputs, outputs, *rest in operators:
        getattr(net, kind)(inputs.split(), outputs.split(), **(rest[0] if rest else {}))
    return net


def differentiate(net, ys):
    """The lines of the gradient operators, and the gradients by name."""
    before = len(net.Proto().op)
    gradients = net.AddGradientOperators(ys)
    return [operator_line(op) for op in net.Proto().op[before:]], {
        str(blob): str(gradient) for blob, gradient in gradients.items()
    }


@pytest.mark.parametrize("case", RECORDED, ids=[case["name"] for case in RECORDED])
def test_gradients_are_those_of_the_original(case):
    operators, gradients = differentiate(build(*case["operators"]), case["ys"])
    assert operators == case["gradient_operators"]
    assert gradients == case["gradients"]


def test_gradient_operators_take_device_engine_and_arguments():
    net = core.Net("net")
    with core.DeviceScope(core.DeviceOption(caffe2_pb2.CUDA, 1)):
        net.FC(["x", "w", "b"], "y", axis=2, engine="EE", name="nm", other=3)
    with core.DeviceScope(core.DeviceOption(caffe2_pb2.CPU, 3)):
        operators, _ = differentiate(net, ["y"])
    assert operators == [
        "y_autogen_grad = ConstantFill(y, value=1) device={device_type: 0 device_id: 3}",
        "w_grad, b_grad, x_grad = FCGradient(x, w, y_autogen_grad, axis=2, other=3) engine=EE "
        "device={device_type: 1 device_id: 1}",
    ]
    assert [op.is_gradient_op for op in net.Proto().op] == [False, False, True]
    assert [op.HasField("name") for op in net.Proto().op] == [True, True, True]


def test_gradients_are_references():
    gradients = build(("FC", "x w b", "y")).AddGradientOperators([core.BlobReference("y")])
    assert all(isinstance(item, core.BlobReference) for pair in gradients.items() for item in pair)


def test_row_D7_one_blob_stands_for_a_list():
    for y in ("y", core.BlobReference("y")):
        operators, _ = differentiate(build(("Relu", "x", "y")), y)
        assert operators == [
            "y_autogen_grad = ConstantFill(y, value=1)",
            "x_grad = ReluGradient(y, y_autogen_grad)",
        ]


def test_names_of_losses_stand_for_themselves_in_a_scope():
    net = build(("Relu", "x", "y"))
    with core.NameScope("scope"):
        operators, gradients = differentiate(net, ["y"])
    assert operators[0] == "y_autogen_grad = ConstantFill(y, value=1)"
    assert gradients == {"y": "y_autogen_grad", "x": "x_grad"}


def test_a_given_gradient_counts_beside_those_of_readers():
    net = build(("FC", "d w b", "y"), ("Relu", "y", "z"))
    operators, gradients = differentiate(net, {"z": "zg", "y": "yg"})
    assert operators == [
        "y_grad = ReluGradient(z, zg)",
        f"y_grad = Sum(y_grad, yg) {TAG}",
        "w_grad, b_grad, d_grad = FCGradient(d, w, y_grad)",
    ]
    assert gradients["y"] == "y_grad"


def test_a_given_gradient_is_not_overwritten():
    net = build(("FC", "d w b", "y"), ("Relu", "y", "z"))
    operators, _ = differentiate(net, {"z": "zg", "y": "y_grad"})
    assert operators[:2] == [
        "_y_grad_autosplit_0 = ReluGradient(z, zg)",
        f"_y_grad_autosplit_0 = Sum(_y_grad_autosplit_0, y_grad) {TAG}",
    ]


def test_a_gradient_passed_on_in_place_is_not_overwritten():
    # The gradient of `a` is the blob `e_grad`, which the gradient of Relu would write, too.
    net = build(
        ("FC", "d w b", "e"), ("Relu", "e", "q"), ("Sum", "e a", "e"), ("FC", "e w2 b2", "r"),
        ("Sum", "r q", "s"),
    )  # fmt: skip
    operators, gradients = differentiate(net, ["s"])
    assert operators[2:4] == [
        "_e_grad_autosplit_0 = ReluGradient(q, s_autogen_grad)",
        f"_e_grad_autosplit_0 = Sum(_e_grad_autosplit_0, e_grad) {TAG}",
    ]
    assert (gradients["a"], gradients["e"]) == ("e_grad", "_e_grad_autosplit_0")


def test_a_gradient_that_is_overwritten_too_early_is_an_error():
    # Scale in place turns e_grad into the gradient of e before it; it still is that of a.
    net = build(
        ("FC", "d w b", "a"), ("FC", "d w b", "e"), ("Scale", "e", "e", {"scale": 2.0}),
        ("Sum", "e a", "e"), ("Relu", "e", "y"),
    )  # fmt: skip
    with pytest.raises(GradientError, match="gradient of 'a' is held by e_grad"):
        net.AddGradientOperators(["y"])


def test_a_second_backward_pass_goes_through_the_first():
    net = build(("Relu", "x", "y"))
    net.AddGradientOperators(["y"])
    net.Relu("y", "z")
    operators, _ = differentiate(net, ["z"])
    assert operators == [
        "z_autogen_grad = ConstantFill(z, value=1)",
        "y_grad = ReluGradient(z, z_autogen_grad)",
        "x_grad = ReluGradient(y, y_grad)",
    ]


def test_operators_can_be_skipped():
    net = build(("Relu", "x", "y"), ("Relu", "y", "z"))
    gradients = net.AddGradientOperators(["z"], skip=1)
    assert "x" not in gradients and gradients["y"] == "y_grad"


# -- errors --------------------------------------------------------------------------------


def test_needed_values_that_are_overwritten_are_named_with_their_operators():
    net = build(("Relu", "a", "x"), ("FC", "x w b", "y"), ("Copy", "v", "x"))
    with pytest.raises(RuntimeError) as caught:
        net.AddGradientOperators(["y"])
    text = str(caught.value)
    assert 'needs input "x" at version 0, but currently we have version 1' in text
    site = f" ({__file__}:"
    for part in (
        f"version 0: from #0 Relu{site}",
        f"read by #1 FC{site}",
        f"version 1: from #2 Copy{site}",
        f"The operator is #1 FC{site}",
    ):
        assert part in text


def test_an_output_that_is_overwritten_in_place():
    net = build(("FC", "d w b", "y"), ("Relu", "y", "y"), ("Sigmoid", "y", "y"))
    with pytest.raises(GradientError, match=r'needs output "y" at version 1.*have version 2'):
        net.AddGradientOperators(["y"])


def test_a_blob_called_like_the_gradient_of_another():
    net = build(("Relu", "x", "x_grad"), ("Sigmoid", "x", "q"), ("Sum", "x_grad q", "z"))
    with pytest.raises(GradientError, match=r'(?s)output "x_grad" at version 0.*gradient operator'):
        net.AddGradientOperators(["z"])


def test_a_value_that_is_overwritten_before_use():
    operators = [
        core.CreateOperator(kind, source, target)
        for kind, source, target in (("Relu", "x", "y"), ("Relu", "w", "y"), ("Relu", "y", "z"))
    ]
    with pytest.raises(GradientError, match="wrote version 0, which is overwritten before"):
        core.GradientRegistry.GetBackwardPass(operators, ["z"])


def test_losses_have_to_be_in_the_net():
    net = build(("Relu", "x", "loss"))
    before = net.Proto().SerializeToString()
    with pytest.raises(ValueError, match=r"no blob 'los' to start from; did you mean loss\?"):
        net.AddGradientOperators(["los"])
    with pytest.raises(TypeError, match="ys should either be a list or a dict"):
        net.AddGradientOperators(("loss",))
    assert net.Proto().SerializeToString() == before


@pytest.mark.parametrize(
    ("operator", "text"),
    [
        (("Accuracy", "p l", "y"), "Accuracy is in the way of a gradient: it should not be"),
        (("ReluGradient", "x dx", "y"), "it has no gradient"),
        (("SoftmaxWithLoss", "x l", "y loss"), "gradient of output 'loss' is not provided"),
        (("Relu", "x z", "y"), "does not fit its schema: Relu: has 2 inputs"),
    ],
)
def test_operators_without_a_gradient_are_named(operator, text):
    net = build(("Relu", "q", "x"), operator)
    with pytest.raises(GradientError) as caught:
        net.AddGradientOperators(["y"])
    assert text in str(caught.value)
    assert f"Exception when creating gradient for [{operator[0]}]" in str(caught.value)
    assert f"#1 {operator[0]} ({__file__}:" in str(caught.value)
    assert len(net.Proto().op) == 2


def test_operators_without_a_gradient_do_no_harm_elsewhere():
    net = build(("Accuracy", "x l", "acc"), ("Relu", "x", "y"))
    assert differentiate(net, ["y"])[1]["x"] == "x_grad"


def test_sums_need_one_device():
    net = core.Net("net")
    for index, kind in enumerate(("Relu", "Sigmoid")):
        with core.DeviceScope(core.DeviceOption(caffe2_pb2.CUDA, index)):
            getattr(net, kind)("x", kind)
    net.Sum(["Relu", "Sigmoid"], "s")
    with pytest.raises(GradientError, match=r"gradients of 'x' .* different devices"):
        net.AddGradientOperators(["s"])


@pytest.mark.parametrize(
    ("extra_info", "device"),
    [
        (
            ["a"],
            '{device_type: 1 device_id: 1 extra_info: "a" extra_info: "is_auto_gen_sum_ops:1"}',
        ),
        (["only_keep_is_auto_gen_sum_ops_tag:1"], '{extra_info: "is_auto_gen_sum_ops:1"}'),
    ],
)
def test_sums_are_on_the_device_of_the_operators(extra_info, device):
    net = core.Net("net")
    with core.DeviceScope(core.DeviceOption(caffe2_pb2.CUDA, 1, extra_info=extra_info)):
        net.Relu("x", "a")
        net.Sigmoid("x", "b")
        net.Sum(["a", "b"], "s")
    operators, _ = differentiate(net, ["s"])
    assert operators[-1] == f"x_grad = Sum(x_grad, _x_grad_autosplit_0) device={device}"


def test_a_stop_that_stops_nothing():
    net = build(("Relu", "x", "y"), ("StopGradient", "y", "stopped"), ("Relu", "y", "z"))
    with pytest.raises(ValueError, match="StopGradient's output 'stopped' is orphan"):
        net.AddGradientOperators(["z"])


# -- rules of one's own, sparse gradients ---------------------------------------------------------


@pytest.fixture
def rules():
    """Rules for operators that nobody declared: look-ups and others."""
    registry = core.GradientRegistry
    before = dict(registry.gradient_registry_)

    @registry.RegisterGradient("Look")
    def look(op, grads):
        return [], [core.GradientSlice(op.input[1], grads[0]), None]

    @registry.RegisterGradient("LookSum")
    def look_sum(op, grads):
        values = op.input[0] + "_grad_values"
        made = core.CreateOperator("LookSumGradient", [grads[0], op.input[1]], values)
        return made, [core.GradientSlice(op.input[1], values), None]

    @registry.RegisterGradient("LookUnique")
    def look_unique(op, grads):
        found = core.GradientSlice(op.input[0] + "_grad_indices", op.input[0] + "_grad_values")
        made = core.CreateOperator("LookUniqueGradient", [grads[0], op.input[1]], list(found))
        return [made], [found, None]

    @registry.RegisterGradient("Product")
    def product(op, grads):
        found = [name + "_grad" for name in op.input]
        return [core.CreateOperator("ProductGradient", [grads[0], *op.input], found)], found

    @registry.RegisterGradient("TwoSteps")
    def two_steps(op, grads):
        found = op.input[0] + "_grad"
        return [
            core.CreateOperator("First", grads, found),
            core.CreateOperator("Second", [found, op.input[0]], found),
        ], [found]

    yield registry
    registry.gradient_registry_ = before


def backward(*operators, ys):
    made, gradients = core.GradientRegistry.GetBackwardPass(
        [core.CreateOperator(kind, i.split(), o.split()) for kind, i, o in operators], ys
    )
    return [operator_line(op) for op in made], gradients


def concat(part, names):
    out = f"w_grad_{part}_concat"
    return f"{out}, {out}_split = Concat({names}, axis=0) {TAG}"


@pytest.mark.parametrize(
    ("kinds", "lines"),
    [
        (
            ("Look", "Look"),
            [concat("indices", "j, i"), concat("values", "s_autogen_grad, s_autogen_grad")],
        ),
        (
            ("LookSum", "LookSum"),
            [
                "_w_grad_values_autosplit_0 = LookSumGradient(s_autogen_grad, j)",
                "_w_grad_values_autosplit_1 = LookSumGradient(s_autogen_grad, i)",
                concat("indices", "j, i"),
                concat("values", "_w_grad_values_autosplit_0, _w_grad_values_autosplit_1"),
            ],
        ),
        (
            ("Look", "LookSum"),
            [
                "_w_grad_values_autosplit_0 = LookSumGradient(s_autogen_grad, j)",
                concat("indices", "j, i"),
                concat("values", "_w_grad_values_autosplit_0, s_autogen_grad"),
            ],
        ),
        (
            ("LookUnique", "LookUnique"),
            [
                "_w_grad_indices_autosplit_0, _w_grad_values_autosplit_0 = "
                "LookUniqueGradient(s_autogen_grad, j)",
                "_w_grad_indices_autosplit_1, _w_grad_values_autosplit_1 = "
                "LookUniqueGradient(s_autogen_grad, i)",
                concat("indices", "_w_grad_indices_autosplit_0, _w_grad_indices_autosplit_1"),
                concat("values", "_w_grad_values_autosplit_0, _w_grad_values_autosplit_1"),
            ],
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
def test_sparse_gradients_are_concatenated_as_in_the_original(rules, kinds, lines):
    operators, gradients = backward(
        (kinds[0], "w i", "y"), (kinds[1], "w j", "z"), ("Sum", "y z", "s"), ys=["s"]
    )
    assert operators[1:] == lines
    assert gradients["w"] == ("w_grad_indices_concat", "w_grad_values_concat")
    assert isinstance(gradients["w"], core.GradientSlice)
    assert all(isinstance(part, core.BlobReference) for part in gradients["w"])


def test_one_sparse_gradient_keeps_its_names(rules):
    operators, gradients = backward(("LookSum", "w i", "y"), ys=["y"])
    assert operators[1:] == ["w_grad_values = LookSumGradient(y_autogen_grad, i)"]
    assert gradients["w"] == ("i", "w_grad_values")
    assert backward(("Look", "w i", "y"), ys={"w": core.GradientSlice("a", "b")})[1] == {
        "w": ("a", "b")
    }


def test_sparse_gradients_end_at_operators_that_need_dense_ones(rules):
    with pytest.raises(GradientError, match=r"gradient of output 'w' is sparse \(expected dense\)"):
        backward(("Relu", "u", "w"), ("Look", "w i", "y"), ys=["y"])
    with pytest.raises(GradientError, match=r"gradients of 'w' .* some are sparse and some dense"):
        backward(("Look", "w i", "y"), ("Relu", "w", "z"), ("Sum", "y z", "s"), ys=["s"])


def test_a_blob_read_twice_by_one_operator(rules):
    assert backward(("Product", "x x x", "y"), ys={"y": "g"})[0] == [
        "x_grad, _x_grad_autosplit_0, _x_grad_autosplit_1 = ProductGradient(g, x, x, x)",
        f"x_grad = Sum(x_grad, _x_grad_autosplit_0, _x_grad_autosplit_1) {TAG}",
    ]


def test_gradients_in_several_steps_are_renamed_as_a_whole(rules):
    operators = backward(
        ("TwoSteps", "x", "y"), ("TwoSteps", "x", "z"), ("Sum", "y z", "s"), ys={"s": "g"}
    )[0]
    assert operators == [
        "x_grad = First(g)",
        "x_grad = Second(x_grad, x)",
        "_x_grad_autosplit_0 = First(g)",
        "_x_grad_autosplit_0 = Second(_x_grad_autosplit_0, x)",
        f"x_grad = Sum(x_grad, _x_grad_autosplit_0) {TAG}",
    ]


def test_rules_may_only_read_what_there_is(rules):
    @rules.RegisterGradient("Odd")
    def odd(op, grads):
        return [core.CreateOperator("OddGradient", ["nowhere"], "x_grad")], ["x_grad"]

    with pytest.raises(GradientError, match="OddGradient reads 'nowhere', which is neither"):
        backward(("Odd", "x", "y"), ys=["y"])


def test_gradients_of_one_operator():
    get = core.GradientRegistry.GetGradientForOp
    op = core.CreateOperator("FC", ["x", "w", "b"], "y")
    made, found = get(op, [core.BlobReference("g")])
    assert [operator_line(grad_op) for grad_op in made] == [
        "w_grad, b_grad, x_grad = FCGradient(x, w, g)"
    ]
    assert found == ["x_grad", "w_grad", "b_grad"]
    for wrong in ([None], [core.GradientSlice("i", "v")]):
        with pytest.raises(GradientError, match=r"creating gradient for \[FC\].*output 'y'"):
            get(op, wrong)
    with pytest.raises(GradientError, match="no operator is called 'Unheard'"):
        get(core.CreateOperator("Unheard", "x", "y"), ["g"])


def test_places_of_gradients():
    gradients = ["a", core.GradientSlice("b", "c")]
    assert [core.GetIndexFromGradientList(gradients, name) for name in "acq"] == [0, 1, None]


# -- numbers ---------------------------------------------------------------------------------


def run(net, **blobs):
    """All blobs after the operators of a net ran on their NumPy bodies."""
    for op in net.Proto().op:
        declaration = ops.find(op.type)
        outputs = declaration.run(declaration.view_of(op), [blobs[name] for name in op.input])
        blobs.update(zip(op.output, outputs, strict=True))
    return blobs


def test_gradients_are_right_in_numbers():
    """A small residual net with shared weights and in-place operators, against differences."""
    net = build(
        ("FC", "x w b", "h"), ("Tanh", "h", "t"), ("Sum", "h t", "s"), ("Sigmoid", "s", "s"),
        ("FC", "s w b", "y"), ("Sum", "y s x", "z"), ("AveragedLoss", "z", "loss"),
    )  # fmt: skip
    gradients = net.AddGradientOperators(["loss"])
    random = np.random.default_rng(1)
    sizes = {"x": (2, 3), "w": (3, 3), "b": (3,)}
    values = {name: random.normal(size=size).astype(np.float32) for name, size in sizes.items()}
    found = run(net, **values)
    step = 1e-2
    for name, value in values.items():
        for index in np.ndindex(value.shape):
            nudge = np.zeros_like(value)
            nudge[index] = step
            above, below = (
                run(net, **{**values, name: value + sign * nudge})["loss"] for sign in (1, -1)
            )
            slope = (float(above) - float(below)) / (2 * step)
            # float32 losses near 1 differ by 1e-7, which the step makes 5e-6; curvature adds more
            assert found[str(gradients[name])][index] == pytest.approx(slope, abs=2e-4)


BLOBS = st.integers(0, 5)
OPERATORS = st.lists(
    st.one_of(
        st.tuples(st.just("Scale"), BLOBS, BLOBS, st.sampled_from([-1.0, 2.0, 3.0])),
        st.tuples(st.just("Sum"), st.lists(BLOBS, min_size=1, max_size=3, unique=True), BLOBS),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=200, deadline=None)
@given(OPERATORS, st.lists(BLOBS, min_size=1, max_size=2, unique=True))
def test_gradients_of_random_linear_nets_are_exact(operators, losses):
    """Blobs are read often and overwritten at will.  A step of 1 gives the slope of a linear net
    without error, as all numbers are small integers."""
    net = core.Net("linear")
    net.AddExternalInput(*(f"b{index}" for index in range(6)))
    for kind, sources, target, *scale in operators:
        if kind == "Scale":
            net.Scale(f"b{sources}", f"b{target}", scale=scale[0])
        else:  # only the first input of a sum may be overwritten
            sources.sort(key=lambda index, last=target: index != last)
            net.Sum([f"b{index}" for index in sources], f"b{target}")
    forward = core.Net(net.Proto())
    ys = [f"b{index}" for index in losses]
    try:
        gradients = net.AddGradientOperators(ys)
    except GradientError as error:
        # the two ways in which overwriting is refused
        assert "is held by" in str(error) or "is overwritten before it is used" in str(error)
        return
    values = {f"b{index}": np.float32([index + 1]) for index in range(6)}
    found, before = run(net, **values), run(forward, **values)
    for name, value in values.items():
        after = run(forward, **{**values, name: value + 1})
        slope = sum(float(after[y][0] - before[y][0]) for y in ys)
        if slope:
            assert found[str(gradients[name])][0] == slope
