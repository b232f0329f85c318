"""Models in one file, whose weights are used where they lie."""

import math
import os

import numpy as np
import pytest

from caffe2 import _native, cli
from caffe2.graph.errors import UsageError
from caffe2.graph.files import load_message, save_message
from caffe2.graph.model_file import ALIGNMENT, save_model
from caffe2.graph.predictor import add_tensor
from caffe2.proto import caffe2_pb2
from caffe2.python import core, workspace
from caffe2.runtime.inference import add_packed, optimize_pair

RANDOM = np.random.default_rng(4)
HEADER = 128  # bytes of text before packed weights
VALUES = {
    "w1": RANDOM.normal(size=(32, 3, 3, 3)).astype(np.float32),
    "b1": RANDOM.normal(size=32).astype(np.float32),
    "w2": RANDOM.normal(size=(48, 32, 3, 3)).astype(np.float32),
    "w3": RANDOM.normal(size=(64, 48, 1, 1)).astype(np.float32),
    "w4": RANDOM.normal(size=(5, 64)).astype(np.float32),
    "b4": RANDOM.normal(size=5).astype(np.float32),
}
INPUT = RANDOM.normal(size=(2, 3, 20, 20)).astype(np.float32)


def pair():
    """Convolutions of three kinds and a layer that is fully connected."""
    init = caffe2_pb2.NetDef(name="init")
    for name, value in VALUES.items():
        add_tensor(init, name, value)
    add_tensor(init, "one", np.int64([3]))
    net = core.Net("predict")
    net.Conv(["x", "w1", "b1"], "c1", kernel=3, stride=2, pad=1)
    net.Relu("c1", "c1")
    net.Conv(["c1", "w2"], "c2", kernel=3, pad=1)
    net.Conv(["c2", "w3"], "c3", kernel=1)
    net.AveragePool("c3", "p", global_pooling=1)
    net.FC(["p", "w4", "b4"], "y")
    predict = net.Proto()
    predict.external_input[:] = ["x", *VALUES]
    predict.external_output.append("y")
    predict.name = "small"  # others are numbered
    return init, predict


@pytest.fixture
def path(tmp_path):
    save_model(*pair(), tmp_path / "model.pb")
    return tmp_path / "model.pb"


def test_every_reader_of_messages_takes_the_file(path):
    model = load_message(caffe2_pb2.ModelDef, path)
    assert list(model.net) == list(pair()) and model.name == model.net[1].name
    content = path.read_bytes()
    for value in VALUES.values():
        if value.size > 5:
            assert content.index(value.tobytes()) % ALIGNMENT == 0


def test_a_weight_that_changed_on_the_way_is_noticed(path, capsys):
    content = bytearray(path.read_bytes())
    assert cli.main(["verify", str(path)]) == 0
    at = content.index(VALUES["w3"].tobytes()) + 1001
    content[at] ^= 0x10
    path.write_bytes(content)
    assert workspace.Predictor.from_file(path)  # a quick start looks at no weights
    for read in (
        lambda: load_message(caffe2_pb2.ModelDef, path),
        lambda: workspace.Predictor.from_file(path, check=True),
    ):
        with pytest.raises(UsageError, match=r"is damaged: its CRC-32 is \w{8}, and \w{8} when"):
            read()
    capsys.readouterr()
    assert cli.main(["verify", str(path)]) == 2
    assert f"{path} is damaged: its CRC-32 is" in capsys.readouterr().err
    content[at] ^= 0x10
    path.write_bytes(content)
    assert workspace.Predictor.from_file(path, check=True)


def test_a_message_that_is_written_anew_has_no_checksum(path):
    model = load_message(caffe2_pb2.ModelDef, path)
    assert not model.metadata
    model.net[0].op[0].arg[1].floats[0] += 1
    save_message(model, path)
    assert load_message(caffe2_pb2.ModelDef, path) == model


def test_names_of_any_length_leave_the_values_aligned(tmp_path):
    values = np.arange(1, 41, dtype=np.float32)
    for length in range(1, 150, 3):
        init = caffe2_pb2.NetDef(name="i" * length)
        add_tensor(init, "w" * length, values)
        add_tensor(init, "empty", np.zeros((0, 3), np.float32))
        save_model(init, pair()[1], tmp_path / "m")
        assert (tmp_path / "m").read_bytes().index(values.tobytes()) % ALIGNMENT == 0
        assert load_message(caffe2_pb2.ModelDef, tmp_path / "m").net[0] == init


