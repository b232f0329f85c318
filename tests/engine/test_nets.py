"""Running nets through the old API: order, errors, bodies, random numbers, threads."""

import numpy as np
import pytest

from caffe2 import _native
from caffe2.python import core, workspace
from caffe2.runtime.engine import new_workspace


@pytest.fixture(autouse=True)
def fresh_workspace():
    workspace.SwitchWorkspace("default")
    workspace.ResetWorkspace()


def feed(**arrays):
    for name, array in arrays.items():
        workspace.FeedBlob(name, np.float32(array))


def test_a_net_is_created_once_and_run_often():
    feed(x=[-1, 2])
    net = core.Net("called_once")
    net.Relu("x", "y")
    assert workspace.CreateNet(net) is True
    assert workspace.RunNet(net.Name()) is True
    np.testing.assert_array_equal(workspace.FetchBlob("y"), [0, 2])
    feed(x=[[5, -5, 1]])
    workspace.RunNet(net, 2)
    np.testing.assert_array_equal(workspace.FetchBlob("y"), [[5, 0, 1]])
    with pytest.raises(RuntimeError, match="exists already"):
        workspace.CreateNet(net)
    workspace.CreateNet(net, overwrite=True)
    with pytest.raises(RuntimeError, match=r"no net 'called_one'.*Did you mean called_once"):
        workspace.RunNet("called_one")
    feed(x=[3, -3])
    workspace.RunNet(net, 0)
    np.testing.assert_array_equal(workspace.FetchBlob("y"), [[5, 0, 1]])
    with pytest.raises(ValueError, match="num_iter is -1; a net runs 0 times or more"):
        workspace.RunNet(net, -1)
    with pytest.raises(TypeError, match="'str' object cannot be interpreted as an integer"):
        workspace.RunNet(net, "3")


def test_errors_name_operator_blob_and_the_line_of_the_user():
    feed(x=[[1, 2, 3]], w=[[1, 2]], b=[0])
    net = core.Net("wrong_fc")
    net.Relu("x", "x2")
    net.FC(["x2", "w", "b"], "y")
    with pytest.raises(RuntimeError) as caught:
        workspace.RunNetOnce(net)
    error = caught.value
    assert isinstance(error, _native.EngineError)
    assert (error.operator, error.index, error.net) == ("FC", 1, net.Name())
    assert error.code == "invalid argument"
    text = str(error)
    assert text.startswith("Operator 1 (FC) of net 'wrong_fc")
    assert "input 0 (X) 'x2' has shape (1, 3), 3 features from axis 1 on, but" in text
    assert "input 1 (W) 'w' has shape (1, 2), which takes 2" in text
    assert "test_nets.py:" in text
    assert workspace.HasBlob("y")  # the net's outputs exist, unwritten
    with pytest.raises(RuntimeError, match="holds nothing"):
        workspace.FetchBlob("y")


@pytest.mark.parametrize("kind", ["simple", "dag"])
def test_outputs_of_a_net_are_written_or_given(kind):
    feed(x=[1], there=[2])
    net = core.Net("outputs")
    net.Relu("x", "y")
    net.Proto().type = kind
    net.Proto().external_output[:] = ["y", "x"]
    assert workspace.CreateNet(net) is True
    for name, near in (("there", ""), ("yy", ". Did you mean y, x?")):
        net.Proto().external_output[:] = ["y", name]
        with pytest.raises(RuntimeError) as error:  # as in the original, whatever there is
            workspace.CreateNet(net, overwrite=True)
        assert str(error.value) == (
            f"Net '{net.Name()}' declares '{name}' as an output, but no operator writes it{near}"
        )
    assert workspace.RunNet(net.Name()) is True  # the one that was there before


def test_input_blobs_are_made_for_a_net_that_is_made():
    net = core.Net("with_inputs")
    net.Relu("late", "y")
    feed(there=[1])
    with pytest.raises(TypeError, match="input_blobs is a list of names, not one name: 'late'"):
        workspace.CreateNet(net, input_blobs="late")
    net.Sum(["late", "nowhere"], "z")
    with pytest.raises(RuntimeError, match="nowhere"):
        workspace.CreateNet(net, input_blobs=["late", "there", "late"])
    assert workspace.Blobs() == ["there"]
    np.testing.assert_array_equal(workspace.FetchBlob("there"), [1])
    workspace.CreateNet(net, input_blobs=["late", "nowhere", "there"])
    feed(late=[-1, 1], nowhere=[5, 5])
    workspace.RunNet(net)
    np.testing.assert_array_equal(workspace.FetchBlob("z"), [4, 6])


