"""Rules of optimizers."""

import numpy as np

from caffe2 import ops
from caffe2.testing import Bad, Case
from caffe2.testing.cases import Maker, any_shape, exactly, floats, integers

F4, F8, I4, I8 = np.float32, np.float64, np.int32, np.int64
LR = exactly([-0.125], F4)
FEWER = Bad("a negative iteration", {"iter": I8([-1])})


def state(low=-1.0, high=1.0):
    return floats(any_shape, low=low, high=high)


def inputs(type):
    """The names of the inputs that the operator needs."""
    names = ops.find(type).inputs
    return names.names[: names.least]


def dense(type, title="", args=None, outputs=None, iter=None, bad=(), tolerance=1e-5, **states):
    """A rule for one shape.  Parameters lie beyond what is added to them: one that cancels is
    rounding and no more."""
    known = {"param": state(4, 8), "grad": state(), "moment": state(0.5, 1),
             "moment_1": state(), "moment_2": state(0.5, 1), "lr": LR}  # fmt: skip
    return Case(type, title=title, args=args, outputs=outputs, bad=bad, tolerance=tolerance, **{
        name: states.get(name, known.get(name, exactly([2 if iter is None else iter], I8)))
        for name in inputs(type)})  # fmt: skip


def rows(type, title="", args=None, outputs=None, bad=(), dtype="i8", width="W", **states):
    """A rule for the rows 1, 3, 1 of five."""
    known = {
        "param": floats(5, width, low=4, high=8),
        "moment": floats(5, width, low=0.5, high=1),
        "moment_1": floats(5, width),
        "moment_2": floats(5, width, low=0.5, high=1),
        "moment_delta": floats(5, width, low=0.5, high=1),
        "indices": exactly([1, 3, 1], dtype),
        "grad": floats(3, width),
        "lr": LR,
        "iter": exactly([2], I8),
    }
    index, value = ("grad_idx", "grad_value") if "grad_idx" in states else ("indices", "grad")
    wrong = [Bad("an index too large", {index: np.array([1, 5, 1], dtype)}),
             Bad("a negative index", {index: np.array([1, -1, 1], dtype)}),
             Bad("too few indices", {index: np.array([1, 3], dtype)}),
             Bad("rows of another width", {value: np.ones((3, 100), F4)})]  # fmt: skip
    made = {name: states.get(name, known.get(name)) for name in inputs(type)}
    made.update({name: maker for name, maker in states.items() if name not in made})
    return Case(type, title=title, args=args, outputs=outputs, bad=[*wrong, *bad], **made)


def pairs():
    """Two positive numbers for each of var, in any shape."""
    return Maker((), lambda draw, shape: np.asarray(
        draw.rng.uniform(0.25, 1, (*draw.made["var"].shape, 2)), F4), late=True)  # fmt: skip


HALF = 2.0**-10  # two units in the last place: rounding may go either way
ONE = floats(1, low=1, high=2)
FTRL = {"alpha": 0.5, "beta": 0.75, "lambda1": 0.25, "lambda2": 0.5}
COMPOSITE = [
    Bad("no policy at all", args={"sub_policy_num_iters": []}),
    Bad("a policy too few", args={"sub_policy_num_iters": [4, 6, 8]}),
    Bad("no iterations", args={"sub_policy_num_iters": [0, 6]}),
    Bad("one in the other", args={"sub_policy_0_policy": "composite"}),
    Bad("what a later policy lacks", args={"sub_policy_1_policy": "poly"}),
]


def yellow_fin(title, args, step):
    return Case("YellowFin", title=title, args={"curv_win_width": 4, **args}, param=state(4, 8),
                moment=state(), lr=floats(1, low=0.25), mu=floats(1, low=0.25),
                curv_win=floats(4), g_avg=floats(any_shape, low=-0.1, high=0.1),
                g2_avg=state(0.5, 1), scalars_memory=floats(5, low=1e-4, high=1e-3),
                grad=state(0.25, 1), iter=exactly([step], I8), mismatch={"scalars_memory": 0},
                bad=[Bad("step 0", {"iter": I8([0])})])  # fmt: skip