def test_answers_as_the_pair_does_and_copies_no_weights(path):
    wanted = workspace.Predictor(*pair()).run([INPUT])[0]
    engine, paired = _native.Engine(threads=1), _native.Engine(threads=1)
    predictor = workspace.Predictor.from_file(path, engine)
    kept = workspace.Predictor(*pair(), paired)
    assert paired.memory_used - engine.memory_used == VALUES["w2"].nbytes  # the others are small
    for _ in range(3):
        np.testing.assert_array_equal(predictor.run([INPUT])[0], wanted)
        np.testing.assert_array_equal(kept.run([INPUT])[0], wanted)
    assert predictor.inputs == kept.inputs and predictor.needed == ["x"]


@pytest.mark.parametrize("name", ["plain.pb", "text.pbtxt"])
def test_models_that_others_wrote(path, tmp_path, name):
    wanted = workspace.Predictor.from_file(path).run([INPUT])[0]
    save_message(caffe2_pb2.ModelDef(net=pair()), tmp_path / name)
    answer = workspace.Predictor.from_file(tmp_path / name).run([INPUT])[0]
    np.testing.assert_array_equal(answer, wanted)
    save_model(*pair(), tmp_path / name)
    assert load_message(caffe2_pb2.ModelDef, tmp_path / name).net[0] == pair()[0]


def test_a_file_that_is_replaced_or_removed_stays_in_use(path):
    predictor = workspace.Predictor.from_file(path)
    wanted = predictor.run([INPUT])[0]
    init, predict = pair()
    init.op[0].arg[1].floats[0] += 1
    save_model(init, predict, path)
    other = workspace.Predictor.from_file(path)
    os.remove(path)
    np.testing.assert_array_equal(predictor.run([INPUT])[0], wanted)
    assert not np.array_equal(other.run([INPUT])[0], wanted)


def test_parameters_are_given_anew_and_written_by_the_net(tmp_path):
    count = 1 << 13
    init = caffe2_pb2.NetDef()
    add_tensor(init, "w", np.arange(count, dtype=np.float32))
    net = core.Net("counts")
    net.Add(["w", "x"], "w")
    net.Copy("w", "y")
    predict = net.Proto()
    predict.external_input[:], predict.external_output[:] = ["x", "w"], ["y"]
    save_model(init, predict, tmp_path / "m")
    before = (tmp_path / "m").read_bytes()
    for predictor in (workspace.Predictor.from_file(tmp_path / "m") for _ in range(2)):
        for times in (1, 2, 3):
            answer = predictor.run([np.ones(count, np.float32)])[0]
            np.testing.assert_array_equal(answer, np.arange(count) + times)
        given = {"x": np.ones(count, np.float32), "w": np.zeros(count, np.float32)}
        np.testing.assert_array_equal(predictor.run(given)[0], np.ones(count))
    assert (tmp_path / "m").read_bytes() == before


def open_and_run(path):
    """True when it works; False for a clear error."""
    try:
        workspace.Predictor.from_file(path).run([np.ones((1, 20), np.float32)])
    except (RuntimeError, ValueError, TypeError):
        return False
    return True


def test_damaged_files_are_errors(tmp_path):
    init, net = caffe2_pb2.NetDef(), core.Net("small")
    add_tensor(init, "w", np.ones((2, 20), np.float32))
    add_tensor(init, "b", np.ones(2, np.float32))
    net.FC(["x", "w", "b"], "y")
    predict = net.Proto()
    predict.external_input[:], predict.external_output[:] = ["x", "w", "b"], ["y"]
    path = tmp_path / "m"
    save_model(init, predict, path)
    content = path.read_bytes()
    assert open_and_run(path)
    sealed = content.rindex(b"\x1a\x11\x0a\x05crc32")  # before it the model is whole
    for length in set(range(0, len(content), 3)) - {sealed}:
        path.write_bytes(content[:length])
        assert not open_and_run(path), length
    values = content.index(np.ones(40, np.float32).tobytes())
    for at in [*range(values), *range(values + 160, len(content))]:
        for change in (1, 0x80, 0xFF):
            damaged = bytearray(content)
            damaged[at] ^= change
            path.write_bytes(damaged)
            open_and_run(path)


