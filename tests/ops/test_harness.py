"""The harness is tested by planted faults: each must fail, with a message that names it."""

import dataclasses

import numpy as np
import pytest

from caffe2 import ops
from caffe2.ops.declaration import OpView, Spec
from caffe2.testing import (
    Case,
    Normal,
    NumpyRunner,
    Operation,
    RefusedError,
    any_shape,
    check,
    check_gradient,
    distinct,
    exactly,
    floats,
)

RELU = Case("Relu", X=floats(any_shape, away=0.1))
FC = Case("FC", X=floats("N", "K"), W=floats("M", "K"), b=floats("M"))
MOMENTUM = Case(
    "MomentumSGD",
    args={"momentum": 0.9},
    grad=floats(any_shape),
    moment=floats(any_shape),
    lr=floats(1),
)
GAUSSIAN = Case("GaussianFill", args={"shape": [100, 50]}, distribution=Normal(0, 1))
ITER = Case("Iter", iter=exactly([5], np.int64))


class Broken:
    """A runner whose sessions go through `wrap(run, session, operation)`."""

    def __init__(self, wrap):
        self._wrap = wrap
        self._inner = NumpyRunner()

    def session(self):
        return _BrokenSession(self._inner.session(), self._wrap)

    def variants(self):
        for _ in range(2):
            yield self.session()

    def native(self, type):
        return True


class _BrokenSession:
    def __init__(self, inner, wrap):
        self.feed, self.fetch, self.seed = inner.feed, inner.fetch, inner.seed
        self._inner, self._wrap = inner, wrap

    def run(self, operation):
        self._wrap(self._inner.run, self, operation)


def changed(type, **fields):
    return {type: dataclasses.replace(ops.find(type), **fields)}


def fails(case, match, *, runner=None, declarations=None):
    with pytest.raises(AssertionError, match=match):
        check(case, runner, declarations)


def after(change):
    """A runner that changes the first output after each run."""

    def wrap(run, session, operation):
        run(operation)
        name = operation.outputs[0]
        session.feed(name, change(session.fetch(name)))

    return Broken(wrap)


def test_sound_ones_pass():
    for case in (RELU, FC, MOMENTUM, GAUSSIAN, ITER):
        check(case)
        check(case, Broken(lambda run, session, operation: run(operation)))


# Kernels


def test_wrong_value():
    def last_wrong(y):
        y = y.copy()
        if y.size > 16:
            y.reshape(-1)[-1] += 0.01  # the tail of a vector loop
        return y

    fails(RELU, r"Relu: value: out_Y_0 is .* right is", runner=after(last_wrong))


def test_nan_instead_of_a_number():
    fails(RELU, "Relu: value: .*nan", runner=after(lambda y: y * np.float32(np.nan)))


TINY = Case("Scale", args={"scale": 1e-7}, X=floats(any_shape))


def test_zeros_instead_of_tiny_values():
    fails(TINY, "Scale: value: out_Y_0 is -?0.0 at .* right is", runner=after(lambda y: y * 0))


def test_wrong_type():
    fails(RELU, "Relu: value: .* has type float64", runner=after(lambda y: y.astype(float)))


def test_wrong_shape():
    fails(RELU, "Relu: value: .* has shape", runner=after(lambda y: y.reshape(-1)))


def test_empty_input_refused():
    def wrap(run, session, operation):
        if any(
            session.fetch(name).size == 0 for name in operation.inputs if name != "no_such_blob"
        ):
            raise RefusedError(f"{operation.type}: is empty")
        run(operation)

    fails(RELU, "Relu: value: good input is refused", runner=Broken(wrap))


def test_input_changed():
    def wrap(run, session, operation):
        run(operation)
        if "X" in operation.inputs and session.fetch("X").size:
            session.feed("X", session.fetch("X") + 1)

    fails(RELU, "Relu: inputs: X is changed", runner=Broken(wrap))


