"""Nets whose blobs share memory compute what they computed before."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from caffe2.graph.sharing import dependencies
from caffe2.proto import caffe2_pb2
from caffe2.python import brew, core, memonger, model_helper, workspace
from caffe2.python.memonger import AssignmentAlgorithm, LiveRange


@pytest.fixture(autouse=True)
def _empty_workspace():
    workspace.ResetWorkspace()
    yield
    workspace.ResetWorkspace()


def trained(layers=4, scope=""):
    model = model_helper.ModelHelper(name="net")
    with core.NameScope(scope) if scope else core.NameScope(None):
        x = "data"
        for index in range(layers):
            x = brew.fc(model, x, f"fc{index}", dim_in=3, dim_out=3)
            x = model.net.Tanh(x, f"tanh{index}")
        prediction = model.net.Softmax(x, "prediction")
        loss = model.net.AveragedLoss(
            model.net.LabelCrossEntropy([prediction, "label"], "entropy"), "loss"
        )
    model.AddGradientOperators([loss])
    workspace.RunNetOnce(model.param_init_net)
    prefix = f"{scope}/" if scope else ""
    rng = np.random.default_rng(1)
    workspace.FeedBlob(f"{prefix}data", rng.standard_normal((5, 3)).astype(np.float32))
    workspace.FeedBlob(f"{prefix}label", rng.integers(0, 3, 5).astype(np.int32))
    return model, loss


def blobs(net):
    return {name for op in net.op for name in op.output}


@pytest.mark.parametrize("activations", [False, True])
@pytest.mark.parametrize("net_type", ["simple", "dag"])
def test_gradients_that_share_memory_have_the_same_values(activations, net_type):
    model, loss = trained(scope="inner")
    grads = list(model.param_to_grad.values())
    workspace.RunNetOnce(model.net)
    names = [str(grad) for grad in grads]
    before = workspace.FetchBlobs([str(loss), *names])
    shared = memonger.share_grad_blobs(
        model.net, [loss], grads, "inner", share_activations=activations
    )
    shared.type = net_type
    assert len(blobs(shared)) <= len(blobs(model.net.Proto())) - 5
    assert all(name.startswith("inner/__m") for name in blobs(shared) - blobs(model.net.Proto()))
    for name in names:
        workspace.FeedBlob(name, np.zeros(1, np.float32))
    workspace.RunNetOnce(shared)
    for old, new in zip(before, workspace.FetchBlobs([str(loss), *names]), strict=True):
        np.testing.assert_array_equal(old, new)
    assert memonger.verify_graph_equality(model.net.Proto(), shared)
    assert memonger.verify_inplace_blobs(model.net.Proto(), shared)


def test_what_scripts_look_at_keeps_its_name():
    model, loss = trained()
    shared = memonger.share_grad_blobs(
        model.net,
        [loss],
        model.param_to_grad.values(),
        "",
        dont_share_blobs=["fc1_grad"],
        share_activations=True,
    )
    kept = blobs(shared)
    assert {"fc1_grad", "prediction", "loss", "fc3", "tanh3", "data_grad"} <= kept
    assert "fc0" not in kept and "fc2_grad" not in kept


def test_blobs_of_like_sizes_share():
    net = caffe2_pb2.NetDef(external_input=["x"])
    names = ["x", "a_grad", "b_grad", "c_grad", "d_grad", "e_grad"]
    for source, target in itertools.pairwise(names):
        net.op.add(type="Relu", input=[source], output=[target], is_gradient_op=True)
    shapes = {"a_grad": [9, 9], "b_grad": [2], "c_grad": [3], "d_grad": [9, 8]}
    # c cannot take the place of b, which it is computed from; d can take that of a or b.
    shared = memonger.share_grad_blobs(net, [], [], "", blob_shapes=shapes)
    output = [op.output[0] for op in shared.op]
    assert output[3] == output[1] or output[3] == output[0]
    shared = memonger.share_grad_blobs(net, [], [], "", blob_shapes={**shapes, "c_grad": [9, 9]})
    output = [op.output[0] for op in shared.op]
    assert output[0] == output[2] and output[1] == output[3]


def test_blobs_on_different_devices_do_not_share():
    net = caffe2_pb2.NetDef(external_input=["x"])
    for index, (source, target) in enumerate((("x", "a"), ("a", "b"), ("b", "c"), ("c", "d"))):
        op = net.op.add(type="Relu", input=[source], output=[target])
        op.device_option.device_id = int(index == 0)
    net.external_output.append("d")
    # Only a is done when c is written, and it is elsewhere.
    assert memonger.optimize_inference_fast(net, []) == net


def test_branches_of_a_dag_stay_apart():
    net = core.Net("branches")
    for name in ("left", "right"):
        y = net.Relu("x", f"{name}1")
        y = net.Tanh(y, f"{name}2")
        y = net.Relu(y, f"{name}3")
    net.Sum(["left3", "right3"], "sum")
    shared = memonger.optimize_inference_for_dag(net, ["x"])
    left, right = ({op.output[0] for op in shared.op[start : start + 3]} for start in (0, 3))
    assert not left & right and len(left) == len(right) == 2
    assert shared.op[6].output[0] == "sum"
    workspace.FeedBlob("x", np.array([1, -2], np.float32))
    workspace.RunNetOnce(shared)
    np.testing.assert_allclose(workspace.FetchBlob("sum"), [2 * np.tanh(1), 0], rtol=1e-6)


def test_views_and_blobs_of_inner_nets_keep_their_names():
    net = core.Net("views")
    net.Relu("x", "a")
    net.Alias("a", "view")
    inner = core.Net("inner")
    inner.Relu("b", "c")
    net.Relu("view", "b")
    net.Relu("b", "d")
    net.Proto().op[-1].arg.add(name="step_net").n.CopyFrom(inner.Proto())
    net.Relu("d", "e")
    net.Relu("e", "f")
    net.Relu("f", "g")
    shared = memonger.optimize_inference_fast(net, ["x", "g"])
    assert {"a", "view", "b", "g"} <= blobs(shared) and "f" not in blobs(shared)


def test_an_operator_that_has_to_work_in_place():
    net = core.Net("enforced")
    net.IndexFreeze("a", "b")
    with pytest.raises(RuntimeError, match="#0 IndexFreeze: output 'b' has to be input 'a'"):
        memonger.optimize_inference_for_dag(net, ["a"])


def test_blobs_are_freed_behind_their_last_use():
    net = core.Net("freed")
    net.Relu("x", "a")
    net.Relu("a", "b")
    net.Sum(["a", "b"], "c")
    net.Relu("c", "d")
    freed = memonger.release_blobs_when_used(net.Proto(), ["c"])
    assert [op.type for op in freed.op] == ["Relu", "Relu", "Sum", "Free", "Free", "Relu"]
    assert sorted(op.input[0] for op in freed.op[3:5]) == ["a", "b"]
    only_a = memonger.release_blobs_when_used(net.Proto(), [], lambda name: name == "a")
    assert [op.input[0] for op in only_a.op if op.type == "Free"] == ["a"]
    workspace.FeedBlob("x", np.array([2], np.float32))
    workspace.RunNetOnce(freed)
    assert workspace.FetchBlob("d") == [4]


def test_dependencies():
    net = core.Net("chain")
    net.Relu("x", "y")  # 0
    net.Tanh("x", "z")  # 1: needs nobody
    net.Relu("y", "y")  # 2: reads what 0 wrote
    net.Copy("z", "x")  # 3: writes what 0 and 1 read
    assert dependencies(net.Proto().op) == [set(), set(), {0}, {0, 1}]
    graph = memonger.compute_interference_graph(net.Proto().op)
    assert graph.edges() == [(0, 2), (0, 3), (1, 3)]
    assert memonger.topological_sort_traversal(graph) == [0, 1, 2, 3]


def test_longest_chains_come_first():
    net = core.Net("chains")
    net.Relu("a", "b")  # 0
    net.Relu("c", "d")  # 1
    net.Relu("d", "e")  # 2
    graph = memonger.compute_interference_graph(net.Proto().op)
    assert memonger.topological_sort_traversal_longest_path(graph) == [1, 2, 0]


RANGES = [
    ("a", LiveRange(0, 1, 10)),
    ("b", LiveRange(0, 1, 2)),
    ("c", LiveRange(2, 3, 9)),
    ("d", LiveRange(2, 4, 10)),
]


def test_the_least_memory():
    greedy = memonger.compute_assignments_greedy(RANGES)
    # c takes a's memory, which d would have fitted in.
    assert memonger.get_memory_usage(greedy) == 20
    assert [[name for name, _ in shared] for shared in greedy] == [["a", "c"], ["b", "d"]]
    best = memonger.compute_assignments_dp(RANGES[:2] + RANGES[3:])
    assert memonger.get_memory_usage(best) == 12
    sizes = [("a", LiveRange(0, 1, 1)), ("b", LiveRange(0, 1, 5))]
    later = [("c", LiveRange(2, 3, 4)), ("d", LiveRange(2, 3, 5)), ("e", LiveRange(4, 5, 9))]
    # The nearest size for c is 5, so that d makes memory of 1 grow, to 5: 10, and e one of them.
    assert memonger.get_memory_usage(memonger.compute_assignments_greedy(sizes + later)) == 14
    assert memonger.get_memory_usage(memonger.compute_assignments_dp(sizes + later)) == 13


@pytest.mark.parametrize("algorithm", list(AssignmentAlgorithm))
def test_memory_of_a_net_that_runs_in_order(algorithm):
    model, loss = trained(3)
    static = [*map(str, model.params), "data", "label", str(loss), "fc0_w_grad"]
    workspace.RunNetOnce(model.net)
    before = workspace.FetchBlobs([str(loss), "fc0_w_grad"])
    sizes = memonger.collect_blob_sizes(model.net.Proto())
    assert sizes["data"] == 60
    found = memonger.optimize_interference(
        model.net.Proto(), static, blob_sizes=sizes, algo=algorithm
    )
    saved = memonger.compute_statistics(found.assignments)
    assert saved.optimized_nbytes < saved.baseline_nbytes / 2
    workspace.RunNetOnce(found.net)
    for old, new in zip(before, workspace.FetchBlobs([str(loss), "fc0_w_grad"]), strict=True):
        np.testing.assert_array_equal(old, new)


def test_nets_that_are_not_alike():
    def diamond(second):
        net = core.Net("diamond")
        net.Relu("x", "a")
        net.Tanh("x", "b")
        net.Sum(["a", second], "c")
        return net.Proto()

    assert memonger.verify_graph_equality(diamond("b"), diamond("b"))
    assert not memonger.verify_graph_equality(diamond("b"), diamond("a"))
    inplace = core.Net("inplace")
    inplace.Relu("x", "x")
    apart = core.Net("apart")
    apart.Relu("x", "y")
    assert not memonger.verify_inplace_blobs(inplace.Proto(), apart.Proto())