def test_what_is_no_model_is_said(tmp_path, path):
    with pytest.raises(FileNotFoundError):
        workspace.Predictor.from_file(tmp_path / "none.pb")
    with pytest.raises(OSError, match=r"regular file|directory"):
        workspace.Predictor.from_file(tmp_path)
    (tmp_path / "net").write_bytes(pair()[1].SerializeToString())
    with pytest.raises(UsageError, match="holds no ModelDef: it holds a NetDef: one net"):
        workspace.Predictor.from_file(tmp_path / "net")
    save_message(caffe2_pb2.ModelDef(net=pair()[:1]), tmp_path / "one")
    with pytest.raises(UsageError, match=r"holds 1 net.*two are needed"):
        workspace.Predictor.from_file(tmp_path / "one")
    init, predict = pair()
    init.op[2].arg[0].ints[0] += 1
    save_model(init, predict, tmp_path / "short")
    with pytest.raises(RuntimeError, match=r"'w2' has shape .* but argument 'values' holds 13824"):
        workspace.Predictor.from_file(tmp_path / "short")
    file = _native.ModelFile(str(path))
    file.run_init(_native.Workspace(_native.Engine()))
    with pytest.raises(RuntimeError, match="once"):
        file.run_init(_native.Workspace(_native.Engine()))


def test_the_program_writes_files_that_are_mapped(tmp_path, capsys):
    from caffe2 import cli

    for net, name in zip(pair(), ("init", "predict"), strict=True):
        save_message(net, tmp_path / name)
    out = tmp_path / "model.pb"
    arguments = ["optimize", *(str(tmp_path / name) for name in ("init", "predict"))]
    assert cli.main([*arguments, "-o", str(out), "--pack"]) == 2
    shape = ["--pack", "--shape", "x=2,3,20,20"]
    assert cli.main([*arguments, "-o", str(out), *shape]) == 0
    assert len(load_message(caffe2_pb2.ModelDef, out).net[0].op) == len(VALUES) + 3
    capsys.readouterr()
    assert cli.main(["verify", str(out)]) == 0
    assert "read by nobody" not in capsys.readouterr().out
    assert cli.main([*arguments, "-o", str(out)]) == 0
    assert out.read_bytes().index(VALUES["w2"].tobytes()) % ALIGNMENT == 0
    np.testing.assert_array_equal(
        workspace.Predictor.from_file(out).run([INPUT])[0],
        workspace.Predictor(*pair()).run([INPUT])[0],
    )


def test_packed_weights_are_used_where_they_lie(path, tmp_path):
    plain = workspace.Predictor.from_file(path)
    wanted = plain.run([INPUT])[0]
    init, predict = pair()
    notes = add_packed(init, predict, {"x": INPUT})
    assert notes == ["packed: 'w1'", "packed: 'w2'", "packed: 'w3'"]
    packed_path = tmp_path / "packed.pb"
    save_model(init, predict, packed_path)
    engines = [_native.Engine(threads=1) for _ in range(2)]
    predictor = workspace.Predictor.from_file(packed_path, engines[0])
    np.testing.assert_array_equal(predictor.run([INPUT])[0], wanted)
    whole = workspace.Predictor.from_file(path, engines[1])
    whole.run([INPUT])
    assert engines[1].memory_used - engines[0].memory_used >= VALUES["w2"].nbytes
    for size in (5, 33, 20):  # some with other algorithms
        x = RANDOM.normal(size=(1, 3, size, size)).astype(np.float32)
        np.testing.assert_array_equal(predictor.run([x])[0], plain.run([x])[0])
    given = {"x": INPUT, "w2": 2 * VALUES["w2"]}
    np.testing.assert_array_equal(predictor.run(given)[0], plain.run(given)[0])
    # What was packed for other kernels, or is damaged, is not used.
    content = packed_path.read_bytes()
    for old, new in ((b"kernels ", b"Kernels "), (b"Conv ", b"conv ")):
        assert content.count(old) == 3
        packed_path.write_bytes(content.replace(old, new))
        other = workspace.Predictor.from_file(packed_path)
        np.testing.assert_array_equal(other.run([INPUT])[0], wanted)
    init.op[-1].arg[0].ints[0] -= 1
    del init.op[-1].arg[1].floats[-1]
    save_model(init, predict, packed_path)
    other = workspace.Predictor.from_file(packed_path)
    np.testing.assert_array_equal(other.run([INPUT])[0], wanted)