BETAS = {"beta1": 0.75, "beta2": 0.875, "epsilon": 0.125}
ROWS = floats(3, "W")
BY_ROW = floats(5, low=0.5, high=1)
MISSED = exactly([0, 1, 2, 3, 0], I8)

NOT_OF_THE_ORIGINAL = dict.fromkeys(
    ["AccumulateStats", "AdamFP16", "Fused8BitMomentum", "SparseMomentumSGD"],
    "named by the founding documents",
) | {"LionUpdate": "an optimizer that is younger"}
CODES = integers("N", low=-127, high=127, dtype="i1")

CASES = [
    dense("Adam", "default", bad=[FEWER]),
    dense("Adam", "step", BETAS, outputs=4),
    dense("Adam", "first", iter=0, outputs=4),
    dense("Adam", "RAdam warm-up", {**BETAS, "enableRAdam": 1}, outputs=4),
    dense("Adam", "RAdam", {**BETAS, "enableRAdam": 1}, outputs=4, iter=20),
    dense("DecayAdagrad", "default", bad=[FEWER]),
    dense("DecayAdagrad", "decay", {**BETAS, "weight_decay": 0.25, "bias_correction_first": 0}),
    dense("Adagrad", "default"),
    dense("Adagrad", "rate", {"decay": 0.75}, outputs=3),
    dense("Adagrad", "update", {"epsilon": 0.5, "weight_decay": 0.25}, outputs=4),
    dense("RmsProp", "default", mean_squares=state(0.5, 1), mom=state()),
    dense("RmsProp", "momentum", {"decay": 0.75, "momentum": 0.5, "epsilon": 0.125},
          mean_squares=state(0.5, 1), mom=state()),
    rows("SparseAdam", "default", bad=[FEWER]),
    rows("SparseAdam", "step", BETAS, outputs=4, dtype="i4"),
    rows("SparseAdam", "RAdam warm-up", {**BETAS, "enableRAdam": 1}, outputs=4),
    rows("SparseAdam", "RAdam", {**BETAS, "enableRAdam": 1}, outputs=4, iter=exactly([20], I8)),
    rows("RowWiseSparseAdam", "default", moment_2=BY_ROW, bad=[FEWER]),
    rows("RowWiseSparseAdam", "step", BETAS, outputs=4, moment_2=BY_ROW, dtype="i4"),
    rows("SmartDecaySparseAdam", "default", last_seen=MISSED, bad=[
        FEWER, Bad("a step that is to come", {"last_seen": I8([0, 1, 2, 4, 0])}),
        Bad("a negative step", {"last_seen": I8([0, 1, 2, -1, 0])})]),
    rows("SmartDecaySparseAdam", "betas", BETAS, last_seen=MISSED, dtype="i4"),
    rows("SparseAdagrad", "default"),
    rows("SparseAdagrad", "decay", {"epsilon": 0.5, "weight_decay": 0.25}, dtype="i4"),
    rows("RowWiseSparseAdagrad", "default", moment=BY_ROW),
    rows("RowWiseSparseAdagrad", "decay", {"epsilon": 0.5, "weight_decay": 0.25}, moment=BY_ROW,
         dtype="i4"),
    rows("RowWiseSparseAdagrad", "counter", {"weight_decay": 0.25, "counter_halflife": 4},
         moment=BY_ROW, counter=exactly([1, 2, 3, 0, 5], F8)),
    *(yellow_fin(f"{title} {step}", args, step)
      for title, args in (("default", {}), ("plain", {"beta": 0.75, "zero_debias": 0}),
                          ("nesterov", {"beta": 0.75, "nesterov": 1, "epsilon": 0.5}))
      for step in (1, 2, 7)),
    *(dense(f"{bits}MomentumSGDUpdate", title, args, **{
        name: floats(any_shape, low=low, high=low + 4, dtype=dtype)
        for name, low in (("grad", -2), ("moment", -2), ("param", 4))}, tolerance=tolerance)
      for bits, dtype, tolerance in (("FP32", "f4", 1e-5), ("FP16", "f2", HALF))
      for title, args in (("default", {}), ("decay", {"momentum": 0.5, "weight_decay": 0.25}),
                          ("nesterov", {"momentum": 0.5, "nesterov": 1, "weight_decay": 0.25}))),
    Case("AccumulateStats", iter=exactly([41], I8), bad=[FEWER]),
    *(dense("AdamFP16", title, args, param=floats(any_shape, low=4, high=8, dtype="f2"),
            grad=floats(any_shape, dtype="f2"), tolerance=HALF)
      for title, args in (("default", {}), ("betas", BETAS))),
    *(Case("Fused8BitMomentum", title=f"{title} {blocks}", args=args, sizes={"N": sizes},
           param=floats("N", low=4, high=8), grad=floats("N"), moment=CODES,
           scale=floats(blocks, low=0.01, high=0.02), lr=LR, mismatch={"param": 0},
           tolerance=0.01)  # a code may be rounded the other way
      for title, args in (("default", {}), ("nesterov", {"momentum": 0.5, "nesterov": 1}))
      for blocks, sizes in ((1, (7, 1, 256)), (2, (300, 257)))),
    rows("SparseMomentumSGD", "default", grad_idx=exactly([1, 3, 1], I8), grad_value=ROWS,
         velocity=floats(5, "W")),
    rows("SparseMomentumSGD", "lr", {"momentum": 0.5}, grad_idx=exactly([1, 3, 1], I4),
         grad_value=ROWS, velocity=floats(5, "W"), lr=LR, dtype="i4"),
    dense("LionUpdate", "default", momentum=state()),
    dense("LionUpdate", "arguments", {"beta1": 0.75, "beta2": 0.5, "wd": 0.25, "lr": -0.125},
          momentum=state()),
    Case("LionUpdate", title="lr", args={"wd": 0.25}, param=state(4, 8), grad=state(),
         momentum=state(), lr=LR),
    dense("Adadelta", "default", moment_delta=state(0.5, 1)),
    dense("Adadelta", "decay", {"decay": 0.75, "epsilon": 0.125}, moment_delta=state(0.5, 1)),
    rows("SparseAdadelta", "default"),
    rows("SparseAdadelta", "decay", {"decay": 0.75, "epsilon": 0.125}, dtype="i4"),
    dense("Wngrad", "default", seq_b=ONE),
    dense("Wngrad", "rate", {"epsilon": 0.5}, outputs=3, seq_b=ONE),
    dense("Wngrad", "update", outputs=4, seq_b=ONE),
    rows("SparseWngrad", "default", seq_b=ONE),
    rows("SparseWngrad", "epsilon", {"epsilon": 0.5}, seq_b=ONE, dtype="i4"),
    dense("Storm", "default", grad_sq_sum=ONE),
    dense("Storm", "momentum", {"momentum": 2.0, "beta": 0.5}, grad_sq_sum=ONE),
    rows("SparseStorm", "default", grad_sq_sum=ONE),
    rows("SparseStorm", "momentum", {"momentum": 2.0, "beta": 0.5}, grad_sq_sum=ONE, dtype="i4"),
    rows("SparseMomentumSGDUpdate", "default"),
    rows("SparseMomentumSGDUpdate", "momentum", {"momentum": 0.75}, dtype="i4"),
    rows("SparseMomentumSGDUpdate", "nesterov", {"momentum": 0.75, "nesterov": 1}),
    *(Case(type, title="default", var=floats("N", "W"), n_z=floats("N", "W", 2, low=0.25),
           grad=floats("N", "W")) for type in ("Ftrl", "GFtrl")),
    *(Case(type, title="arguments", var=floats("N", 2, "W"), n_z=floats("N", 2, "W", 2, low=0.25),
           grad=floats("N", 2, "W"), args=FTRL,
           bad=[Bad("alpha twice", {"alpha": F4([1])})]) for type in ("Ftrl", "GFtrl")),
    Case("Ftrl", title="alpha", args={"lambda1": 0.5}, var=state(), n_z=pairs(), grad=state(),
         alpha=exactly([0.25], F4)),
    rows("SparseFtrl", "default", var=floats(5, "W"), n_z=floats(5, "W", 2, low=0.25)),
    rows("SparseFtrl", "arguments", FTRL, var=floats(5, "W"), n_z=floats(5, "W", 2, low=0.25),
         dtype="i4", bad=[Bad("alpha twice", {"alpha": F4([1])})]),
    rows("SparseFtrl", "alpha", {"lambda1": 0.5}, var=floats(5, "W"),
         n_z=floats(5, "W", 2, low=0.25), alpha=exactly([0.25], F4)),
    rows("SparseLpRegularizer", "default", grad=ROWS),
    rows("SparseLpRegularizer", "2", {"p": 2.0, "reg_lambda": 0.25}, dtype="i4", grad=ROWS),
    rows("SparseLpRegularizer", "1", {"p": 1.0, "reg_lambda": 0.25}, grad=ROWS,
         param=floats(5, "W"), bad=[Bad("p=1.5", args={"p": 1.5})]),
    Case("SparseLpRegularizer", title="without grad", args={"p": 1.0, "reg_lambda": 0.25},
         param=floats(5, "W"), indices=integers("K", low=0, high=4),
         mismatch={"param": None, "indices": None}),
    *(Case("Lars", title=title, args=args, X=floats(any_shape, away=0.5), dX=state(),
           wd=floats(1, low=0), trust=floats(1, low=0.5), lr_max=floats(1, low=0.4, high=2))
      for title, args in (("default", {}), ("arguments", {"offset": 0.25, "lr_min": 0.5}))),
    Case("Lars", title="zero", X=exactly([0, 0], F4), dX=floats(2), wd=floats(1),
         trust=floats(1, low=2, high=3), lr_max=exactly([7], F4)),
    *(Case("LearningRateAdaption", title=title, args=args, lr=floats(1, low=2, high=3),
           grad=state(), effgrad=state(0.5, 1))
      for title, args in (("default", {}), ("alpha", {"lr_alpha": 0.5}),
                          ("plain", {"lr_alpha": 0.5, "normalized_lr_adaption": 0}))),
    *(Case("WeightScale", title=f"{title} {i}", args=args, w=state(), iter=exactly([i], I8),
           mismatch={"w": None}, bad=[FEWER]) for i in (1, 2, 3, 5)
      for title, args in (("default", {}), ("every 2", {
          "stepsize": 2, "upper_bound_iter": 6, "scale": 0.5}))),
    Case("ClipTensorByScaling", title="one", args={"threshold": 0.5}, input_tensor=state(),
         mismatch={"input_tensor": None},
         val=floats(1, low=0, high=1)),
    Case("ClipTensorByScaling", title="two", args={"threshold": 0.5}, input_tensor=state(),
         mismatch={"input_tensor": None},
         val=floats(1, low=0.2, high=0.5), additional_threshold=exactly([0.5], F4)),
    *(Case("RowWiseCounter", title=title, args=args, prev_iter=exactly([0, 5, 7, 9], I8),
           update_counter=exactly([1, 2, 3, 4], F8), indices=exactly([1, 2, 2, 3], dtype),
           iter=exactly([8], I8), mismatch={"indices": None},
           bad=[Bad("a negative index", {"indices": np.array([-1], dtype)}),
                Bad("an index too large", {"indices": np.array([4], dtype)}),
                Bad("two dimensions", {"prev_iter": I8([[0, 5, 7, 9]]),
                                       "update_counter": F8([[1, 2, 3, 4]])})])
      for title, args, dtype in (("default", {}, "i8"), ("4", {"counter_halflife": 4}, "i4"))),
    *(Case("LearningRate", title=f"composite {i}", input=exactly([i], I8), args={
        "policy": "composite", "base_lr": 0.5, "sub_policy_num_iters": [4, 6],
        "sub_policy_0_policy": "exp", "sub_policy_0_gamma": 0.5, "sub_policy_0_lr_scale": 2.0,
        "sub_policy_1_policy": "step", "sub_policy_1_gamma": 0.5, "sub_policy_1_stepsize": 2,
    }, bad=COMPOSITE if i == 4 else []) for i in (0, 4, 5, 11)),
]  # fmt: skip
