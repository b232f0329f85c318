"""The program `caffe2` on small models: what it prints, writes and exits with."""

import json

import numpy as np
import pytest

from caffe2 import cli
from caffe2.graph.files import load_net, save_message, save_net
from caffe2.proto import caffe2_pb2
from caffe2.python import core

W = np.float32([[1, 2], [3, 4], [5, 6]])


def build(weights=W):
    init, net = core.Net("init"), core.Net("predict")
    init.GivenTensorFill([], "w", shape=weights.shape, values=weights.ravel().tolist())
    init.GivenTensorFill([], "b", shape=[3], values=[0.5, -0.5, 0.0])
    net.FC(["x", "w", "b"], "h")
    net.Relu("h", "h")
    net.Softmax("h", "y")
    predict = net.Proto()
    predict.external_input[:] = ["x", "w", "b"]
    predict.external_output.append("y")
    predict.name = init.Proto().name = "small"  # others are numbered
    return init.Proto(), predict


@pytest.fixture
def model(tmp_path, monkeypatch):
    """The two files of a model, in the working folder, with names that tell nothing."""
    monkeypatch.chdir(tmp_path)
    init, predict = build()
    save_net(init, "one")
    save_net(predict, "two")
    np.save("x.npy", np.float32([[1, 0], [0, -1]]))
    return ["one", "two"]


def run(capsys, *arguments):
    """Exit code, and what was printed to the screen and as error."""
    code = cli.main(list(map(str, arguments)))
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def as_json(capsys, *arguments):
    code, printed, _ = run(capsys, *arguments, "--json")
    return code, json.loads(printed)


def answer(x=((1, 0), (0, -1))):
    scores = np.maximum(np.float64(x) @ W.T + [0.5, -0.5, 0], 0)
    return np.exp(scores) / np.exp(scores).sum(1, keepdims=True)


@pytest.mark.parametrize("order", [1, -1])
def test_summary(capsys, model, order):
    code, facts = as_json(capsys, "summary", *model[::order], "--shape", "x=4,2")
    assert code == 0
    assert facts["inputs"] == {"x": "4x2 float32"} and facts["outputs"] == {"y": "4x3 float32"}
    assert facts["parameters"] == 9 and facts["parameter_bytes"] == 36
    assert [op["flops"] for op in facts["operators"]] == [2 * 4 * 3 * 2, 12, 12]
    assert facts["flops"] == 72 and facts["activation_bytes"] == 96 and facts["missing"] == {}


def test_summary_for_people(capsys, model):
    code, printed, _ = run(capsys, "summary", *model)
    assert code == 0
    assert "give --shape NAME=1,3,224,224" in printed
    assert "inputs     x ?" in printed and "parameters 9 (36 B)" in printed
    _, printed, _ = run(capsys, "summary", *model, "--shape", "x=4,2")
    first = " ".join(printed.splitlines()[1].split())
    assert first == "0 FC x, w, b h 4x3 float32 48"


