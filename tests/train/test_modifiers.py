"""Optimizers, regularizers, ... by name; shared parameters; regularizers as operators."""

import numpy as np
import pytest

from caffe2.graph.printer import operator_line
from caffe2.python import brew, core, model_helper, optimizer, workspace
from caffe2.python import normalizer as normalizers
from caffe2.python import regularizer as regularizers
from caffe2.python.modeling.parameter_sharing import (
    ParameterSharing,
    parameter_sharing_context,
)
from caffe2.python.normalizer_context import NormalizerContext, UseNormalizer
from caffe2.python.optimizer_context import DEFAULT_OPTIM, OptimizerContext, UseOptimizer
from caffe2.python.regularizer import RegularizationBy as By
from caffe2.python.regularizer_context import RegularizerContext, UseRegularizer


@pytest.mark.parametrize("use, context_class, kind", [
    (UseOptimizer, OptimizerContext, "optimizer"),
    (UseRegularizer, RegularizerContext, "regularizer"),
    (UseNormalizer, NormalizerContext, "normalizer"),
])  # fmt: skip
def test_names_of_modifiers(use, context_class, kind):
    def current():
        there = context_class.current()
        return getattr(there, f"get_{kind}"), getattr(there, f"has_{kind}")

    first, second, third = object(), object(), object()
    with use(first):
        with use({"x": second, DEFAULT_OPTIM: third}):
            get, has = current()
            assert (get("x"), get(DEFAULT_OPTIM)) == (second, third) and not has("y")
        get, has = current()
        assert get(DEFAULT_OPTIM) is first and not has("x")
    get, _ = current()
    with pytest.raises(AssertionError, match=f"x {kind} is not provided!"):
        get("x")


def test_shared_parameters():
    """The names that the original gives."""
    get = parameter_sharing_context.get_parameter_name

    def names(shared, scopes):
        with ParameterSharing(shared):
            found = []
            for scope in scopes:
                with core.NameScope(scope):
                    found.append(get("w"))
            return found

    scopes = ("a", "b", "a/b", "a/b/c")
    assert names({"a": "b", "b": "c"}, scopes) == ["c/w", "c/w", "c/b/w", "c/b/c/w"]
    assert names({"a/b": "a"}, scopes) == ["a/w", "b/w", "a/w", "a/c/w"]
    assert names({"a": "c", "a/b": "d"}, scopes) == ["c/w", "b/w", "d/w", "d/c/w"]
    assert names({"a": ""}, ["a"]) == ["w"]
    with core.NameScope("a"):
        assert names({"b": "c"}, ["b", "x/b"]) == ["a/c/w", "a/x/b/w"]
        assert get("w") == "a/w"
    with pytest.raises(AssertionError, match="a is prefix of a/b"):
        names({"a": "a/b"}, ["a"])
    with pytest.raises(AssertionError, match="stands for itself"):
        names({"a": "b", "b": "a"}, ["a"])


def test_layers_share_parameters():
    model = model_helper.ModelHelper(name="shared")
    with core.NameScope("q"), ParameterSharing({"one": "two"}):
        for scope in ("one", "two"):
            with core.NameScope(scope):
                brew.fc(model, "x", "f", 3, 4)
    assert model.params == ["q/two/f_w", "q/two/f_b"]
    assert [list(op.input) for op in model.net.Proto().op] == [
        ["q/one/x", "q/two/f_w", "q/two/f_b"],
        ["q/two/x", "q/two/f_w", "q/two/f_b"],
    ]


def regularized(regularizer, by, sparse=False):
    net, init = core.Net("net"), core.Net("init")
    grad = core.GradientSlice(*map(core.BlobReference, "ig")) if sparse else None
    out = regularizer(net, init, core.BlobReference("w"), grad, by=by)
    return [operator_line(op) for op in net.Proto().op], out


def test_rows_are_made_smaller():
    lines, out = regularized(regularizers.SparseL1Norm(0.25), By.AFTER_OPTIMIZER, sparse=True)
    assert lines == ["w = SparseLpRegularizer(w, i, p=1, reg_lambda=0.25)"] and out is None
    lines, _ = regularized(regularizers.SparseL2Norm(0.5), By.AFTER_OPTIMIZER, sparse=True)
    assert lines == ["w = SparseLpRegularizer(w, i, p=2, reg_lambda=0.5)"]
    assert regularized(regularizers.SparseL1Norm(0.25), By.ON_LOSS) == ([], None)
    with pytest.raises(NotImplementedError, match="not supported for dense"):
        regularized(regularizers.SparseL1Norm(0.25), By.AFTER_OPTIMIZER)
    workspace.FeedBlob("w", np.float32([[1, -2], [3, 4]]))
    workspace.FeedBlob("i", np.int64([0]))
    net = core.Net("shrink")
    grad = core.GradientSlice("i", "g")
    shrink = regularizers.SparseL1Norm(1.5)
    shrink(net, core.Net("init"), core.BlobReference("w"), grad, by=By.AFTER_OPTIMIZER)
    workspace.RunNetOnce(net)
    assert workspace.FetchBlob("w").tolist() == [[0, -0.5], [3, 4]]


def test_regularizers_refuse_nonsense():
    for wrong, message in (
        (lambda: regularizers.L1Norm(-1), "reg_lambda is -1"),
        (lambda: regularizers.LpNorm(1, 0), "p_value is 0"),
        (lambda: regularizers.L1NormTrimmed(1, 0), "k is 0"),
        (lambda: regularizers.MaxNorm(0), "norm is 0"),
        (lambda: regularizers.SparseLpNorm(3.0, 1), "p = 1.0 and p = 2.0"),
        (lambda: regularizers.BoundedGradientProjection(2, 1), "invalid range"),
        (lambda: regularizers.GroupL1Norm(1, []), "groups is"),
        (lambda: regularizers.LogBarrier(0), "reg_lambda is 0"),
        (lambda: regularized(regularizers.L1Norm(1), "somewhere"), "by is 'somewhere'"),
    ):
        with pytest.raises(AssertionError, match=message):
            wrong()


def test_normalizers_hold_options():
    assert vars(normalizers.BatchNormalizer(0.9)) == {"_momentum": 0.9, "_scale_init_value": 1.0}
    assert vars(normalizers.LayerNormalizer(1e-4, False)) == {
        "_epsilon": 1e-4, "_use_layer_norm_op": False, "_scale_init_value": 1.0,
    }  # fmt: skip


def test_optimizers_of_a_block_update_its_layers():
    """By tag, or all of them."""
    model = model_helper.ModelHelper(name="model")
    outer, weight = optimizer.SgdOptimizer(0.1), optimizer.AdagradOptimizer(alpha=0.5)
    with UseOptimizer(outer):
        brew.fc(model, "x", "f", 3, 4)
        with UseOptimizer({"WEIGHT": weight}):
            brew.fc(model, "f", "g", 4, 2)
    brew.fc(model, "g", "h", 2, 2)
    chosen = [model.get_param_info(param).optimizer for param in model.params]
    assert chosen == [outer, outer, weight, outer, None, None]


def test_parameters_may_be_appended_by_hand():
    model = model_helper.ModelHelper(name="model")
    w = model.param_init_net.UniformFill([], "w", shape=[3])
    model.params.append(w)
    model.AveragedLoss(w, "loss")
    model.AddGradientOperators(["loss"])
    optimizer.build_sgd(model, 0.1)
    assert "w" in model.net.Proto().op[-1].output
    assert sorted([w, core.BlobReference("a")]) == ["a", "w"]