def test_stale_output():
    def wrap(run, session, operation):
        try:
            before = session.fetch(operation.outputs[0])
        except KeyError:
            before = 0
        run(operation)
        y = session.fetch(operation.outputs[0])
        if np.shape(before) == y.shape:
            session.feed(operation.outputs[0], y + before)

    fails(RELU, "Relu: repeated run", runner=Broken(wrap))


def test_bits_differ_between_runs():
    rng = np.random.default_rng(1)

    def jitter(y):
        return (y * (1 + rng.uniform(0, 1e-6))).astype(np.float32)

    fails(RELU, "Relu: determinism: bits differ", runner=after(jitter))


# In place


def test_wrong_in_place():
    def wrap(run, session, operation):
        run(operation)
        if operation.outputs[0] in operation.inputs:
            session.feed(operation.outputs[0], session.fetch(operation.outputs[0]) * 2)

    fails(RELU, r"Relu: in-place \(0, 0\): .* right is", runner=Broken(wrap))


def test_allowed_in_place_refused():
    fails(
        RELU,
        r"Relu: in-place \(0, 0\): good input is refused",
        runner=NumpyRunner(changed("Relu", inplace=())),
    )


def test_forbidden_in_place_runs():
    fails(
        FC,
        "FC: bad input: output 0 in the blob of input 1 is not refused",
        runner=NumpyRunner(changed("FC", inplace=((1, 0),))),
    )


def test_second_output_wrong_in_place():
    def wrap(run, session, operation):
        run(operation)
        if operation.outputs[1] in operation.inputs:
            name = operation.outputs[1]
            session.feed(name, session.fetch(name) + 1)

    fails(MOMENTUM, r"MomentumSGD: in-place \(1, 1\)", runner=Broken(wrap))


# Shape rules


def test_wrong_shape_rule():
    def shape(X: Spec) -> Spec:
        return Spec((*X.shape[:-1], X.shape[-1] + 1) if X.shape else X.shape, X.dtype)

    fails(
        RELU, "Relu: shape rule: says .* the run gives", declarations=changed("Relu", shape=shape)
    )


def test_wrong_type_in_shape_rule():
    def shape(X: Spec) -> Spec:
        return Spec(X.shape, np.dtype(np.float64))

    fails(RELU, "Relu: shape rule: says float64", declarations=changed("Relu", shape=shape))


def test_shape_rule_refuses_nothing():
    def shape(X: Spec, W: Spec, b: Spec) -> Spec:
        return Spec((X.shape[0], W.shape[0]), X.dtype)

    def reference(X, W, b):
        return (X[:, : W.shape[1]] @ W[:, : X.shape[1]].T + b.reshape(-1)[: W.shape[0]]).astype(
            "f4"
        )

    fails(
        FC,
        r"FC: bad input: input \w of shape .* is not refused",
        declarations=changed(
            "FC", shape=shape, reference=reference, gradient=ops.find("Iter").gradient
        ),
    )


# Bodies and gradients


def test_body_of_another_type():
    def reference(X):
        return np.maximum(X, 0).astype(np.float64)

    fails(RELU, "Relu: shape rule: says float32", declarations=changed("Relu", reference=reference))


def test_wrong_gradient_body():
    def reference(Y, dY):
        return np.where(Y > 0, dY, 0.01 * dY)

    fails(
        RELU,
        "Relu: gradient: gradient of input X is .* numeric",
        declarations=changed("ReluGradient", reference=reference),
    )


def test_gradient_rule_swaps_inputs():
    def gradient(op):
        return op.make("ReluGradient", [op.grad(0), op.output(0)], [op.input_grad(0)])

    fails(
        RELU, "Relu: gradient: gradient of input X", declarations=changed("Relu", gradient=gradient)
    )


def test_gradient_rule_forgets_an_input():
    def gradient(op):
        inputs = [op.input(0), op.input(1), op.grad(0)]
        return op.make("FCGradient", inputs, [op.input_grad(1), op.input_grad(2)])

    fails(FC, "FC: gradient: .*input X no gradient", declarations=changed("FC", gradient=gradient))


