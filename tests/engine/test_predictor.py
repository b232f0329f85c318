"""Serving a pair of nets."""

import threading
import weakref

import numpy as np
import pytest

from caffe2 import _native
from caffe2.proto import caffe2_pb2
from caffe2.python import core, workspace

W = np.float32([[1, 2], [3, 4], [5, 6]])
B = np.float32([0.5, -0.5, 0])


@pytest.fixture
def nets():
    init = core.Net("init")
    init.GivenTensorFill([], "w", shape=W.shape, values=W.ravel().tolist())
    init.GivenTensorFill([], "b", shape=B.shape, values=B.tolist())
    predict = core.Net("predict")
    predict.FC(["x", "w", "b"], "y")
    message = predict.Proto()
    del message.external_input[:]
    message.external_input.extend(["x", "w", "b"])
    message.external_output.append("y")
    return init.Proto(), message


def test_answers_from_lists_and_dictionaries(nets):
    predictor = workspace.Predictor(*nets)
    assert predictor.inputs == ["x", "w", "b"] and predictor.needed == ["x"]
    assert predictor.outputs == ["y"]
    x = np.float32([[1, -1], [2, 0.5]])
    expected = x @ W.T + B
    (by_list,) = predictor.run([x])
    np.testing.assert_allclose(by_list, expected, rtol=1e-6)
    (by_name,) = predictor.run({"x": x[:1]})
    np.testing.assert_allclose(by_name, expected[:1], rtol=1e-6)
    np.testing.assert_array_equal(by_list[0], by_name[0])


def test_a_list_finds_its_inputs_wherever_the_net_declares_them(nets):
    init, predict = nets
    x = np.float32([[1, -1]])
    for order in (["w", "b", "x"], ["w", "x", "b"]):
        del predict.external_input[:]
        predict.external_input.extend(order)
        np.testing.assert_allclose(workspace.Predictor(init, predict).run([x])[0], x @ W.T + B)


def test_inputs_that_the_init_net_fills_too(nets):
    init, predict = nets
    filled = core.Net("filled")
    filled.GivenTensorFill([], "x", shape=[1, 1], values=[0.0])
    init.op.extend(filled.Proto().op)
    predictor = workspace.Predictor(init, predict)
    x = np.float32([[1, -1]])
    for inputs in ([x], {"x": x}, []):  # x stays
        np.testing.assert_allclose(predictor.run(inputs)[0], x @ W.T + B)
    with pytest.raises(ValueError, match=r"inputs given: 4; this net takes: any of x, "):
        predictor.run([x, W, B, x])
    np.testing.assert_allclose(predictor.run([x])[0], x @ W.T + B)
    np.testing.assert_allclose(predictor.run([x, 2 * W])[0], x @ (2 * W).T + B)


def test_an_array_in_place_of_a_list_changes_nothing(nets):
    """As many rows as there are inputs and parameters: they are not taken for these."""
    predictor = workspace.Predictor(*nets)
    x = np.float32([[1, -1]])
    batch = np.ones((3, 3, 2), np.float32)
    for wrong in (batch, batch[:1], b"abc", "x", bytearray(3), np.float32(1)):
        with pytest.raises(TypeError, match=r"not one \w+; for one input x, write run\(\[x\]\)"):
            predictor.run(wrong)
    with pytest.raises(ValueError, match="inputs given: 3; this net takes: x"):
        predictor.run(list(batch))
    np.testing.assert_allclose(predictor.run([x])[0], x @ W.T + B)


def test_nothing_has_to_be_filled(nets):
    predictor = workspace.Predictor(b"", nets[1])
    assert predictor.needed == ["x", "w", "b"]
    x = np.float32([[1, -1]])
    np.testing.assert_allclose(predictor.run([x, W, B])[0], x @ W.T + B)
    with pytest.raises(ValueError, match="takes: x, w, b, of which init_net fills none"):
        predictor.run([x])


def test_parameters_are_replaced_by_name_for_good(nets):
    predictor = workspace.Predictor(*nets)
    x = np.float32([[1, -1]])
    np.testing.assert_allclose(predictor.run({"x": x, "w": 2 * W})[0], 2 * x @ W.T + B)
    np.testing.assert_allclose(predictor.run([x])[0], 2 * x @ W.T + B)


def test_an_input_that_is_declared_twice_is_given_once(nets):
    nets[1].external_input.append("x")
    predictor = workspace.Predictor(*nets)
    assert predictor.inputs == ["x", "w", "b"] and predictor.needed == ["x"]
    np.testing.assert_array_equal(predictor.run([np.zeros((1, 2), np.float32)]), [[B]])


def test_values_are_what_can_be_fed(nets):
    predictor = workspace.Predictor(*nets)
    np.testing.assert_allclose(predictor.run([[[1, 2.0]]])[0], np.float32([[1, 2]]) @ W.T + B)
    with pytest.raises(TypeError, match="blob 'x' was fed ndarray of element type complex128"):
        predictor.run([np.zeros((1, 2), complex)])


