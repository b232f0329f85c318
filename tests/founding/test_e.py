"""Rows E of the founding documents: optimizers."""

import inspect

import numpy as np
import pytest

from caffe2.python import brew, core, model_helper, optimizer, workspace
from caffe2.python.learning_rate_scheduler import ExponentialLR, StepLR, plot

F4 = np.float32


@pytest.fixture(autouse=True)
def numbers_from_zero():
    optimizer.reset_optimizer_instance_count()
    workspace.ResetWorkspace()


def feed(**blobs):
    for name, value in blobs.items():
        workspace.FeedBlob(name, np.asarray(value))


def fetch(name):
    return workspace.FetchBlob(name)


def small_model():
    model = model_helper.ModelHelper(name="train")
    brew.fc(model, "x", "f", 3, 4)
    model.SoftmaxWithLoss(["f", "label"], ["softmax", "loss"])
    return model


def losses(model, runs=20):
    """The loss of each run, after the init net."""
    feed(x=F4([[1, 2, 3], [-1, 0, 2]]), label=np.int32([1, 3]))
    workspace.RunNetOnce(model.param_init_net)
    workspace.CreateNet(model.net, overwrite=True)
    found = []
    for _ in range(runs):
        workspace.RunNet(model.net)
        found.append(float(fetch("loss")))
    return found


class TestE1:
    def test_momentum_by_hand_is_the_fused_one(self):
        """v = mu v + (1 - beta) g and theta -= lr v, from WeightedSum and Sub."""
        rng = np.random.default_rng(1)
        param, grad = rng.normal(size=(2, 3, 4)).astype(F4)
        feed(param=param, grad=grad, velocity=np.zeros((3, 4), F4), mu=F4([0.9]),
             one_minus_beta=F4([1]), lr=F4([0.1]))  # fmt: skip
        feed(fused=param, buffer=np.zeros((3, 4), F4))
        by_hand = [
            core.CreateOperator(
                "WeightedSum", ["velocity", "mu", "grad", "one_minus_beta"], ["velocity"]
            ),
            core.CreateOperator("Mul", ["velocity", "lr"], ["lr_velocity"], broadcast=1),
            core.CreateOperator("Sub", ["param", "lr_velocity"], ["param"]),
        ]
        fused = core.CreateOperator(
            "MomentumSGDUpdate", ["grad", "buffer", "lr", "fused"], ["step", "buffer", "fused"],
            momentum=0.9,
        )  # fmt: skip
        for _ in range(3):
            workspace.RunOperatorsOnce([*by_hand, fused])
        np.testing.assert_allclose(fetch("param"), fetch("fused"), rtol=1e-5)
        # 1 + 1.9 + 2.71 times 0.1
        np.testing.assert_allclose(fetch("param"), param - 0.561 * grad, rtol=1e-4, atol=1e-6)


class TestE2:
    def test_adam_of_one_parameter(self):
        rng = np.random.default_rng(2)
        param, grad = rng.normal(size=(2, 5)).astype(F4)
        feed(w=param, w_grad=grad)
        config = {"base_learning_rate": 1e-3, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8}
        ops = optimizer.build_adam_sgd(
            core.BlobReference("w"), core.BlobReference("w_grad"), **config
        )
        assert "Adam" in [op.type for op in ops]
        m, v, expected = np.zeros(5), np.zeros(5), param.astype(np.float64)
        workspace.RunOperatorsOnce(ops)
        # The counter is 1 at the first run, as in all nets that an optimizer has built.
        for t in (2, 3, 4):
            m, v = 0.9 * m + 0.1 * grad, 0.999 * v + 0.001 * grad.astype(np.float64) ** 2
            right = np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
            expected -= 1e-3 * right * m / (np.sqrt(v) + 1e-8)
            np.testing.assert_allclose(fetch("w"), expected, rtol=1e-4, atol=1e-6)
            workspace.RunOperatorsOnce(ops)
        assert fetch("optimizer_iteration").tolist() == [4]

    def test_state_lives_in_blobs(self):
        model = small_model()
        model.AddGradientOperators(["loss"])
        built = optimizer.build_adam(model, base_learning_rate=1e-3, weight_decay=1e-4,
                                     beta1=0.9, beta2=0.999, epsilon=1e-8)  # fmt: skip
        losses(model, 1)
        states = built.get_auxiliary_parameters()
        assert [str(blob) for blob in states.local] == [
            "f_w_first_moment", "f_w_second_moment", "f_b_first_moment", "f_b_second_moment",
        ]  # fmt: skip
        assert all(np.abs(fetch(blob)).max() > 0 for blob in states.local)

    def test_helpers_and_small_states(self):
        feed(iter=np.int64([3]))
        workspace.RunOperatorOnce(core.CreateOperator("AccumulateStats", ["iter"], ["iter"]))
        assert fetch("iter").tolist() == [4]
        # Of 8 bits: the first step is exact, later ones are within a part in 254 of the largest.
        grad = F4([1, -0.5, 0.25])
        feed(p=np.zeros(3, F4), g=grad, m=np.zeros(3, np.int8), s=np.zeros(1, F4), lr=F4([0.1]))
        step = core.CreateOperator(
            "Fused8BitMomentum", ["p", "g", "m", "s", "lr"], ["p", "m", "s"], momentum=0.5
        )
        workspace.RunOperatorOnce(step)
        np.testing.assert_allclose(fetch("p"), -0.1 * grad, rtol=1e-6)
        assert fetch("m").tolist() == [127, -64, 32]  # -63.5 and 31.75, to the nearest
        workspace.RunOperatorOnce(step)
        np.testing.assert_allclose(fetch("p"), -0.25 * grad, atol=0.1 / 254)
        half = np.float16
        feed(p=half([1]), m=F4([0]), v=F4([0]), g=half([1e-4]), lr=F4([-0.1]), iter=np.int64([0]))
        workspace.RunOperatorOnce(
            core.CreateOperator(
                "AdamFP16", ["p", "m", "v", "g", "lr", "iter"], ["p", "m", "v"], epsilon=0.0
            )
        )
        assert fetch("p").tolist() == [half(0.9)]


