"""Recurrent nets: values against loops in NumPy, gradients against differences, saved nets."""

from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from google.protobuf import text_format

from caffe2.proto import caffe2_pb2
from caffe2.python import core, gru_cell, recurrent, rnn_cell, workspace
from caffe2.python.model_helper import ModelHelper

MODELS = Path(__file__).parents[3] / "shared" / "models"
T, N, D_IN, D = 4, 3, 2, 5
LENGTHS = np.array([4, 1, 3], np.int32)


@pytest.fixture(autouse=True)
def fresh_workspace():
    workspace.SwitchWorkspace("default")
    workspace.ResetWorkspace()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def feed(rng, **shapes):
    for name, shape in shapes.items():
        workspace.FeedBlob(name, rng.uniform(-1, 1, shape).astype(np.float32))


def lstm_model(**kwargs):
    """An LSTM over x, and its loss: the sum of all states times fixed weights."""
    model = ModelHelper(name="model")
    x, lengths, h0, c0 = model.net.AddExternalInputs("x", "lengths", "h0", "c0")
    states = rnn_cell.LSTM(model, x, lengths, (h0, c0), D_IN, D, "lstm", **kwargs)
    return model, states


def weights(name):
    return workspace.FetchBlob(f"lstm/{name}_w"), workspace.FetchBlob(f"lstm/{name}_b")


def lstm_in_numpy(x, h, c, lengths, forget_bias=0.0, drop=False):
    wi, bi = weights("i2h")
    wr, br = weights("gates_t")
    hs, cs = [], []
    for t in range(len(x)):
        i, f, o, g = np.split(x[t] @ wi.T + bi + h @ wr.T + br, 4, axis=-1)
        new_c = sigmoid(f + forget_bias) * c + sigmoid(i) * np.tanh(g)
        new_h = sigmoid(o) * np.tanh(new_c)
        over = (t >= lengths)[:, None]
        h, c = np.where(over, h * (not drop), new_h), np.where(over, c * (not drop), new_c)
        hs.append(h)
        cs.append(c)
    return np.stack(hs), np.stack(cs)


@pytest.mark.parametrize("initial", [(N, D), (1, N, D), (D,)])
@pytest.mark.parametrize("drop", [False, True])
def test_an_lstm_gives_what_a_loop_gives(initial, drop):
    model, states = lstm_model(forget_bias=0.5, drop_states=drop)
    workspace.RunNetOnce(model.param_init_net)
    rng = np.random.default_rng(0)
    feed(rng, x=(T, N, D_IN), h0=initial, c0=initial)
    workspace.FeedBlob("lengths", LENGTHS)
    workspace.CreateNet(model.net)
    for _ in range(2):
        x, h0, c0 = workspace.FetchBlobs(["x", "h0", "c0"])
        h0, c0 = (np.broadcast_to(s.reshape(-1, s.shape[-1]), (N, D)) for s in (h0, c0))
        workspace.RunNet(model.net)
        hs, cs = lstm_in_numpy(x, h0, c0, LENGTHS, 0.5, drop)
        for blob, expected in zip(states, (hs, hs[-1:], cs, cs[-1:]), strict=True):
            np.testing.assert_allclose(workspace.FetchBlob(blob), expected, atol=1e-6)
        feed(rng, x=(T, N, D_IN))