def test_shapes_where_a_name_is_used_again(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    branch = caffe2_pb2.NetDef()
    branch.op.add(type="Tile", input=["a"], output=["b"])
    net = caffe2_pb2.NetDef(name="again", external_input=["x"], external_output=["a", "b", "r"])
    for x, y in (("x", "a"), ("a", "b"), ("b", "a")):
        pool = net.op.add(type="MaxPool", input=[x], output=[y])
        pool.arg.add(name="kernel", i=2)
    net.op.add(type="IsEmpty", input=["a"], output=["c"])
    net.op.add(type="If", input=["c"]).arg.add(name="then_net", n=branch)
    net.op.add(type="Range", input=["stop"], output=["r"])
    save_net(net, "net")
    code, facts = as_json(capsys, "summary", "net", "--shape", "x=1,1,9,9", "--shape", "stop=1")
    assert code == 0
    shapes = [shape.split()[0] for op in facts["operators"] for shape in op["outputs"].values()]
    assert shapes == ["1x1x8x8", "1x1x7x7", "1x1x6x6", "scalar", "?"]
    assert facts["activation_bytes"] == 4 * (8 * 8 + 7 * 7) + 1
    assert facts["outputs"] == {"a": "1x1x6x6 float32", "b": "?", "r": "?"}
    assert facts["unknown"] == {"#5 Range": ["r"]}
    assert facts["refused"] == {}
    code, printed, _ = run(capsys, "summary", "net", "--shape", "x=1,1,2,9")
    assert "refused    #1 MaxPool: X ('a') has size 1 along spatial axis 0" in printed


def test_what_is_missing_is_shown_and_refused(capsys, model):
    net = load_net("two")
    net.op.add(type="Magic", input=["y"], output=["y"])
    save_net(net, "two")
    code, facts = as_json(capsys, "summary", *model)
    assert (code, facts["missing"]) == (0, {"Magic": ["#3 Magic"]})
    code, found = as_json(capsys, "verify", *model)
    assert code == 1 and len(found["problems"]) == 1 and "Magic" in found["problems"][0]
    code, _, error = run(capsys, "run", *model, "--input", "x.npy")
    assert code == 2 and "operators that do not exist here: Magic (predict_net #3 Magic)" in error


def test_verify(capsys, model):
    assert run(capsys, "verify", *model, "--target", "phone")[:2] == (0, "no problems found\n")
    code, printed, _ = run(capsys, "verify", *model, "--shape", "x=4,5")
    assert code == 1 and '"small", #0 FC' in printed
    net = load_net("two")
    net.op[1].engine = "REFERENCE"
    net.op.add(type="Print", input=["y"]).arg.add(name="to_file", i=1)
    save_net(net, "two")
    code, printed, _ = run(capsys, "verify", *model)
    assert (code, printed) == (1, 'net "small", #3 Print touches files, which is not allowed\n')
    assert run(capsys, "verify", *model, "--allow", "files")[0] == 0
    code, printed, _ = run(capsys, "verify", *model, "--target", "phone", "--allow", "files")
    assert code == 1
    assert "#1 Relu runs on its NumPy body" in printed and "#3 Print touches files" in printed


def hostile(**change):
    """A net that fills blob y, and something else in it."""
    net = caffe2_pb2.NetDef(name="hostile", external_output=["y"])
    fill = net.op.add(type="ConstantFill", output=["y"])
    fill.arg.add(name="shape", ints=change.pop("shape", [2]))
    if change:
        net.op.add(**change)
    return net


def inside(op_type, inputs=(), outputs=()):
    net = caffe2_pb2.NetDef()
    net.op.add(type=op_type, input=inputs, output=outputs)
    return {"type": "If", "input": ["y"], "arg": [{"name": "then_net", "n": net}]}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"shape": [1 << 46]}, "#0 ConstantFill needs 281474976710656 bytes"),
        ({"shape": [1 << 40, 1 << 40]}, "#0 ConstantFill needs 4835703278458516698824704 bytes"),
        ({"type": "Save", "input": ["y"]}, "#1 Save touches files, which is not allowed"),
        ({"type": "Load", "output": ["z"]}, "#1 Load touches files, which is not allowed"),
        ({"type": "CreateDB", "output": ["d"]}, "#1 CreateDB touches files, which is not allowed"),
        (inside("Save", ["y"]), "#1 If, then_net #0 Save touches files, which is not allowed"),
        (inside("Relu", ["y", "y"], ["z"]), "#1 If, then_net #0 Relu: has 2 inputs"),
        ({"type": "Relu", "input": ["y"], "output": ["y"], "engine": "NOWHERE"}, ""),
        ({"type": "Relu", "input": ["y", "y"], "output": ["z"]}, "#1 Relu: has 2 inputs"),
    ],
)
@pytest.mark.parametrize("target", ["here", "phone"])
def test_verify_refuses_what_does_not_run(capsys, tmp_path, monkeypatch, change, problem, target):
    monkeypatch.chdir(tmp_path)
    save_net(hostile(**change), "net")
    code, found = as_json(capsys, "verify", "net", "--target", target)
    assert any(problem in line for line in found["problems"]) if problem else not found["problems"]
    assert code == (1 if problem else 0)
    assert run(capsys, "run", "net")[0] == (2 if problem else 0)