def test_shapes_of_what_the_workspace_holds():
    feed(x=np.zeros((2, 3)), w=np.zeros((4, 3)), b=np.zeros(4))
    workspace.FeedBlob("text", "no tensor")
    workspace.FeedBlob("strings", np.array(["a", "b"]))
    workspace.FeedBlob("i", np.zeros((0, 5), np.int64))
    workspace.CreateBlob("empty")
    net = core.Net("shapes")
    net.FC(["x", "w", "b"], "y")
    net.Relu("empty", "unknown")
    shapes, types = workspace.InferShapesAndTypes([net])
    assert shapes == {
        "x": [2, 3], "w": [4, 3], "b": [4], "strings": [2], "i": [0, 5], "y": [2, 4]
    }  # fmt: skip
    assert types == {"x": 1, "w": 1, "b": 1, "strings": 4, "i": 10, "y": 1}
    given = {"x": [7, 3], "w": [4, 3], "b": [4]}
    assert workspace.InferShapesAndTypes([net], given)[0]["y"] == [7, 4]
    with pytest.raises(ValueError, match=r"blob 'x' is given shape \(-2, 3\)"):
        workspace.InferShapesAndTypes([net], {**given, "x": [-2, 3]})


def test_a_gradient_has_the_shape_of_its_blob():
    """Also where the operator that makes it would need values to know."""
    feed(x=np.zeros((2, 3)), y=np.zeros((2, 1)))
    net = core.Net("joined")
    joined, _ = net.Concat(["x", "y"], ["joined", "sizes"], axis=1)
    net.AddGradientOperators([joined])
    shapes = workspace.InferShapesAndTypes([net])[0]
    assert shapes["x_grad"] == [2, 3] and shapes["y_grad"] == [2, 1]


@pytest.mark.parametrize(
    ("flags", "error", "text"),
    [
        (["x", "--caffe2_omp_num_threads=-1"], ValueError, "needs a number of threads, not '-1'"),
        (["x", "--caffe2_omp_num_threads=99999999999999"], ValueError, r"0 \(all cores\) to 1024"),
        (["x", "--caffe2_omp_num_threads=" + "9" * 5000], ValueError, "needs a number of threads"),
        (["x", "--caffe2_omp_num_threads=1025"], ValueError, "1025 threads are asked for"),
        (["x", b"--\xff"], ValueError, r"a flag is UTF-8 text, which b'--\\xff' is not"),
        (["x", "-v"], ValueError, "flags look like --name=value; found '-v'"),
        (["x", 3], TypeError, "a flag is a str, not int: 3"),
        ("--caffe2", TypeError, "flags are a list, the name of the program first"),
    ],
)
def test_flags_that_are_none(flags, error, text):
    with pytest.raises(error, match=text):
        workspace.GlobalInit(flags)


def test_the_operator_that_makes_infinities_is_found_when_asked_for():
    feed(one=[1], zero=[0])
    net = core.Net("divides")
    net.Div(["one", "zero"], "infinite")
    net.Copy("infinite", "copy")
    workspace.CreateNet(net)
    flag = "--caffe2_operator_throw_if_fp_exceptions"
    try:
        workspace.GlobalInit(["caffe2", f"{flag}=1"])
        for run in (workspace.RunNet, workspace.RunNetOnce):
            with pytest.raises(RuntimeError, match=r"'infinite' holds inf.*one, zero") as caught:
                run(net)
            assert isinstance(caught.value.__cause__, FloatingPointError)
        feed(zero=[2])
        assert workspace.RunNet(net) and workspace.RunNetOnce(net)
        # Who is given an infinity has not made it.
        feed(zero=[np.inf], one=[-np.inf])
        assert workspace.RunNet(net)
    finally:
        workspace.GlobalInit(["caffe2", f"{flag}=0"])
    feed(zero=[0], one=[1])
    assert workspace.RunNet(net) and workspace.RunNetOnce(net)
    assert workspace.Nets() == ["divides"]


def test_allow_fail_returns_false():
    feed(x=[1, 2], z=[1])
    net = core.Net("fails")
    net.Sum(["x", "z"], "y")
    workspace.CreateNet(net)
    assert workspace.RunNet(net, allow_fail=True) is False
    net = core.Net("throws")
    net.ThrowException([], [])
    workspace.CreateNet(net)
    with pytest.raises(RuntimeError, match="throws an exception"):
        workspace.RunNet(net, allow_fail=True)


def test_reference_bodies_run_by_name():
    feed(x=[-1, 2, np.nan])
    workspace.RunOperatorOnce(core.CreateOperator("Relu", "x", "native"))
    workspace.RunOperatorOnce(core.CreateOperator("Relu", "x", "numpy", engine="REFERENCE"))
    np.testing.assert_array_equal(workspace.FetchBlob("native")[:2], [0, 2])
    np.testing.assert_array_equal(workspace.FetchBlob("native"), workspace.FetchBlob("numpy"))
    workspace.RunOperatorOnce(core.CreateOperator("Relu", "x", "x", engine="REFERENCE"))
    np.testing.assert_array_equal(workspace.FetchBlob("x")[:2], [0, 2])