def test_gradient_rule_swaps_outputs():
    def gradient(op):
        inputs = [op.input(0), op.input(1), op.grad(0)]
        return op.make("FCGradient", inputs, [op.input_grad(0), op.input_grad(2), op.input_grad(1)])

    fails(
        FC,
        "FC: gradient: gradient of input X has shape",
        declarations=changed("FC", gradient=gradient),
    )


def test_gradient_rule_makes_an_unknown_operator():
    def gradient(op):
        return op.make("ReluGradeint", [op.output(0), op.grad(0)], [op.input_grad(0)])

    fails(
        RELU,
        "Relu: gradient: .*ReluGradeint.*ReluGradient",
        declarations=changed("Relu", gradient=gradient),
    )


def test_gradient_drops_arguments():
    def gradient(op):
        return op.make("Scale", [op.grad(0)], [op.input_grad(0)], copy_args=False)

    scale = Case("Scale", args={"scale": 3.0}, X=floats(any_shape))
    fails(
        scale,
        "Scale: gradient: gradient of input X",
        declarations=changed("Scale", gradient=gradient),
    )


def test_zeros_instead_of_a_tiny_gradient():
    def gradient(op):
        return op.make("Scale", [op.grad(0)], [op.input_grad(0)], scale=0.0)

    fails(
        TINY,
        "Scale: gradient: gradient of input X is 0 at .* numeric",
        declarations=changed("Scale", gradient=gradient),
    )


def test_a_gradient_of_nothing_but_nan():
    def reference(Y, dY):
        return np.full_like(dY, np.nan)

    fails(
        RELU,
        "Relu: gradient: gradient of input X is nan at .* numeric",
        declarations=changed("ReluGradient", reference=reference),
    )


def test_native_gradient_differs():
    def wrap(run, session, operation):
        run(operation)
        if operation.type == "FCGradient":
            session.feed(operation.outputs[1], session.fetch(operation.outputs[1]) * 1.01)

    fails(FC, "FC: gradient: FCGradient: b_grad in the session", runner=Broken(wrap))


def test_gradient_at_a_kink_is_seen():
    operation = Operation("MaxPool", ("X",), ("Y",), {"kernel": 2})
    with pytest.raises(AssertionError, match="gradient of input X"):
        check_gradient(operation, {"X": np.zeros((1, 1, 3, 3))})


# Bad input


def test_argument_out_of_range_runs():
    pool = Case("MaxPool", args={"kernel": 2}, X=distinct(1, 1, 4, 4))
    args = {**ops.find("MaxPool").args, "stride": ops.find("Conv").args["pad"]}
    fails(
        pool,
        "MaxPool: bad input: argument stride=0 is not refused",
        runner=NumpyRunner(changed("MaxPool", args=args, shape=_any_shape_rule, reference=_copy)),
        declarations=changed(
            "MaxPool", shape=_any_shape_rule, reference=_copy, gradient=ops.find("Iter").gradient
        ),
    )


def _any_shape_rule(X: Spec) -> Spec:
    return X


def _copy(X):
    return X.copy()


def test_wrong_type_runs():
    fails(
        RELU,
        "Relu: bad input: input X of type DOUBLE is not refused",
        runner=NumpyRunner(changed("Relu", types={})),
    )


def test_too_many_blobs_run():
    fails(
        RELU,
        "Relu: bad input: too many inputs is not refused",
        runner=NumpyRunner(
            changed(
                "Relu",
                inputs=dataclasses.replace(ops.find("Relu").inputs, variadic=True),
                reference=lambda *X: np.maximum(X[0], 0),
                shape=lambda *X: X[0],
            )
        ),
    )


def test_error_without_the_operator():
    def wrap(run, session, operation):
        try:
            run(operation)
        except RefusedError:
            raise RefusedError("something is wrong") from None

    fails(RELU, "Relu: bad input: .* does not name the operator: something", runner=Broken(wrap))