def test_serialized_nets_work_and_stay_as_they_are(nets):
    nets[1].ClearField("name")
    init, predict = (net.SerializeToString() for net in nets)
    predictor = workspace.Predictor(init, predict)
    assert predictor.run([np.zeros((0, 2), np.float32)])[0].shape == (0, 3)
    assert nets[1].name == ""


def test_predictors_do_not_touch_the_current_workspace(nets):
    workspace.ResetWorkspace()
    workspace.Predictor(*nets).run([np.ones((1, 2), np.float32)])
    assert workspace.Blobs() == []


def test_what_does_not_fit_together_is_said_at_the_start(nets):
    init, predict = nets
    with pytest.raises(ValueError, match="names no external_output"):
        workspace.Predictor(init, caffe2_pb2.NetDef(op=predict.op))
    undeclared = caffe2_pb2.NetDef()
    undeclared.CopyFrom(predict)
    undeclared.op[0].input[0] = "1"
    with pytest.raises(ValueError, match=r"nothing provides: 1; its inputs are x, init_net fills"):
        workspace.Predictor(init, undeclared)
    with pytest.raises(
        ValueError, match=r"init_net reads .*before: x, w, b. Were the two nets swap"
    ):
        workspace.Predictor(predict, init)
    undeclared.external_output[:] = ["z"]
    with pytest.raises(ValueError, match=r"nothing provides: 1, z; "):
        workspace.Predictor(init, undeclared)
    fails = caffe2_pb2.NetDef()  # it would end in another error if it ran
    fails.CopyFrom(init)
    fails.op[0].arg[0].ints[0] = -1
    with pytest.raises(ValueError, match=r"nothing provides: 1, z; "):
        workspace.Predictor(fails, undeclared)
    with pytest.raises(ValueError, match="init_net holds no NetDef: it is truncated"):
        workspace.Predictor(init.SerializeToString()[:-3], predict)
    with pytest.raises(TypeError, match="init_net must be"):
        workspace.Predictor("init_net.pb", predict)


@pytest.mark.parametrize("inputs", [[], [np.zeros(1)] * 4, {"z": np.zeros(1)}, {}])
def test_wrong_numbers_and_names_of_inputs(nets, inputs):
    with pytest.raises(ValueError, match=r"this net takes.*x"):
        workspace.Predictor(*nets).run(inputs)


def test_an_error_in_a_run_leaves_the_predictor_usable(nets):
    predictor = workspace.Predictor(*nets)
    with pytest.raises(RuntimeError, match="has type double; allowed: float"):
        predictor.run([np.zeros((1, 2))])
    with pytest.raises(RuntimeError, match="3 features"):
        predictor.run([np.zeros((1, 3), np.float32)])
    assert predictor.run([np.zeros((1, 2), np.float32)])[0].tolist() == [B.tolist()]