@pytest.mark.parametrize("memory_optimization", [False, True])
@pytest.mark.parametrize(
    ("initial", "layers"), [((N, D), 1), ((D,), 1), ((1, N, D), 2)], ids=["rows", "one", "layers"]
)
def test_gradients_through_time_are_those_of_differences(initial, layers, memory_optimization):
    """Of the input, the initial states and the weights, from all and from the last states."""
    model = ModelHelper(name="model")
    names = [f"{state}{layer}" for layer in range(layers) for state in "hc"]
    x, lengths, target, *begin = model.net.AddExternalInputs("x", "lengths", "target", *names)
    hidden, _, _, last_cell = rnn_cell.LSTM(
        model,
        x,
        lengths,
        begin,
        D_IN,
        D if layers == 1 else [D] * layers,
        "lstm",
        outputs_with_grads=[0, 3],
        memory_optimization=memory_optimization,
    )
    parts = [model.net.Mul([hidden, target], "part_0"), model.net.Sigmoid(last_cell, "part_1")]
    gradients = model.net.AddGradientOperators(parts)
    rng = np.random.default_rng(1)
    feed(rng, x=(T, N, D_IN), target=(T, N, D), **dict.fromkeys(names, initial))
    workspace.FeedBlob("lengths", LENGTHS)
    workspace.RunNetOnce(model.param_init_net)
    workspace.CreateNet(model.net)
    workspace.RunNet(model.net)
    cells = ["lstm/"] if layers == 1 else ["lstm/layer_0/", "lstm/layer_1/"]
    wanted = ["x", *names, *(f"{cell}gates_t_b" for cell in cells), f"{cells[-1]}gates_t_w"]
    found = {name: workspace.FetchBlob(gradients[core.BlobReference(name)]) for name in wanted}
    for name in wanted:
        expected = np.zeros_like(found[name])
        value = workspace.FetchBlob(name)
        for index in np.ndindex(value.shape):
            sums = []
            for step in (1e-2, -1e-2):
                moved = value.copy()
                moved[index] += step
                workspace.FeedBlob(name, moved)
                workspace.RunNet(model.net)
                sums.append(sum(workspace.FetchBlob(p).sum(dtype=np.float64) for p in parts))
            expected[index] = (sums[0] - sums[1]) / 2e-2
        workspace.FeedBlob(name, value)
        # Differences of float32 sums: about 1e-6 / 2e-2, and the third derivative.
        np.testing.assert_allclose(found[name], expected, atol=2e-3, err_msg=name)


def gru_in_numpy(x, h, lengths, before_reset):
    def linear(name, value):
        w, b = workspace.FetchBlob(f"gru/{name}_w"), workspace.FetchBlob(f"gru/{name}_b")
        return value @ w.T + b

    states = []
    for t in range(len(x)):
        r_in, z_in, c_in = np.split(linear("i2h", x[t]), 3, axis=-1)
        r = sigmoid(r_in + linear("reset_gate_t", h))
        z = sigmoid(z_in + linear("update_gate_t", h))
        if before_reset:
            c = np.tanh(c_in + r * linear("output_gate_t", h))
        else:
            c = np.tanh(c_in + linear("output_gate_t", r * h))
        h = np.where((t >= lengths)[:, None], h, z * h + (1 - z) * c)
        states.append(h)
    return np.stack(states)


@pytest.mark.parametrize("before_reset", [False, True])
def test_a_gru_gives_what_a_loop_gives(before_reset):
    model = ModelHelper(name="model")
    x, lengths, h0 = model.net.AddExternalInputs("x", "lengths", "h0")
    every, last = gru_cell.GRU(
        model, x, lengths, (h0,), D_IN, D, "gru", linear_before_reset=before_reset
    )
    workspace.RunNetOnce(model.param_init_net)
    feed(np.random.default_rng(2), x=(T, N, D_IN), h0=(N, D))
    workspace.FeedBlob("lengths", LENGTHS)
    workspace.RunNetOnce(model.net)
    expected = gru_in_numpy(*workspace.FetchBlobs(["x", "h0"]), LENGTHS, before_reset)
    np.testing.assert_allclose(workspace.FetchBlob(every), expected, atol=1e-6)
    np.testing.assert_allclose(workspace.FetchBlob(last), expected[-1:], atol=1e-6)


def test_an_unrolled_cell_gives_the_same_as_the_operator():
    """Forward, and the gradients of the weights."""
    results = []
    for unroll in (None, T):
        workspace.ResetWorkspace()
        model, states = lstm_model(static_rnn_unroll_size=unroll)
        gradients = model.net.AddGradientOperators([states[0]])
        workspace.RunNetOnce(model.param_init_net)
        rng = np.random.default_rng(3)
        feed(rng, x=(T, N, D_IN), h0=(1, N, D), c0=(1, N, D))
        for name in ("i2h", "gates_t"):
            feed(rng, **{f"lstm/{name}_w": workspace.FetchBlob(f"lstm/{name}_w").shape})
        workspace.FeedBlob("lengths", LENGTHS)
        workspace.RunNetOnce(model.net)
        wanted = [*states, *(gradients[p] for p in model.params)]
        results.append(workspace.FetchBlobs(wanted))
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def step_op(step_net, **changes):
    """A RecurrentNetwork: h_t = h_(t-1) + x_t."""
    args = {
        "step_net": step_net,
        "recurrent_states": ["h_states"],
        "initial_recurrent_state_ids": [1],
        "link_internal": ["h_prev", "h", "x_t"],
        "link_external": ["h_states", "h_states", "x"],
        "link_offset": [0, 1, 0],
        "alias_src": ["h_states", "h_states"],
        "alias_dst": ["all", "last"],
        "alias_offset": [1, -1],
        **changes,
    }
    return core.CreateOperator("RecurrentNetwork", ["x", "h0"], ["all", "last", "steps"], **args)