FILTERS = {"we": (480, 16, 1, 1), "wd": (480, 1, 3, 3), "wp": (16, 480, 1, 1)}


def inverted_residual():
    """Of 16 channels, 480 between; its filters are large enough to be used where they lie."""
    sizes = FILTERS | {"be": 480, "bd": 480, "bp": 16}
    init, net = caffe2_pb2.NetDef(name="init"), core.Net("predict")
    for name, size in sizes.items():
        add_tensor(init, name, RANDOM.normal(size=size).astype(np.float32))
    net.Conv(["x", "we", "be"], "e", kernel=1)
    net.Clip("e", "e", min=0.0, max=6.0)
    net.Conv(["e", "wd", "bd"], "d", kernel=3, pad=1, group=480)
    net.Clip("d", "d", min=0.0, max=6.0)
    net.Conv(["d", "wp", "bp"], "p", kernel=1)
    net.Sum(["x", "p"], "y")
    net.Proto().external_input[:] = ["x", *sizes]
    net.Proto().external_output.append("y")
    init, predict, _ = optimize_pair(init, net.Proto())
    assert [op.type for op in predict.op] == ["ExpandDepthwise", "Sum"]
    return init, predict


def filters_of(init):
    shapes = [(op.output[0], list(op.arg[0].ints)) for op in init.op]
    return {name: 4 * math.prod(shape) for name, shape in shapes if name[0] == "w"}


def test_packed_filters_of_inverted_residuals_need_no_memory(tmp_path):
    init, predict = inverted_residual()
    x = RANDOM.normal(size=(2, 16, 9, 11)).astype(np.float32)
    save_model(init, predict, tmp_path / "plain.pb")
    notes = add_packed(init, predict, {"x": x})
    assert notes == ["packed: 'we'", "packed: 'wd'", "packed: 'wp'"]
    save_model(init, predict, tmp_path / "packed.pb")
    used, answers, predictors = [], [], []
    for name in ("plain.pb", "packed.pb"):
        engine = _native.Engine(threads=1)
        predictors.append(workspace.Predictor.from_file(tmp_path / name, engine))
        answers += [predictors[-1].run([x])[0] for _ in range(2)]
        used.append(engine.memory_used)
    for answer in answers:
        np.testing.assert_array_equal(answer, workspace.Predictor(init, predict).run([x])[0])
    packed = {k: size - HEADER for k, size in filters_of(init).items() if k.endswith("#packed")}
    assert len(packed) == 3
    assert used[0] - used[1] == sum(packed.values())
    for name, shape in FILTERS.items():
        given = {"x": x, name: RANDOM.normal(size=shape).astype(np.float32)}
        news = [predictor.run(given)[0] for predictor in predictors]
        np.testing.assert_array_equal(*news)
        assert not np.array_equal(news[0], answers[0])


def test_packed_filters_that_are_damaged_are_not_used(tmp_path):
    init, predict = inverted_residual()
    x = RANDOM.normal(size=(1, 16, 5, 5)).astype(np.float32)
    wanted = workspace.Predictor(init, predict).run([x])[0]
    add_packed(init, predict, {"x": x})
    path = tmp_path / "packed.pb"
    save_model(init, predict, path)
    content = path.read_bytes()
    headers = [i for i in range(len(content)) if content.startswith(b"Conv ", i)]
    assert len(headers) == 3
    for at in headers:
        other = bytearray(content)
        other[at + HEADER : at + HEADER + 1000] = bytes(1000)
        path.write_bytes(other)
        assert not np.array_equal(workspace.Predictor.from_file(path).run([x])[0], wanted)
        for change in range(at, at + HEADER, 5):
            damaged = bytearray(other)
            damaged[change] ^= 1
            path.write_bytes(damaged)
            found = workspace.Predictor.from_file(path).run([x])[0]
            np.testing.assert_array_equal(found, wanted)
        for length in (at, at + 5, at + HEADER, at + HEADER + 1000):
            path.write_bytes(content[:length])
            with pytest.raises(UsageError, match="truncated"):
                workspace.Predictor.from_file(path)