class TestE3:
    def test_update_operators(self):
        opt = optimizer.SgdOptimizer(base_learning_rate=0.01, momentum=0.9)
        feed(w=F4([1, 2]), w_grad=F4([1, -1]))
        train_net = core.Net("train_net")
        train_net.AddExternalInput("w", "w_grad")
        for param, grad in {"w": "w_grad"}.items():
            train_net.AppendNet(opt.get_update_ops(param, grad))
        assert fetch("w_momentum").tolist() == [0, 0]
        workspace.CreateNet(train_net)
        for _ in range(2):
            feed(w_grad=F4([1, -1]))
            workspace.RunNet(train_net)
        # Nesterov: 0.019 and 0.0271 off
        np.testing.assert_allclose(fetch("w"), [1 - 0.0461, 2 + 0.0461], rtol=1e-5)
        # State that exists stays.
        before = fetch("w_momentum")
        opt.get_update_ops("w", "w_grad")
        assert (fetch("w_momentum") == before).all() and before[0] != 0

    def test_defaults(self):
        def default(kind, name):
            return inspect.signature(kind.__init__).parameters[name].default

        sgd, adam = optimizer.SgdOptimizer, optimizer.AdamOptimizer
        assert (default(sgd, "base_learning_rate"), default(sgd, "momentum")) == (0.01, 0.0)
        assert [default(adam, name) for name in ("beta1", "beta2", "epsilon")] == [
            0.9, 0.999, 1e-8,
        ]  # fmt: skip
        rms = optimizer.RmsPropOptimizer
        assert (default(rms, "decay"), default(rms, "momentum")) == (0.9, 0.0)


class TestE4:
    def test_schedules(self):
        step = StepLR(step_size=30, gamma=0.1)
        np.testing.assert_allclose(
            step.rates([0, 29, 30, 60], 0.01), [0.01, 0.01, 0.001, 0.0001], rtol=1e-6
        )
        np.testing.assert_allclose(ExponentialLR(gamma=0.98).rates([0, 2]), [1, 0.9604], rtol=1e-6)

    def test_scaled_automatically(self):
        train_model = small_model()
        with train_model.param_init_net() as init_net:
            init_net.ConstantFill([], "iter", value=0, dtype=core.DataType.INT32)
        train_model.AddGradientOperators(["loss"])
        opt = optimizer.AdamOptimizer(alpha=1e-3)
        opt.auto_scale_lr(policy="step", stepsize=2, stepscale=0.1)
        opt.build(train_model)
        losses(train_model, 1)
        assert fetch("iter").dtype == np.int32
        rates = []
        for _ in range(5):
            rates.append(float(fetch("AdamOptimizer_0_lr_cpu")))
            workspace.RunNet(train_model.net)
        np.testing.assert_allclose(rates, [-1e-3, -1e-4, -1e-4, -1e-5, -1e-5], rtol=1e-5)

    @pytest.mark.parametrize("policy, args, rates", [
        ("fixed", {}, [1, 1]),
        ("step", {"stepsize": 2, "stepscale": 0.5}, [0.5, 0.25]),
        ("exp", {"gamma": 0.5}, [0.125, 1 / 32]),
        ("inv", {"gamma": 1.0, "power": 2.0}, [1 / 16, 1 / 36]),
    ])  # fmt: skip
    def test_policies(self, policy, args, rates):
        opt = optimizer.SgdOptimizer(1.0)
        opt.auto_scale_lr(policy=policy, **args)
        feed(w=F4([0]), g=F4([0]))
        ops = opt.get_update_ops("w", "g")
        (name,) = (op.output[0] for op in ops if op.type == "LearningRate")
        for iteration, right in zip((3, 5), rates, strict=True):
            feed(optimizer_iteration=np.int64([iteration - 1]))
            workspace.RunOperatorsOnce(ops)
            np.testing.assert_allclose(fetch(name), -right, rtol=1e-6)

    def test_a_schedule_is_refused_early(self):
        opt = optimizer.SgdOptimizer(1.0)
        with pytest.raises(ValueError, match="stepsize"):
            opt.auto_scale_lr(policy="step", stepscale=0.1)
        with pytest.raises(TypeError, match="stepsiz"):
            opt.auto_scale_lr(policy="step", stepsiz=3)
        opt.auto_scale_lr(ExponentialLR(0.5))
        assert (opt.policy, opt.init_kwargs) == ("exp", {"gamma": 0.5})

    def test_picture(self):
        class Axes:
            def __init__(self):
                self.lines = {}

            def plot(self, x, y, label):
                self.lines[label] = (list(x), list(y))

            def __getattr__(self, name):
                return lambda *args: None

        axes = plot({"steps": StepLR(2, 0.5)}, iterations=4, base_lr=2.0, axes=Axes())
        assert axes.lines == {"steps": ([0, 1, 2, 3], [2, 2, 1, 1])}