ADD = caffe2_pb2.NetDef(
    name="step", op=[core.CreateOperator("Sum", ["h_prev", "x_t"], ["h"])], type="simple"
)


@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_step_net_runs_for_each_step(quoted, steps):
    x = np.arange(steps * 2, dtype=np.float32).reshape(steps, 2, 1)
    workspace.FeedBlob("x", x)
    workspace.FeedBlob("h0", np.float32([[10], [20]]))
    step = text_format.MessageToString(ADD) if quoted else ADD
    workspace.RunOperatorOnce(step_op(step))
    expected = np.concatenate([np.float32([[[10], [20]]]), x]).cumsum(axis=0)
    np.testing.assert_array_equal(workspace.FetchBlob("all"), expected[1:])
    np.testing.assert_array_equal(workspace.FetchBlob("last"), expected[-1:])
    np.testing.assert_array_equal(workspace.FetchBlob("h_states"), expected)
    assert not workspace.HasBlob("h") and not workspace.HasBlob("timestep")


def test_a_whole_state_may_be_an_output_by_its_name():
    """Beside the aliases, which keep their order."""
    workspace.FeedBlob("x", np.float32([[[1]], [[2]]]))
    workspace.FeedBlob("h0", np.float32([[10]]))
    op = step_op(ADD)
    op.output[:] = ["all", "h_states", "last", "steps"]
    workspace.RunOperatorOnce(op)
    found = [workspace.FetchBlob(name).ravel().tolist() for name in op.output[:3]]
    assert found == [[11, 13], [10, 11, 13], [13]]
    net = caffe2_pb2.NetDef(op=[op])
    shapes, _ = workspace.InferShapesAndTypes([net])
    assert [shapes[name] for name in op.output[:3]] == [[2, 1, 1], [3, 1, 1], [1, 1, 1]]


def test_names_of_fields_that_old_step_nets_have():
    workspace.FeedBlob("x", np.ones((2, 1, 1), np.float32))
    workspace.FeedBlob("h0", np.float32([[10]]))
    step = "op { type: 'Sum' input: 'h_prev' input: 'x_t' output: 'h' device_option { NAME: 1 } }"
    for name in ("cuda_gpu_id", "hip_gpu_id", "device_id"):
        workspace.RunOperatorOnce(step_op(step.replace("NAME", name)))
        np.testing.assert_array_equal(workspace.FetchBlob("last"), [[[12]]])