def test_filters_of_inverted_residuals_are_kept_once():
    """New ones, and inputs of another size, are answered as ever."""
    init, predict = inverted_residual()
    seen = caffe2_pb2.NetDef()
    seen.CopyFrom(predict)
    seen.external_output.extend(FILTERS)
    engines = [_native.Engine(threads=1) for _ in range(2)]
    predictor = workspace.Predictor(init, predict, engines[0])
    whole = workspace.Predictor(init, seen, engines[1])
    sizes = [(2, 16, 9, 11), (1, 16, 30, 5), (2, 16, 9, 11)]
    inputs = [RANDOM.normal(size=size).astype(np.float32) for size in sizes]
    for x in inputs:
        np.testing.assert_array_equal(predictor.run([x])[0], whole.run([x])[0])
    kept = filters_of(init)
    assert engines[1].memory_used - engines[0].memory_used == sum(kept.values())
    for name, shape in FILTERS.items():
        given = {"x": inputs[0], name: RANDOM.normal(size=shape).astype(np.float32)}
        np.testing.assert_array_equal(predictor.run(given)[0], whole.run(given)[0])
    np.testing.assert_array_equal(predictor.run([inputs[1]])[0], whole.run([inputs[1]])[0])


def test_weights_packed_for_one_convolution_serve_no_other(tmp_path):
    """Of one filter, whose order depends on the number of groups."""
    init, net = caffe2_pb2.NetDef(name="init"), core.Net("predict")
    add_tensor(init, "w", RANDOM.normal(size=(32, 16, 3, 3)).astype(np.float32))
    net.Conv(["x", "w"], "y", kernel=3, engine="DIRECT")
    net.Conv(["x2", "w"], "y2", kernel=3, group=2, engine="DIRECT")
    net.Proto().external_input[:] = ["x", "x2", "w"]
    net.Proto().external_output[:] = ["y", "y2"]
    predict = net.Proto()
    given = {
        name: RANDOM.normal(size=(1, c, 9, 9)).astype(np.float32)
        for name, c in (("x", 16), ("x2", 32))
    }
    assert add_packed(init, predict, given) == ["packed: 'w'"]
    save_model(init, predict, tmp_path / "packed.pb")
    found = workspace.Predictor.from_file(tmp_path / "packed.pb").run(given)
    for answer, wanted in zip(found, workspace.Predictor(init, predict).run(given), strict=True):
        np.testing.assert_array_equal(answer, wanted)


def test_originals_of_packed_weights_are_dropped_and_come_back():
    """Of 1x1 and strided windows; other input sizes and new weights are answered as ever."""
    init, predict = pair()
    seen = caffe2_pb2.NetDef()
    seen.CopyFrom(predict)
    seen.external_output.extend(["w1", "w3"])
    engines = [_native.Engine(threads=1) for _ in range(2)]
    predictor = workspace.Predictor(init, predict, engines[0])
    whole = workspace.Predictor(init, seen, engines[1])
    predictor.run([INPUT])
    whole.run([INPUT])
    dropped = VALUES["w1"].nbytes + VALUES["w3"].nbytes
    assert engines[1].memory_used - engines[0].memory_used == dropped
    for size in (5, 33, 20):
        x = RANDOM.normal(size=(1, 3, size, size)).astype(np.float32)
        np.testing.assert_array_equal(predictor.run([x])[0], whole.run([x])[0])
    # Small inputs, before and after others: for these the filter is transformed.
    predictor = workspace.Predictor(init, predict, engines[0])
    for size in (2, 20, 2):
        x = RANDOM.normal(size=(1, 3, size, size)).astype(np.float32)
        np.testing.assert_array_equal(predictor.run([x])[0], whole.run([x])[0])
    for name in ("w3", "w2", "w1"):
        given = {"x": INPUT, name: 2 * VALUES[name]}
        np.testing.assert_array_equal(predictor.run(given)[0], whole.run(given)[0])


def test_originals_stay_where_others_see_them():
    init, predict = pair()
    predict.external_output.append("w3")
    predict.op.add(type="Relu", input=["w1"], output=["z"])
    predict.external_output.append("z")
    predictor = workspace.Predictor(init, predict)
    for _ in range(2):
        _, w3, z = predictor.run([INPUT])
        np.testing.assert_array_equal(w3, VALUES["w3"])
        np.testing.assert_array_equal(z, np.maximum(VALUES["w1"], 0))