class TestE6:
    @pytest.mark.parametrize("clip_norm, scale", [(10.0, 1.0), (0.05, None)])
    def test_gradients_are_clipped_by_their_norm(self, clip_norm, scale):
        def gradients(clip):
            optimizer.reset_optimizer_instance_count()
            model = small_model()
            model.AddGradientOperators(["loss"])
            if clip:
                optimizer.add_clip_gradient_norm(model, clip_norm=clip_norm)
            feed(x=F4([[1, 2, 3], [-1, 0, 2]]), label=np.int32([1, 3]))
            feed(f_w=np.ones((4, 3), F4), f_b=np.zeros(4, F4))
            workspace.RunNetOnce(model.net)
            return np.concatenate([fetch("f_w_grad").ravel(), fetch("f_b_grad")])

        plain, clipped = gradients(False), gradients(True)
        norm = float(np.linalg.norm(plain))
        assert 0.05 < norm < 10
        expected = plain * (scale or clip_norm / norm)
        np.testing.assert_allclose(clipped, expected, rtol=1e-5, atol=1e-7)


class LionOptimizer(optimizer.Optimizer):
    """The optimizer of 5.4.1."""

    def __init__(self, beta1=0.9, beta2=0.99, weight_decay=0.0):
        super().__init__()
        self.beta1 = beta1
        self.beta2 = beta2
        self.weight_decay = weight_decay

    def get_update_op(self, param, param_grad):
        mom = self._get_momentum_name(param)
        if not workspace.HasBlob(mom):
            workspace.FeedBlob(mom, np.zeros_like(workspace.FetchBlob(param)))
        return [
            core.CreateOperator(
                "LionUpdate", [param, param_grad, mom], [param, mom],
                beta1=self.beta1, beta2=self.beta2, wd=self.weight_decay,
            )
        ]  # fmt: skip


class TestE7:
    def test_own_rule_by_name(self):
        optimizer.register_optimizer("lion of the documents", LionOptimizer)
        model = small_model()
        model.AddGradientOperators(["loss"])
        feed(x=F4([[1, 2, 3], [-1, 0, 2]]), label=np.int32([1, 3]))
        workspace.RunNetOnce(model.param_init_net)
        optimizer.build_optimizer(model, "lion of the documents", weight_decay=0.01)
        before = fetch("f_w")
        workspace.CreateNet(model.net, overwrite=True)
        workspace.RunNet(model.net)
        # The sign of the gradient times 1e-4, and decay.
        step = np.sign(fetch("f_w_grad")) + 0.01 * before
        np.testing.assert_allclose(fetch("f_w"), before - 1e-4 * step, rtol=1e-4, atol=1e-7)
        first = float(fetch("loss"))
        for _ in range(200):
            workspace.RunNet(model.net)
        assert float(fetch("loss")) < first

    def test_only_named_rows_change(self):
        before = np.arange(12, dtype=F4).reshape(4, 3)
        feed(param=before, grad_idx=np.int64([2, 0]), grad_value=np.ones((2, 3), F4),
             velocity=np.zeros((4, 3), F4))  # fmt: skip
        op = core.CreateOperator(
            "SparseMomentumSGD", ["param", "grad_idx", "grad_value", "velocity"],
            ["param", "velocity"], momentum=0.5, lr=0.5,
        )  # fmt: skip
        workspace.RunOperatorsOnce([op, op])
        change = fetch("param") - before
        assert change[[1, 3]].tolist() == [[0, 0, 0]] * 2
        np.testing.assert_allclose(change[[0, 2]], -1.25)  # 0.5, then 0.75