@pytest.mark.parametrize("quoted", [False, True])
def test_a_predictor_shows_a_step_net_all_that_it_reads(quoted):
    """`z` is linked and `bias` is read by their names; the operator lists neither as an input."""
    step = caffe2_pb2.NetDef(
        op=[core.CreateOperator("Sum", ["h_prev", "x_t", "z_t", "bias"], ["h"])]
    )
    net = core.Net("sums")
    for blob in ("z", "bias"):
        net.Copy(f"{blob}_in", blob)
    net.Proto().op.append(
        step_op(
            text_format.MessageToString(step) if quoted else step,
            link_internal=["h_prev", "h", "x_t", "z_t"],
            link_external=["h_states", "h_states", "x", "z"],
            link_offset=[0, 1, 0, 0],
        )
    )
    net.Proto().external_input.extend(["x", "h0", "z_in", "bias_in"])
    net.Proto().external_output.append("last")
    predictor = workspace.Predictor(caffe2_pb2.NetDef(name="init"), net.Proto())
    x, bias = np.arange(6, dtype=np.float32).reshape(3, 2, 1), np.float32([[1], [2]])
    for run in range(3):
        z = x * run
        (last,) = predictor.run({"x": x, "h0": bias, "z_in": z, "bias_in": bias[None]})
        np.testing.assert_array_equal(last[0], (x + z).sum(axis=0) + 4 * bias)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"link_offset": [0, 1, 5]}, "steps 5 to 6 of 'x' are needed"),
        ({"link_offset": [0, 1]}, "has 3 elements and 'link_offset' 2"),
        ({"link_external": ["h_states", "h_states", "y"]}, "there is no blob 'y'"),
        ({"alias_src": ["no", "no"]}, "'no' is not one of the recurrent_states"),
        ({"alias_offset": [9, -1]}, "of 'h_states' are needed"),
        ({"initial_recurrent_state_ids": [2]}, "holds 2; allowed are 0 to 1"),
        ({"step_net": "op { type: 'Sum'"}, "a message does not end"),
        ({"step_net": "op { kind: 'Sum' }"}, "OperatorDef has no field 'kind'"),
        ({"step_net": ""}, "argument 'step_net' is empty"),
    ],
)
def test_what_does_not_fit_is_named(changes, message):
    workspace.FeedBlob("x", np.zeros((2, 2, 1), np.float32))
    workspace.FeedBlob("h0", np.zeros((2, 1), np.float32))
    workspace.FeedBlob("all", np.float32([7]))
    arguments = {"step_net": ADD, **changes}
    with pytest.raises(RuntimeError, match=message):
        workspace.RunOperatorOnce(step_op(**arguments))
    np.testing.assert_array_equal(workspace.FetchBlob("all"), [7])


def test_what_the_gradient_needs_is_checked():
    """A gradient after a run that kept no steps."""
    model, states = lstm_model()
    model.net.AddGradientOperators([states[0]])
    (op,) = [op for op in model.net.Proto().op if op.type == "RecurrentNetworkGradient"]
    workspace.RunNetOnce(model.param_init_net)
    feed(np.random.default_rng(5), x=(2, N, D_IN), h0=(N, D), c0=(N, D))
    workspace.FeedBlob("lengths", np.full(N, 2, np.int32))
    workspace.RunNetOnce(model.net)
    workspace.RunOperatorOnce(op)
    feed(np.random.default_rng(5), **{"lstm/i2h": (3, N, 4 * D)})
    with pytest.raises(RuntimeError, match="has 2 steps for the 3 of"):
        workspace.RunOperatorOnce(op)


def test_blobs_of_the_steps_can_be_fetched():
    """By the operator that "RecurrentNetworkBlobFetcher" names."""
    model, _ = lstm_model()
    workspace.RunNetOnce(model.param_init_net)
    feed(np.random.default_rng(4), x=(2, N, D_IN), h0=(N, D), c0=(N, D))
    workspace.FeedBlob("lengths", np.full(N, 2, np.int32))
    workspace.RunNetOnce(model.net)
    names = recurrent.retrieve_step_blobs(model.net, "step")
    assert {b"step_lstm/gates_t0", b"step_lstm/gates_t1", b"step_timestep1"} <= set(names)
    every = workspace.FetchBlob("lstm/hidden_state_all")
    for t in range(2):
        found = workspace.FetchBlob(f"step_lstm/hidden_state{t}")
        np.testing.assert_array_equal(found, every[t : t + 1])
    np.testing.assert_array_equal(workspace.FetchBlob("step_timestep1"), [1])


def test_a_link_is_a_part_of_the_sequence():
    workspace.FeedBlob("t", np.int32([1]))
    workspace.FeedBlob("x", np.arange(8, dtype=np.float32).reshape(4, 2))
    link = core.CreateOperator(
        "rnn_internal_apply_link", ["t", "x"], ["step", "x"], offset=1, window=2
    )
    workspace.RunOperatorOnce(link)
    np.testing.assert_array_equal(workspace.FetchBlob("step"), [[4, 5], [6, 7]])
    workspace.FeedBlob("t", np.int32([2]))
    with pytest.raises(RuntimeError, match="steps 3 to 5 of 'x' are needed"):
        workspace.RunOperatorOnce(link)