def test_large_sizes_are_exact(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_net(hostile(shape=[1 << 40, 1 << 40]), "net")
    code, facts = as_json(capsys, "summary", "net")
    assert (code, facts["flops"], facts["activation_bytes"]) == (0, 1 << 80, 1 << 82)
    assert "flops      1.21e+24\n" in run(capsys, "summary", "net")[1]


def test_a_net_that_is_cut_off_is_noticed(capsys, model):
    net = caffe2_pb2.NetDef(name="cut")
    for layer, x in enumerate(["x", "joined"]):
        parts = [f"{layer}{part}" for part in "ab"]
        for part in parts:
            net.op.add(type="Relu", input=[x], output=[part])
        net.op.add(type="Concat", input=parts, output=["joined", f"dims{layer}"])
    net.op.add(type="Dropout", input=["joined"], output=["joined", "mask"])
    save_net(net, "three")
    code, found = as_json(capsys, "verify", "one", "three")
    assert code == 1 and "it seems to be cut off" in found["problems"][0]
    whole = "the net names no external_output; its last blobs are taken: joined"
    unread = "2 of 2 parameters are read by nobody: w, b"
    assert found["notes"] == [whole, unread]
    assert as_json(capsys, "verify", "three")[1] == {"problems": [], "notes": [whole]}
    code, printed, error = run(capsys, "run", "one", "three", "--shape", "x=2,2")
    assert (code, printed) == (0, "joined  2x8 float32\n")
    assert error.splitlines() == [f"caffe2 run: note: {whole}", f"caffe2 run: note: {unread}"]
    assert as_json(capsys, "summary", "one", "three")[1]["outputs"] == {"joined": "?"}


def test_unnamed_nets_are_called_by_what_they_are_for(capsys, model):
    for file in model:
        net = load_net(file)
        net.ClearField("name")
        net.op[-1].type = "Nope"
        save_net(net, file)
    code, printed, _ = run(capsys, "verify", *model)
    init, predict = printed.splitlines()
    assert code == 1
    assert init.startswith("the unnamed init net, #1 Nope: ")
    assert predict.startswith("the unnamed predict net, #2 Nope: ")


def test_a_file_that_is_given_twice(capsys, model):
    for command in ("run", "bench", "summary", "verify"):
        code, _, error = run(capsys, command, "one", "./one")
        twice = "./one is given twice; a model is an init net and a predict net"
        assert (code, error) == (2, f"caffe2 {command}: {twice}\n")


def test_a_parameter_that_no_net_fills(capsys, model):
    init = load_net("one")
    del init.op[1]
    save_net(init, "one")
    assert run(capsys, "verify", *model)[0] == 0  # an input, as far as one can see
    code, printed, _ = run(capsys, "verify", *model, "--shape", "x=1,2")
    needs = 'net "small": it needs b, too, which no net fills and no shape is given for\n'
    assert (code, printed) == (1, needs)
    assert run(capsys, "verify", *model, "--shape", "x=1,2", "--shape", "b=3")[0] == 0


def test_inputs_that_are_declared_by_another_name(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    net = caffe2_pb2.NetDef(name="slip", external_input=["inputs"], external_output=["y"])
    net.op.add(type="Sqr", input=["input"], output=["y"])
    save_net(net, "net")
    code, found = as_json(capsys, "verify", "net")
    assert code == 1 and "if 'input' is an input, give its shape" in found["notes"][0]
    code, found = as_json(capsys, "verify", "net", "--shape", "input=2,2")
    assert (code, found["problems"]) == (0, [])
    assert found["notes"] == ["'input' is read, and is no external_input"]
    assert run(capsys, "run", "net", "--shape", "input=2,2")[0] == 0


def test_run(capsys, model, tmp_path):
    (tmp_path / "labels").write_text("cat\ndog\nfish\n")
    code, printed, _ = run(
        capsys, "run", *model, "--input", "x=x.npy", "--output", "y.npz", "--top", 2,
        "--labels", "labels",
    )  # fmt: skip
    assert code == 0
    with np.load("y.npz") as archive:
        np.testing.assert_allclose(archive["y"], answer(), rtol=1e-5)
    assert printed.splitlines()[0] == "y  2x3 float32"
    assert printed.splitlines()[3].split()[0] == "fish"
    np.savez("x.npz", x=np.float32([[1, 0]]))
    _, found = as_json(capsys, "run", *model, "--input", "x.npz", "--top", 1)
    [[best]] = found["top"]["y"]
    assert best["label"] == 2 and best["value"] == pytest.approx(answer([[1, 0]])[0, 2], rel=1e-5)


def test_images_are_laid_out_as_nets_want(capsys, tmp_path, monkeypatch):
    image = pytest.importorskip("PIL.Image")
    monkeypatch.chdir(tmp_path)
    net = caffe2_pb2.NetDef(name="same", external_input=["x"], external_output=["y"])
    net.op.add(type="Copy", input=["x"], output=["y"])
    save_net(net, "net")
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    image.fromarray(pixels).save("x.png")
    options = ["--bgr", "--mean", "1,2,3", "--scale", "0.5"]
    assert run(capsys, "run", "net", "--input", "x.png", "--output", "y.npz", *options)[0] == 0
    with np.load("y.npz") as archive:
        expected = (pixels[..., ::-1] - np.float32([1, 2, 3])) / 2
        np.testing.assert_array_equal(archive["y"], expected.transpose(2, 0, 1)[None])


def test_errors_have_a_code_of_their_own(capsys, model, tmp_path):
    pytest.importorskip("PIL")
    (tmp_path / "page").write_text("<html></html>")
    (tmp_path / "empty.npy").write_bytes(b"")
    (tmp_path / "empty.npz").write_bytes(b"")
    np.save("complex.npy", np.complex64([[1, 2]]))
    (tmp_path / "open.npy").write_bytes(b"\x93NUMPY\x01\x00\x04\x00{1,\n")
    np.savez_compressed("zeros.npz", x=np.zeros(999))
    zipped = bytearray((tmp_path / "zeros.npz").read_bytes())
    at = zipped.index(b"x.npy") + 25
    zipped[at : at + 2] = b"\xff\xff"
    (tmp_path / "zeros.npz").write_bytes(zipped)
    giant = b"GIF89a" + bytes([255] * 4) + bytes(3) + b"," + bytes(4) + bytes([255] * 4) + bytes(9)
    (tmp_path / "giant.gif").write_bytes(giant)
    (tmp_path / "cut.ppm").write_bytes(b"P6 4 4 255 abc")
    for arguments, problem in (
        (["summary", "page"], "page holds no NetDef: it is an HTML page"),
        (["summary", "none"], "No such file"),
        (["summary", "one", "two", "two"], "one file or two, not 3"),
        (["run", *model], "the net needs x: give --input or --shape"),
        (["run", *model, "--shape", "x=-1,2"], "--shape x=-1,2: NAME=1,3"),
        (["run", *model, "--shape", "x=a"], "--shape x=a: NAME=1,3"),
        (["draw", "two", "-o", "two.gif"], "pictures end in .svg, .dot or .png"),
        (["optimize", "two", "-o", "both"], "give the init net, too"),
        (["bench", *model, "--shape", "x=1,2", "--runs", "0"], "--runs is 1 or more"),
        (["bench", *model, "--shape", "x=1,2", "--threads", "-1"], "0 (all cores) to 1024"),
        (["summary", *model, "--shape", "z=1"], "reads no blob 'z'; its inputs are x"),
        (["run", *model, "--input", "x=page"], "page is neither .npy nor .npz nor an image"),
        (["run", *model, "--input", "x=empty.npy"], "empty.npy holds no array"),
        (["run", *model, "--input", "empty.npz"], "empty.npz holds no arrays"),
        (["run", *model, "--input", "x=complex.npy"], "input 'x' holds complex64, which no blob"),
        (["run", *model, "--input", "x=open.npy"], "open.npy holds no array"),
        (["run", *model, "--input", "zeros.npz"], "zeros.npz holds no arrays"),
        (["run", *model, "--input", "x=giant.gif"], "giant.gif is no image to read"),
        (["run", *model, "--input", "x=cut.ppm"], "cut.ppm is a damaged image"),
        (["run", *model, "--shape", "x=1,2:complex64"], "--shape x=1,2:complex64: NAME=1,3"),
        (["run", *model, "--shape", "x=1,2:object"], "has type string"),
        (["run", *model, "--shape", "x=1,2", "--output", "no/y"], "run: no/y: No such file"),
        (["run", *model, "--shape", "x=1,2", "--top", "-1"], "--top is 1 or more"),
        (["run", *model, "--shape", "x=99999999999,9999"], "Unable to allocate"),
        (["verify"], "arguments are required: model (see caffe2 verify -h)"),
    ):
        code, printed, error = run(capsys, *arguments)
        assert (code, printed) == (2, "") and problem in error
        assert error.startswith(f"caffe2 {arguments[0]}: ")


def test_names_do_not_reach_the_terminal_as_they_are(capsys, model):
    net = load_net("two")
    net.op[0].input[0] = "\x1b[2J\nno problems found"
    save_net(net, "escape")
    for command in ("summary", "verify", "run", "diff"):
        files = ["one", "escape"] if command != "diff" else ["two", "escape"]
        _, printed, error = run(capsys, command, *files)
        assert r"\x1b[2J" in printed + error
        assert "\x1b" not in printed + error and "\nno problems" not in printed + error


def test_errors_for_programs(capsys, model, tmp_path):
    (tmp_path / "page").write_text("<html></html>")
    net = load_net("two")
    net.op.add(type="Magic", input=["y"], output=["y"])
    save_net(net, "magic")
    for arguments, kind, file in (
        (["summary", "page"], "file", "page"),
        (["summary", "none"], "file", "none"),
        (["run", *model, "--shape", "x=a"], "usage", None),
        (["run", *model, "--nothing"], "usage", None),
        (["run", "one", "magic", "--shape", "x=1,2"], "model", None),
        (["run", *model, "--shape", "x=1,9"], "engine", None),
    ):
        code, found = as_json(capsys, *arguments)
        assert code == 2 and found["error"]
        assert (found["kind"], found.get("file")) == (kind, file)


def test_what_touches_is_refused(capsys, model):
    net = load_net("two")
    net.op.add(type="Python", input=["y"], output=["z"])
    save_net(net, "two")
    for command in (["run"], ["bench"]):
        code, _, error = run(capsys, *command, *model, "--shape", "x=1,2")
        assert code == 2 and "#3 Python touches code" in error
    code, _, error = run(capsys, "diff", "one,two", "one,two", "--run", "--shape", "x=1,2")
    assert code == 2 and "#3 Python touches code" in error


def test_draw(capsys, model, tmp_path):
    assert run(capsys, "draw", *model, "-o", "net.svg")[0] == 0
    assert "Softmax" in (tmp_path / "net.svg").read_text()
    assert run(capsys, "draw", *model, "-o", "net.dot")[0] == 0
    assert (tmp_path / "net.dot").read_text().startswith('digraph "small"')


def test_diff(capsys, model):
    assert run(capsys, "diff", "one,two", "two,one")[:2] == (0, "")
    init, predict = build(W + np.float32([[0, 0], [0, 1], [0, 0]]))
    predict.op[1].type = "Sigmoid"
    save_message(caffe2_pb2.ModelDef(name="m", net=[init, predict]), "other")
    code, found = as_json(capsys, "diff", "one,two", "other")
    assert code == 1 and "-h = Relu(h)" in found["differences"]
    values = ["--shape", "x=2,2"]
    code, found = as_json(capsys, "diff", "one,two", "other", "--run", *values)
    assert code == 1 and found["first"]["blob"] == "h"
    assert run(capsys, "diff", "one,two", "one,two", "--run", *values)[:2] == (0, "no difference\n")


def test_diff_of_two_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    a = {"a": np.float32([1, 2]), "b": np.float32([1, np.inf]), "c": np.int32([1])}
    a["d"] = np.float32(0.5)
    np.savez("a.npz", **a)
    for name, other, place in (
        ("b", np.float32([1.00001, np.inf]), None),
        ("b", np.float32([1.001, np.inf]), "1 and 1.001 at [0]"),
        ("b", np.float32([1, np.nan]), "inf and nan at [1]"),
        ("b", np.float32([[1, np.inf]]), "(2,) float32 and (1, 2) float32"),
        ("c", np.int32([2]), "1 and 2 at [0]"),
        ("d", np.float32(0.75), "0.5 and 0.75 at []"),
    ):
        np.savez("b.npz", **{**a, name: other})
        code, found = as_json(capsys, "diff", "a.npz", "b.npz")
        assert code == (0 if place is None else 1)
        if place:
            assert found["first"]["blob"] == name and place in found["first"]["problem"]


def test_diff_draws_the_same_numbers(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    net = core.Net("random")
    net.GaussianFill([], "y", shape=[50])
    save_net(net.Proto(), "net")
    assert run(capsys, "diff", "net", "net", "--run")[:2] == (0, "no difference\n")


def test_diff_sees_int8_tensors(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for file, zero in (("a", 10), ("b", 11)):
        net = core.Net("quantized")
        net.Int8Quantize("x", "q", Y_scale=0.1, Y_zero_point=zero)
        net.Int8Dequantize("q", "y")
        net.Proto().external_output.append("y")
        save_net(net.Proto(), file)
    code, found = as_json(capsys, "diff", "a", "b", "--run", "--shape", "x=2")
    assert code == 1 and found["first"]["blob"] == "q"


def test_optimize_keeps_int8_weights(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    init, net = core.Net("init"), core.Net("quantized")
    init.Int8GivenTensorFill([], "w", shape=[1, 2], values=b"\x05\xff", Y_scale=0.5, Y_zero_point=5)
    init.Int8GivenIntTensorFill([], "b", shape=[1], values=[-7], Y_scale=0.25)
    net.Int8Quantize("x", "q", Y_scale=0.5)
    net.Int8FC(["q", "w", "b"], "y", Y_scale=0.5)
    net.Int8Dequantize("y", "z")
    net.Proto().external_input[:] = ["x", "w", "b"]
    net.Proto().external_output.append("z")
    save_net(init.Proto(), "init")
    save_net(net.Proto(), "net")
    assert run(capsys, "optimize", "init", "net", "-o", "both")[0] == 0
    np.save("x.npy", np.float32([[1, 2]]))
    answers = []
    for files in (["init", "net"], ["both"]):
        assert run(capsys, "run", *files, "--input", "x.npy", "--output", "y.npz")[0] == 0
        with np.load("y.npz") as archive:
            answers.append(archive["z"].item())
    assert answers == [127.5, 127.5]  # cut off at 255 steps


def test_the_largest_of_bytes_and_flags(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    net = core.Net("same")
    net.Copy("x", "y")
    save_net(net.Proto(), "net")
    for values, best in ((np.uint8([[1, 0, 200]]), 2), (np.bool_([[False, True, False]]), 1)):
        np.save("x.npy", values)
        found = as_json(capsys, "run", "net", "--input", "x.npy", "--top", 1)[1]
        assert found["top"]["y"][0][0]["label"] == best


def test_bench(capsys, model):
    code, found = as_json(capsys, "bench", *model, "--shape", "x=3,2", "--runs", 2)
    assert code == 0 and found["ms"] > 0
    assert [op["type"] for op in found["operators"]] == ["FC", "Relu", "Softmax"]
    assert [op["flops"] for op in found["operators"]] == [36, 9, 9]
    code, printed, _ = run(capsys, "bench", *model, "--shape", "x=3,2", "--threads", 1)
    assert code == 0 and "ms a run (median of 10" in printed


def test_optimize(capsys, model):
    net = load_net("two")
    net.op.add(type="Copy", input=["y"], output=["unused"])
    save_net(net, "two")
    code, found = as_json(capsys, "optimize", *model, "-o", "both")
    assert (code, found["before"], found["after"]) == (0, 4, 3)
    assert run(capsys, "run", "both", "--input", "x.npy", "--output", "y.npz")[0] == 0
    with np.load("y.npz") as archive:
        np.testing.assert_allclose(archive["y"], answer(), rtol=1e-5)


def test_upgrade(capsys, model, tmp_path):
    (tmp_path / "old").write_text(
        'op { type: "Relu" input: "x" output: "y" device_option { device_type: 1 cuda_gpu_id: 2 } }'
    )
    code, printed, _ = run(capsys, "upgrade", "old", "-o", "new.pbtxt")
    assert (code, printed) == (0, "#0 Relu: GPU left out\n")
    new = 'op {\n  input: "x"\n  output: "y"\n  type: "Relu"\n}\n'
    assert (tmp_path / "new.pbtxt").read_text() == new
    assert run(capsys, "upgrade", "new.pbtxt")[1] == "nothing to change\n"


def test_operators_that_the_original_computes_in_integers_are_named(capsys, model):
    net = load_net("two")
    net.op[0].engine = "DNNLOWP"
    save_net(net, "two")
    code, printed, _ = run(capsys, "verify", *model)
    assert code == 0 and "note: #0 FC is computed in floats" in printed


def test_changes_of_many_operators_are_one_line(capsys, model):
    net = caffe2_pb2.NetDef()
    for _ in range(7):
        net.op.add(type="Relu", input=["x"], output=["x"], engine="CUDNN")
    net.op.add(type="Tanh", input=["x"], output=["x"], engine="CUDNN")
    save_net(net, "many")
    printed = run(capsys, "upgrade", "many")[1].splitlines()
    first = "7 Relu (#0, #1, #2, #3, #4, ...): engine CUDNN left out"
    assert printed == [first, "#7 Tanh: engine CUDNN left out"]
    assert len(as_json(capsys, "upgrade", "many")[1]["changes"]) == 8


def test_a_value_that_stands_for_the_input_is_not_taken_for_it(capsys, model):
    init = load_net("one")
    filled = init.op.add(type="GivenTensorFill", output=["x"])
    filled.arg.add(name="shape", ints=[1])
    filled.arg.add(name="values", floats=[0.0])
    save_net(init, "one")
    assert run(capsys, "verify", *model)[:2] == (0, "no problems found\n")
    _, facts = as_json(capsys, "summary", *model)
    assert facts["inputs"] == {"x": "?"}
    assert run(capsys, "run", *model, "--input", "x.npy", "--output", "y.npz")[0] == 0
    with np.load("y.npz") as archive:
        np.testing.assert_allclose(archive["y"], answer(), rtol=1e-5)
    code, _, error = run(capsys, "run", *model)
    assert code == 2 and "the net needs x" in error
    values = np.load("x.npy")
    filled.arg[0].ints[:], filled.arg[1].floats[:] = values.shape, values.ravel()
    save_net(init, "one")
    assert run(capsys, "run", *model, "--output", "y.npz")[0] == 0  # these are values
    with np.load("y.npz") as archive:
        np.testing.assert_allclose(archive["y"], answer(), rtol=1e-5)


def test_inputs_that_are_not_declared(capsys, model):
    net = load_net("two")
    del net.external_input[:]
    save_net(net, "two")
    assert run(capsys, "verify", *model)[0] == 0
    assert as_json(capsys, "run", *model, "--input", "x.npy")[1]["outputs"] == {"y": [2, 3]}
