"""Operators that show blobs and say something about a workspace: Print, Summarize, Fail, Free,
GetAllBlobNames."""

import numpy as np
import pytest

from caffe2.python import core, workspace

F4 = np.float32
X = np.arange(12, dtype=F4).reshape(3, 4) / 3
# Recorded from the original.
PRINTED = (
    "Tensor x of type float. Dims: (3,4,): "
    "0,0.333333,0.666667,1,1.33333,1.66667,2,2.33333,2.66667,3,3.33333,3.66667\n"
)
SUMMARY = "0 3.66667 1.83333 1.20185\n"


@pytest.fixture(autouse=True)
def fresh_workspace(tmp_path):
    workspace.SwitchWorkspace("default")
    workspace.ResetWorkspace(str(tmp_path))
    yield
    workspace.ResetWorkspace()


def run(type, inputs, outputs, **args):
    workspace.RunOperatorOnce(core.CreateOperator(type, inputs, outputs, **args))


def refused(text, *call, **args):
    with pytest.raises(RuntimeError, match=text) as caught:
        run(*call, **args)
    assert caught.value.operator == call[0]


@pytest.mark.parametrize(
    ("value", "args", "line"),
    [
        (X, {}, PRINTED),
        (X, {"limit": 2}, "Tensor x of type float. Dims: (3,4,): 0,0.333333\n"),
        (X, {"limit": 0}, PRINTED),
        (np.array([1, -2]), {}, "Tensor x of type long int. Dims: (2,): 1,-2\n"),
        (np.array(2, np.int32), {}, "Tensor x of type int. Dims: (): 2\n"),
        (np.array([True, False]), {}, "Tensor x of type bool. Dims: (2,): 1,0\n"),
        (
            np.array([b"a", b"bc"], object),
            {},
            "Tensor x of type std::basic_string<char>. Dims: (2,): a,bc\n",
        ),
        (np.zeros((0, 3), F4), {}, "Tensor x of type float. Dims: (0,3,): \n"),
        (
            np.array([1e-10, 1e20, -0.0, 123456789, np.nan, np.inf]),
            {},
            "Tensor x of type double. Dims: (6,): 1e-10,1e+20,-0,1.23457e+08,nan,inf\n",
        ),
        # The original prints characters, and nothing for these types.
        (np.array([200], np.uint8), {}, "Tensor x of type unsigned char. Dims: (1,): 200\n"),
        (np.array([-3], np.int8), {}, "Tensor x of type int8. Dims: (1,): -3\n"),
        (np.array([1.5, -2], np.float16), {}, "Tensor x of type float16. Dims: (2,): 1.5,-2\n"),
        ("text", {}, "Blob of type: std::string\n"),
    ],
)
def test_print(capfd, value, args, line):
    workspace.FeedBlob("x", value)
    run("Print", ["x"], [], **args)
    assert capfd.readouterr().err == line


def test_print_shows_1000_elements_and_every_nth_run(capfd):
    workspace.FeedBlob("x", np.arange(3000, dtype=np.int32))
    net = core.Net("prints")
    net.Print("x", [], every_n=3)
    workspace.CreateNet(net)
    workspace.RunNet(net, 4)
    lines = capfd.readouterr().err.splitlines()
    assert [line.split(": ")[-1].split(",")[-1] for line in lines] == ["999", "999"]


def test_reports_in_files(tmp_path, capfd):
    for name in ("x", "gpu_0/x"):
        workspace.FeedBlob(name, X)
        for round_ in range(2):  # each net begins anew
            net = core.Net("reports")
            net.Print(name, [], to_file=1)
            net.Summarize(name, [], to_file=1)
            workspace.CreateNet(net)
            workspace.RunNet(net, 2 + round_)
        assert (tmp_path / f"{name}.log").read_text() == 3 * PRINTED.replace(" x", f" {name}")
        assert (tmp_path / f"{name}.summary").read_text() == 3 * SUMMARY
    assert capfd.readouterr().err == ""


def test_reports_stay_in_their_folder(tmp_path):
    workspace.ResetWorkspace(str(tmp_path / "root"))
    workspace.FeedBlob("../x", X)
    refused("would leave the root folder", "Print", ["../x"], [], to_file=1)
    workspace.FeedBlob("/x", X)
    run("Print", ["/x"], [], to_file=1)
    assert [path.name for path in tmp_path.iterdir()] == ["root"]
    (tmp_path / "root" / "y.log").mkdir()
    workspace.FeedBlob("y", X)
    refused("y.log' cannot be written", "Print", ["y"], [], to_file=1)


def test_only_reports_in_files_touch_files():
    strict = workspace.Workspace()
    strict.allow_files(False)
    strict.feed_blob("x", X)
    for type_ in ("Print", "Summarize"):
        strict.run(core.CreateOperator(type_, ["x"], []))
        with pytest.raises(RuntimeError, match="reads or writes files"):
            strict.run(core.CreateOperator(type_, ["x"], [], to_file=1))


def test_summarize_as_recorded():
    workspace.FeedBlob("x", X)
    run("Summarize", ["x"], ["y"])
    np.testing.assert_allclose(
        workspace.FetchBlob("y"), F4([0, 3.6666667, 1.8333334, 1.2018504]), rtol=1e-6
    )


def test_fail():
    refused("it is there to fail", "Fail", [], [])
    refused("it is there to fail", "LogFatal", [], [])


def test_a_text_is_fed():
    run("FeedBlob", [], ["text"], value="some text")
    assert workspace.FetchBlob("text") == b"some text"


def test_free():
    workspace.FeedBlob("x", X)
    workspace.FeedBlob("y", "text")
    run("Free", ["x", "y"], ["x", "y"])
    for name in ("x", "y"):
        with pytest.raises(RuntimeError, match="nothing"):
            workspace.FetchBlob(name)
    workspace.FeedBlob("x", X)
    refused("must be", "Free", ["x"], ["z"])
    refused("it has 0 output", "Free", ["x"], [])


def test_all_blob_names():
    workspace.CreateWorkspace("inside", parent="default", reuse=False)
    try:
        workspace.FeedBlob("x", X)
        op = core.CreateOperator("GetAllBlobNames", [], ["names"])
        workspace.RunOperatorOnce(op)
        assert workspace.FetchBlob("names").tolist() == [b"names", b"x"]
        workspace.FeedBlob("y", X, ws="inside")
        workspace.SwitchWorkspace("inside")
        for shared, wanted in [(1, [b"mine", b"names", b"x", b"y"]), (0, [b"mine", b"y"])]:
            run("GetAllBlobNames", [], ["mine"], include_shared=shared)
            assert workspace.FetchBlob("mine").tolist() == wanted
    finally:
        workspace.DeleteWorkspace("inside")