def test_a_step_is_added_to_the_sequence():
    workspace.FeedBlob("t", np.int32([1]))
    workspace.FeedBlob("step", np.float32([[10, 20]]))
    workspace.FeedBlob("sum", np.arange(8, dtype=np.float32).reshape(4, 2))
    add = core.CreateOperator(
        "rnn_internal_accumulate_gradient_input", ["t", "step", "sum"], ["sum"], offset=-1
    )
    workspace.RunOperatorOnce(add)
    np.testing.assert_array_equal(workspace.FetchBlob("sum"), [[10, 21], [2, 3], [4, 5], [6, 7]])


def test_hints_for_the_executor_are_arguments():
    op = step_op(ADD)
    recurrent.set_rnn_executor_config(op, num_threads=3, max_cuda_streams=1)
    recurrent.set_rnn_executor_config(op, num_threads=5)
    hints = {arg.name: arg.i for arg in op.arg if arg.name.startswith("rnn_executor")}
    assert hints == {"rnn_executor.num_threads": 5}


@pytest.mark.skipif(not MODELS.is_dir(), reason="the saved nets of others are not here")
def test_a_saved_net_with_a_quoted_step_net():
    """A text generator; the answers are those of the original."""
    folder = MODELS / "lstm_char_rnn_predict"
    text = (folder / "predict_net.pbtxt").read_text(encoding="utf-8")
    net = text_format.Parse(text.replace("device_type: 1", "device_type: 0"), caffe2_pb2.NetDef())
    with np.load(folder / "expected.npz") as data:
        for name in data.files:
            if name.startswith("in:"):
                workspace.FeedBlob(unquote(name[3:]), data[name])
        workspace.CreateNet(net)
        for run in range(3):
            workspace.RunNet(net.name)
            wanted = [name for name in data.files if name.startswith(f"out{run}:")]
            assert wanted
            for name in wanted:
                found = workspace.FetchBlob(unquote(name.split(":", 1)[1]))
                np.testing.assert_allclose(found, data[name], rtol=1e-4, atol=1e-6, err_msg=name)


def test_sparse_gradients_of_steps_are_refused():
    """They would be lost: nothing adds the rows of one step to those of another."""
    model = ModelHelper("lookup")
    step = ModelHelper("step", param_model=model)
    x, before = step.net.AddExternalInputs("x_t", "h_before")
    rows = step.net.Gather(["table", "indices"], "rows")
    after = step.net.Add([step.net.Add([x, before], "sum"), rows], "h_after")
    step.net.AddExternalOutputs(after)

    def build(**more):
        return recurrent.recurrent_net(
            net=model.net,
            cell_net=step.net,
            inputs=[("x_t", "x")],
            initial_cell_inputs=[("h_before", "h")],
            links={"h_before": after},
            scope="r",
            **more,
        )

    with pytest.raises(AssertionError, match=r"\['table'\] are sparse.*forward_only=True"):
        build()
    build(forward_only=True)


@pytest.mark.parametrize("drop", [False, True])
def test_a_basic_rnn_with_lengths_has_the_gradients_of_differences(drop):
    model = ModelHelper(name="model")
    x, lengths, h0 = model.net.AddExternalInputs("x", "lengths", "h0")
    states = rnn_cell.BasicRNN(
        model, x, lengths, (h0,), D_IN, D, "rnn", activation="tanh", drop_states=drop,
        outputs_with_grads=[0],
    )  # fmt: skip
    loss = model.net.AveragedLoss(states[0], "loss")
    gradients = model.AddGradientOperators([loss])
    workspace.RunNetOnce(model.param_init_net)
    feed(np.random.default_rng(7), x=(T, N, D_IN), h0=(1, N, D))
    workspace.FeedBlob("lengths", LENGTHS)
    workspace.CreateNet(model.net)

    def loss_of(name, values):
        workspace.FeedBlob(name, values)
        workspace.RunNet(model.net)
        return float(workspace.FetchBlob("loss"))

    for name in ("rnn/gates_t_w", "rnn/i2h_w"):
        values = workspace.FetchBlob(name)
        loss_of(name, values)
        found = workspace.FetchBlob(str(gradients[core.BlobReference(name)]))
        change = np.zeros_like(values)
        change[1, 0] = 0.01
        expected = (loss_of(name, values + change) - loss_of(name, values - change)) / 0.02
        loss_of(name, values)
        # The differences are those of a smooth loss in float32.
        np.testing.assert_allclose(found[1, 0], expected, atol=2e-4)