def test_threads_share_a_predictor(nets):
    predictor = workspace.Predictor(*nets)
    wrong = []

    def ask(value):
        x = np.full((3, 2), value, np.float32)
        for _ in range(200):
            if not np.allclose(predictor.run([x])[0], x @ W.T + B):
                wrong.append(value)

    threads = [threading.Thread(target=ask, args=(float(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_array_that_the_net_only_reads_is_not_copied(nets):
    engine = _native.Engine(threads=1)
    predictor = workspace.Predictor(*nets, engine)
    x = np.arange(32_000, dtype=np.float32).reshape(-1, 2)
    for _ in range(3):  # until its memory is planned
        predictor.run([x])
    answers, used = [], []
    for inputs in ({"x": x}, [x]):
        answers.append(predictor.run(inputs)[0])
        used.append(engine.memory_used)
    assert used[0] - used[1] == x.nbytes
    np.testing.assert_array_equal(*answers)
    kept = weakref.ref(x)
    expected = x[:1] @ W.T + B
    x[:] = -1  # the answers are out already
    np.testing.assert_array_equal(answers[0][:1], expected)
    del x, inputs
    assert kept() is None  # nothing outlasts the run
    with pytest.raises(ValueError, match="this net takes: x"):
        predictor.run({})
    x = np.zeros((2, 3), np.float32)
    with pytest.raises(RuntimeError, match="has shape"):
        predictor.run([x])
    kept = weakref.ref(x)
    del x
    assert kept() is None


def test_what_a_filled_input_is_given_stays_whatever_becomes_of_the_array(nets):
    init = caffe2_pb2.NetDef()
    init.CopyFrom(nets[0])
    init.op.append(core.CreateOperator("ConstantFill", [], ["x"], shape=[1, 2], value=0.0))
    predictor = workspace.Predictor(init, nets[1])
    array = np.float32([[1, 2]])
    expected = array @ W.T + B
    for inputs in ([array], [], {}):
        np.testing.assert_array_equal(predictor.run(inputs)[0], expected)
        array[:] = 7


@pytest.mark.parametrize("kind", ["in place", "view", "view out", "also an output", "nested"])
def test_an_array_is_never_written_to(nets, kind):
    predict = core.Net("predict")
    x = "x"
    if kind == "view out":
        predict.Reshape("x", ["v", "_"], shape=[-1, 2])
        predict.Proto().external_output.append("v")
    elif kind == "view":
        x, _ = predict.Reshape("x", ["v", "_"], shape=[-1, 2])
        predict.Relu(x, x)
    elif kind == "in place":
        predict.Relu("x", "x")
    elif kind == "nested":
        predict.ConstantFill([], "yes", shape=[], value=True, dtype=core.DataType.BOOL)
        inside = core.Net("inside")
        inside.Proto().external_input.append("x")
        inside.Relu("x", "x")
        predict.If(["yes", "x"], ["x"], then_net=inside.Proto())
    else:
        predict.Proto().external_output.append("x")
    predict.FC([x, "w", "b"], "y")
    predict.Proto().external_input[:] = ["x", "w", "b"]
    predict.Proto().external_output.append("y")
    predictor = workspace.Predictor(nets[0], predict.Proto())
    array = np.float32([[1, -1], [-2, 3]])
    read = np.maximum(array, 0) if kind in ("in place", "view", "nested") else array
    for _ in range(3):
        answers = predictor.run([array])
        np.testing.assert_array_equal(array, np.float32([[1, -1], [-2, 3]]))
        np.testing.assert_allclose(answers[-1], read @ W.T + B)
        answers[0][:] = 7  # nor through what is given out
        answers[-1][:] = 7


def test_what_a_net_keeps_of_an_input_is_its_own(nets):
    init, predict = core.Net("init"), core.Net("predict")
    init.Proto().CopyFrom(nets[0])
    init.ConstantFill([], "last", shape=[1, 2], value=0.0)
    predict.FC(["last", "w", "b"], "y")
    predict.Alias("x", "last")
    predict.Proto().external_input[:] = ["x", "w", "b", "last"]
    predict.Proto().external_output.append("y")
    predictor = workspace.Predictor(init.Proto(), predict.Proto())
    array, last = np.float32([[1, 2]]), np.zeros((1, 2), np.float32)
    for step in range(3):
        np.testing.assert_allclose(predictor.run([array])[0], last @ W.T + B)
        last = array.copy()
        array[:] = [step, -step]  # one array for all calls


def test_arrays_may_lie_anywhere(nets):
    raw = b"?" + np.float32([[1, -1]]).tobytes()
    x = np.frombuffer(raw, np.float32, offset=1).reshape(1, 2)
    predictor = workspace.Predictor(*nets)
    np.testing.assert_allclose(predictor.run([x])[0], x @ W.T + B)
    np.testing.assert_allclose(predictor.run([x[:0]])[0], np.zeros((0, 3)))


def test_bytes_are_text_in_a_list_too(nets):
    predict = core.Net("predict")
    predict.Copy("x", "y")
    predict.Proto().external_input[:] = ["x"]
    predict.Proto().external_output.append("y")
    predictor = workspace.Predictor(nets[0], predict.Proto())
    for inputs in ([b"ab"], {"x": b"ab"}):
        with pytest.raises(RuntimeError, match="'x' holds std::string, not a tensor"):
            predictor.run(inputs)


def test_inputs_that_no_operator_reads_are_not_needed(nets):
    nets[1].external_input.insert(0, "queue")
    predictor = workspace.Predictor(*nets)
    assert predictor.needed == ["x"]
    x = np.float32([[1, -1]])
    np.testing.assert_allclose(predictor.run([x])[0], x @ W.T + B)
    np.testing.assert_allclose(predictor.run({"x": x, "queue": x})[0], x @ W.T + B)


def test_a_net_that_declares_no_inputs_takes_what_it_reads(nets):
    del nets[1].external_input[:]
    predictor = workspace.Predictor(*nets)
    assert predictor.needed == ["x"]
    x = np.float32([[1, -1]])
    np.testing.assert_allclose(predictor.run([x])[0], x @ W.T + B)


def test_custom_operators_are_listed_at_once(nets):
    init, predict = nets
    for kind in ("Magic", "Spell", "Magic"):
        predict.op.add(type=kind, input=["y"], output=["y"])
    init.op.add(type="Potion", output=["p"])
    with pytest.raises(
        ValueError,
        match=r"do not exist here: Potion \(init_net #2 Potion\); "
        r"Magic \(predict_net #1 Magic, #3 Magic\); Spell \(predict_net #2 Spell\)$",
    ):
        workspace.Predictor(init, predict)


def test_operators_that_touch_what_is_outside_are_refused(nets):
    init, _ = nets
    net = core.Net("calls")
    net.Python(lambda inputs, outputs: outputs[0].feed(inputs[0].data * 2))(["x"], ["y"])
    predict = net.Proto()
    predict.external_output.append("y")
    with pytest.raises(ValueError, match=r"predict_net #0 Python touches code, which a Predictor"):
        workspace.Predictor(init, predict, allow=["files", "network"])
    with pytest.raises(ValueError, match="allow names disk; there are files, code, network"):
        workspace.Predictor(init, predict, allow=["disk"])
    x = np.ones((1, 2), np.float32)
    predictor = workspace.Predictor(init, predict, allow=["code"])
    np.testing.assert_array_equal(predictor.run([x])[0], 2 * x)