def test_output_written_before_the_error():
    def wrap(run, session, operation):
        try:
            run(operation)
        except RefusedError:
            for name in operation.outputs:
                if name not in operation.inputs:
                    session.feed(name, np.zeros(3, np.float32))
            raise

    fails(RELU, "Relu: bad input: .* changes output", runner=Broken(wrap))


def test_input_written_before_the_error():
    def wrap(run, session, operation):
        try:
            run(operation)
        except RefusedError:
            if "b" in operation.inputs:
                session.feed("b", np.zeros(3, np.float32))
            raise

    fails(FC, "FC: bad input: .* changes input b", runner=Broken(wrap))


def test_session_unusable_after_an_error():
    def wrap(run, session, operation):
        try:
            if hasattr(session, "dead"):
                raise RefusedError(f"{operation.type}: out of order")
            run(operation)
        except RefusedError:
            session.dead = True
            raise

    fails(RELU, "Relu: good input after bad .*: good input is refused", runner=Broken(wrap))


def test_a_crash_is_no_refusal():
    def wrap(run, session, operation):
        try:
            run(operation)
        except RefusedError as error:
            raise ZeroDivisionError from error

    with pytest.raises(ZeroDivisionError):
        check(RELU, Broken(wrap))


# Random operators


def test_wrong_spread():
    fails(
        GAUSSIAN,
        "GaussianFill: distribution: its variance",
        runner=after(lambda y: y * np.float32(1.1)),
    )


def test_wrong_mean():
    fails(
        GAUSSIAN,
        "GaussianFill: distribution: its mean",
        runner=after(lambda y: y + np.float32(0.1)),
    )


def test_wrong_kind_of_distribution():
    def reference(input, op: OpView):
        return (op.rng.uniform(-(3**0.5), 3**0.5, op.args.shape)).astype(np.float32)

    fails(
        GAUSSIAN,
        "GaussianFill: distribution: its cumulated share",
        declarations=changed("GaussianFill", reference=reference),
    )


def test_dependent_values():
    def reference(input, op: OpView):
        drawn = op.rng.normal(0, 1, (100, 25))
        return np.repeat(drawn, 2, axis=1).astype(np.float32)

    fails(
        GAUSSIAN,
        "GaussianFill: distribution: neighbours are correlated",
        declarations=changed("GaussianFill", reference=reference),
    )


def test_infinite_values():
    def one_infinite(y):
        y = y.copy()
        y.reshape(-1)[3] = np.inf
        return y

    fails(
        GAUSSIAN,
        "GaussianFill: distribution: some values are not finite",
        runner=after(one_infinite),
    )


def test_seed_ignored():
    rng = np.random.default_rng(1)
    fails(
        GAUSSIAN,
        "GaussianFill: determinism: one seed",
        runner=after(lambda y: rng.normal(size=y.shape).astype(np.float32)),
    )


def test_same_numbers_in_every_run():
    def wrap(run, session, operation):
        session.seed(1)
        run(operation)

    fails(GAUSSIAN, "GaussianFill: seeds: two runs", runner=Broken(wrap))


def test_same_numbers_for_every_seed():
    class Unseeded(Broken):
        def session(self):
            session = super().session()
            seed = session.seed
            session.seed = lambda number: seed(0)
            return session

    runner = Unseeded(lambda run, session, operation: run(operation))
    fails(GAUSSIAN, "GaussianFill: seeds: two seeds", runner=runner)


# Stateful operators


def test_state_not_kept():
    def wrap(run, session, operation):
        before = session.fetch("iter") if "iter" in operation.inputs else None
        run(operation)
        if before is not None and before == 6:
            session.feed("iter", before)

    fails(ITER, "Iter: run 1: .* right is 7", runner=Broken(wrap))


def test_unknown_kind_has_no_contract():
    fails(RELU, "kind control has no contract", declarations=changed("Relu", kind="control"))