def test_errors_of_bodies_are_engine_errors():
    feed(x=[[1, 2]], w=[[1]], b=[0])
    with pytest.raises(RuntimeError, match=r"Operator \(FC\)"):
        workspace.RunOperatorOnce(
            core.CreateOperator("FC", ["x", "w", "b"], "y", engine="REFERENCE")
        )


def test_operators_as_tuples():
    feed(x=[3])
    workspace.RunOperatorOnce(("Scale", ["x"], ["y"], {"scale": 2.0}))
    np.testing.assert_array_equal(workspace.FetchBlob("y"), [6])


def fill_once(seed, threads=1, isa="auto"):
    space = new_workspace(_native.Engine(threads=threads, isa=isa))
    op = core.CreateOperator("GaussianFill", [], "x", shape=[1001])
    op.device_option.random_seed = seed
    space.run_operator(op.SerializeToString())
    return space.fetch("x")


def test_random_numbers_depend_on_the_seed_alone():
    first = fill_once(1)
    for threads in (1, 2, 8):
        for isa in _native.instruction_sets():
            np.testing.assert_array_equal(fill_once(1, threads, isa), first)
    assert np.abs(fill_once(2) - first).max() > 1
    net = core.Net("random")
    with core.DeviceScope(core.DeviceOption(0, random_seed=1)):
        net.GaussianFill([], "a", shape=[10])
        net.GaussianFill([], "b", shape=[10])
    workspace.CreateNet(net)
    workspace.RunNet(net)
    a, b = workspace.FetchBlobs(["a", "b"])
    assert np.abs(a - b).max() > 0.1
    workspace.RunNet(net)
    again = workspace.FetchBlob("a")
    assert np.abs(a - again).max() > 0.1
    workspace.CreateNet(net, overwrite=True)
    workspace.RunNet(net)
    np.testing.assert_array_equal(workspace.FetchBlob("a"), a)


def test_a_workspace_seed_repeats_everything():
    def run():
        space = new_workspace()
        space.random_seed = 11
        results = []
        for _ in range(2):
            op = core.CreateOperator("UniformFill", [], "x", shape=[5], min=0.0, max=1.0)
            space.run_operator(op.SerializeToString())
            results.append(space.fetch("x"))
        return results

    first, second = run(), run()
    np.testing.assert_array_equal(first, second)
    assert np.abs(first[0] - first[1]).max() > 0


def conv_step(threads, isa="auto"):
    space = new_workspace(_native.Engine(threads=threads, isa=isa))
    rng = np.random.default_rng(0)
    for name, shape in {"x": (5, 3, 9, 9), "w": (20, 3, 3, 3), "b": (20,)}.items():
        space.feed(name, rng.standard_normal(shape).astype(np.float32))
    net = core.Net("conv")
    net.Conv(["x", "w", "b"], "y", kernel=3)
    net.ConvGradient(["x", "w", "y"], ["dw", "db", "dx"], kernel=3)
    space.run_net_once(net.Proto().SerializeToString())
    return {name: space.fetch(name) for name in ("y", "dw", "db", "dx")}


def test_results_do_not_depend_on_the_number_of_threads():
    for isa in _native.instruction_sets():
        one = conv_step(1, isa)
        for threads in (2, 8):
            for name, value in conv_step(threads, isa).items():
                np.testing.assert_array_equal(value, one[name], err_msg=name)


def test_new_weights_are_used_whoever_wrote_them():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 2, 4, 4)).astype(np.float32)
    w = rng.standard_normal((3, 2, 1, 1)).astype(np.float32)
    space = new_workspace()
    space.feed("x", x)
    space.feed("w", w)
    space.feed("two", np.float32([2]))
    net = core.Net("conv")
    net.Conv(["x", "w"], "y", kernel=1)
    space.create_net(net.Proto().SerializeToString())
    update = core.CreateOperator("WeightedSum", ["w", "two"], "w").SerializeToString()

    def check(expected):
        space.run_net(net.Name())
        np.testing.assert_allclose(
            space.fetch("y"),
            np.einsum("nchw,kc->nkhw", x, expected[:, :, 0, 0]),
            rtol=1e-5,
            atol=1e-5,
        )

    check(w)
    space.feed("w", w + 1)
    check(w + 1)
    space.run_operator(update)
    check(2 * (w + 1))
    view = space.view("w")
    view[:] = w
    check(w)
    view[:] = 3 * w
    check(3 * w)
    del view
    space.delete_blob("w")
    space.feed("w", -w)
    check(-w)
