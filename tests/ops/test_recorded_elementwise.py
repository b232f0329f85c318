"""Answers of the original Caffe2 (torch 1.10.2, CPU) on element-wise operators, written down."""

import math

import numpy as np
import pytest

INF, NAN = math.inf, math.nan
F4, F8, I4, I8 = np.float32, np.float64, np.int32, np.int64
# What every function of one element was asked.
X = F4([-INF, -2, -1, -0.5, 0, 0.5, 1, 2, INF, NAN])

# (type, arguments, answers)
FUNCTIONS = [
    ("Exp", {}, [0, 0.13533528, 0.36787945, 0.60653067, 1, 1.6487212, 2.7182817, 7.389056, INF,
                 NAN]),
    ("Log", {}, [NAN, NAN, NAN, NAN, -INF, -0.6931472, 0, 0.6931472, INF, NAN]),
    ("Log1p", {}, [NAN, NAN, -INF, -0.6931472, 0, 0.4054651, 0.6931472, 1.0986123, INF, NAN]),
    ("Sqr", {}, [INF, 4, 1, 0.25, 0, 0.25, 1, 4, INF, NAN]),
    ("Sqrt", {}, [NAN, NAN, NAN, NAN, 0, 0.70710677, 1, 1.4142135, INF, NAN]),
    ("Rsqrt", {}, [NAN, NAN, NAN, NAN, INF, 1.4142135, 1, 0.70710677, 0, NAN]),
    ("Cube", {}, [-INF, -8, -1, -0.125, 0, 0.125, 1, 8, INF, NAN]),
    ("Cbrt", {}, [-INF, -1.259921, -1, -0.7937005, 0, 0.7937005, 1, 1.259921, INF, NAN]),
    ("Abs", {}, [INF, 2, 1, 0.5, 0, 0.5, 1, 2, INF, NAN]),
    ("Negative", {}, [INF, 2, 1, 0.5, 0, -0.5, -1, -2, -INF, NAN]),
    ("Sign", {}, [-1, -1, -1, -1, 0, 1, 1, 1, 1, 0]),
    ("Sin", {}, [NAN, -0.9092974, -0.84147096, -0.47942555, 0, 0.47942555, 0.84147096, 0.9092974,
                 NAN, NAN]),
    ("Cos", {}, [NAN, -0.41614684, 0.54030234, 0.87758255, 1, 0.87758255, 0.54030234, -0.41614684,
                 NAN, NAN]),
    ("Tan", {}, [NAN, 2.185039758682251, -1.5574077367782593, -0.5463024973869324, 0,
                 0.5463024973869324, 1.5574077367782593, -2.185039758682251, NAN, NAN]),
    ("Asin", {}, [NAN, NAN, -1.5707964, -0.5235988, 0, 0.5235988, 1.5707964, NAN, NAN, NAN]),
    ("Acos", {}, [NAN, NAN, 3.1415927, 2.0943952, 1.5707964, 1.0471976, 0, NAN, NAN, NAN]),
    ("Atan", {}, [-1.5707964, -1.1071488, -0.7853982, -0.4636476, 0, 0.4636476, 0.7853982,
                  1.1071488, 1.5707964, NAN]),
    ("Sinh", {}, [-INF, -3.6268604, -1.1752012, -0.5210953, 0, 0.5210953, 1.1752012, 3.6268604,
                  INF, NAN]),
    ("Cosh", {}, [INF, 3.7621958, 1.5430807, 1.1276259, 1, 1.1276259, 1.5430807, 3.7621958, INF,
                  NAN]),
    ("Erf", {}, [-1, -0.9953223, -0.8427008, -0.5204999, 0, 0.5204999, 0.8427008, 0.9953223, 1,
                 NAN]),
    ("Ceil", {}, [-INF, -2, -1, 0, 0, 1, 1, 2, INF, NAN]),
    ("Floor", {}, [-INF, -2, -1, -1, 0, 0, 1, 2, INF, NAN]),
    ("Reciprocal", {}, [0, -0.5, -1, -2, INF, 2, 1, 0.5, 0, NAN]),
    ("Logit", {}, [-13.81551, -13.81551, -13.81551, -13.81551, -13.81551, 0, 13.802318, 13.802318,
                   13.802318, NAN]),
    ("Logit", {"eps": 0.2}, [-1.3862944] * 5 + [0] + [1.3862944] * 3 + [NAN]),
    ("Clip", {}, [-3.4028235e38, -2, -1, -0.5, 0, 0.5, 1, 2, 3.4028235e38, NAN]),
    ("Clip", {"min": -1.0, "max": 1.0}, [-1, -1, -1, -0.5, 0, 0.5, 1, 1, 1, NAN]),
    ("Clip", {"max": 1.0}, [-3.4028235e38, -2, -1, -0.5, 0, 0.5, 1, 1, 1, NAN]),
    ("Clip", {"min": 1.0, "max": -1.0}, [-1] * 9 + [NAN]),
    ("LeakyRelu", {}, [-INF, -0.02, -0.01, -0.005, 0, 0.5, 1, 2, INF, NAN]),
    ("LeakyRelu", {"alpha": 2.0}, [-INF, -4, -2, -1, 0, 0.5, 1, 2, INF, NAN]),
    ("Elu", {}, [-1, -0.86466473, -0.63212055, -0.39346933, 0, 0.5, 1, 2, INF, NAN]),
    ("Elu", {"alpha": 2.0}, [-2, -1.7293295, -1.2642411, -0.78693867, 0, 0.5, 1, 2, INF, NAN]),
    ("Selu", {}, [-1.7580993, -1.5201665, -1.1113306, -0.6917582, 0, 0.5253505, 1.050701,
                  2.101402, INF, NAN]),
    ("Selu", {"alpha": 2.0, "scale": 3.0}, [-6, -5.187988, -3.7927232, -2.3608161, 0, 1.5, 3, 6,
                                            INF, NAN]),
    ("Swish", {}, [NAN, -0.23840584, -0.26894143, -0.18877034, 0, 0.31122968, 0.7310586, 1.761594,
                   INF, NAN]),
    ("Softplus", {}, [0, 0.12692805, 0.31326163, 0.474077, 0.6931472, 0.974077, 1.3132616,
                      2.126928, INF, NAN]),
    ("Softsign", {}, [NAN, -2 / 3, -0.5, -1 / 3, 0, 1 / 3, 0.5, 2 / 3, NAN, NAN]),
    ("ThresholdedRelu", {}, [0, 0, 0, 0, 0, 0, 0, 2, INF, 0]),
    ("ThresholdedRelu", {"alpha": -0.7}, [0, 0, 0, -0.5, 0, 0.5, 1, 2, INF, 0]),
    ("ReluN", {}, [0, 0, 0, 0, 0, 0.5, 1, 2, 6, NAN]),
    ("ReluN", {"n": 1.5}, [0, 0, 0, 0, 0, 0.5, 1, 1.5, 1.5, NAN]),
    ("Mish", {}, [NAN, -0.25250149, -0.30340144, -0.22074377, 0, 0.37524524, 0.86509836,
                  1.943959, INF, NAN]),
    ("Gelu", {}, [NAN, -0.04550026, -0.15865526, -0.15426877, 0, 0.34573123, 0.8413447, 1.9544997,
                  INF, NAN]),
    ("Gelu", {"fast_gelu": 1}, [NAN, -0.04540223, -0.15880796, -0.154286, 0, 0.345714, 0.841192,
                                1.9545977, INF, NAN]),
]  # fmt: skip


# Of a NaN the original makes 1.
FUNCTIONS += [
    ("HardSigmoid", {}, [0, 0.1, 0.3, 0.4, 0.5, 0.6, 0.7, 0.9, 1, NAN]),
    ("HardSigmoid", {"alpha": 0.3, "beta": 0.2}, [0, 0, 0, 0.05, 0.2, 0.35, 0.5, 0.8, 1, NAN]),
    ("HardSigmoid", {"alpha": -0.3}, [1, 1, 0.8, 0.65, 0.5, 0.35, 0.2, 0, 0, NAN]),
]


@pytest.mark.parametrize(("type", "args", "answers"), FUNCTIONS)
def test_functions(run, type, args, answers):
    (found,) = run(type, [X], **args)
    assert found.dtype == F4
    np.testing.assert_allclose(found, F4(answers), rtol=3e-6, atol=1e-7)


V = F4([-1, -0.5, 0, 0.5, 1])
# (type, arguments, answers for v = V and dY = 1); those of BY_OUTPUT and LAST take dY first.
GRADIENTS = [
    ("Abs", {}, [-1, -1, 0, 1, 1]),
    ("Acos", {}, [-INF, -1.1547005, -1, -1.1547005, -INF]),
    ("Asin", {}, [INF, 1.1547005, 1, 1.1547005, INF]),
    ("Atan", {}, [0.5, 0.8, 1, 0.8, 0.5]),
    ("Cos", {}, [0.84147096, 0.47942555, 0, -0.47942555, -0.84147096]),
    ("Erf", {}, [0.4151075, 0.8787825, 1.1283791, 0.8787825, 0.4151075]),
    ("Log1p", {}, [INF, 2, 1, 2 / 3, 0.5]),
    ("Sin", {}, [0.5403023, 0.87758255, 1, 0.87758255, 0.5403023]),
    ("Tan", {}, [3.425519, 1.2984464, 1, 1.2984464, 3.425519]),
    ("Logit", {}, [0, 0, 0, 4, 0]),
    ("Cbrt", {}, [1 / 3, 4 / 3, INF, 4 / 3, 1 / 3]),
    ("Cosh", {}, [-1.1752012, -0.5210953, 0, 0.5210953, 1.1752012]),
    ("Cube", {}, [3, 0.75, 0, 0.75, 3]),
    ("Rsqrt", {}, [0.5, 0.0625, 0, -0.0625, -0.5]),
    ("Sinh", {}, [1.5430806, 1.1276259, 1, 1.1276259, 1.5430806]),
    ("Reciprocal", {}, [-1, -0.25, 0, -0.25, -1]),
    ("Softsign", {}, [0.25, 0.44444445, 1, 0.44444445, 0.25]),
    ("Gelu", {}, [-0.08331548, 0.13250488, 0.5, 0.8674951, 1.0833155]),
    ("Gelu", {"fast_gelu": 1}, [-0.08296406, 0.1326301, 0.5, 0.8673699, 1.082964]),
    ("Clip", {}, [1, 1, 1, 1, 1]),
    ("Clip", {"min": -0.5, "max": 0.5}, [0, 0, 1, 0, 0]),
    ("Elu", {}, [0, 0.5, 1, 1, 1]),
    ("Elu", {"alpha": 2.0}, [1, 1.5, 1, 1, 1]),
    ("Selu", {}, [0.7580993, 1.2580993, 1.7580993, 1.050701, 1.050701]),
    ("Selu", {"alpha": 2.0, "scale": 3.0}, [5, 5.5, 6, 3, 3]),
    ("LeakyRelu", {}, [0.01, 0.01, 1, 1, 1]),
    ("LeakyRelu", {"alpha": 0.5}, [0.5, 0.5, 1, 1, 1]),
    ("HardSigmoid", {}, [0, 0, 0, 0.2, 0]),
    ("ReluN", {"n": 0.5}, [0, 0, 0, 0, 0]),
    ("ReluN", {"n": 1.0}, [0, 0, 0, 1, 0]),
    ("Softplus", {}, [-1.7182817, -0.6487212, 0, 0.39346933, 0.63212055]),
]
DY_FIRST = {"Cbrt", "Cosh", "Cube", "Rsqrt", "Sinh", "Gelu"}


@pytest.mark.parametrize(("type", "args", "answers"), GRADIENTS)
def test_gradients(run, type, args, answers):
    inputs = [np.ones_like(V), V] if type in DY_FIRST else [V, np.ones_like(V)]
    (found,) = run(f"{type}Gradient", inputs, **args)
    np.testing.assert_allclose(found, F4(answers), rtol=3e-6, atol=1e-7)


SIX = np.arange(1, 7, dtype=F4).reshape(2, 3)
PLANES = np.arange(-4, 4, dtype=F4).reshape(1, 2, 2, 2)
# (type, inputs, arguments, first output)
VALUES = [
    ("Negative", [I4([-(2**31), 1])], {}, I4([-(2**31), -1])),
    ("Cube", [I4([2000, -2])], {}, I4([-589934592, -8])),
    ("Sign", [I4([-3, 0, 3])], {}, I4([-1, 0, 1])),
    ("Log1p", [F4([1e-8, -1e-8])], {}, F4([1e-8, -1e-8])),
    ("LogitGradient", [F4([0, 0.1, 0.5, 0.9]), np.ones(4, F4)], {"eps": 0.2}, F4([0, 0, 4, 0])),
    ("Mod", [I8([-7, 7, -6, 6, 0])], {"divisor": 3}, I8([-1, 1, 0, 0, 0])),
    ("Mod", [I8([-7, 7, -6, 6, 0])], {"divisor": 3, "sign_follow_divisor": 1},
     I8([2, 1, 0, 0, 0])),
    ("Mod", [I8([-7, 7, -6, 6])], {"divisor": -3}, I8([-1, 1, 0, 0])),
    ("Mod", [I8([-7, 7, -6, 6])], {"divisor": -3, "sign_follow_divisor": 1}, I8([-1, -2, 0, 0])),
    ("Mod", [I8([2**40])], {"divisor": 2**39 + 1}, I8([2**39 - 1])),
    ("Mod", [I4([-7, 7])], {"divisor": 2**40}, I4([-7, 7])),
    ("ReluNGradient", [F4([5, 6, 7]), np.ones(3, F4)], {}, F4([1, 0, 0])),
    # Negative outputs, with a negative alpha: the original turns the gradient's sign.
    ("ThresholdedReluGradient", [F4([0, 0.5, 2]), np.ones(3, F4)], {}, F4([0, 1, 1])),
    ("ThresholdedReluGradient", [F4([-0.5]), np.ones(1, F4)], {"alpha": -1.0}, F4([1])),
    # Beyond 88 the original gives infinity.
    ("Softplus", [F4([20, 50, 100])], {}, F4([20, 50, 100])),
    ("Mish", [F4([-200, -20, 20, 200])], {}, F4([0, -4.122307e-8, 20, 200])),
    ("MishGradient", [F4([1, 2]), F4([0.5, 0.25]), F4([1, 1])], {}, F4([1.0490363, 1.0693179])),
    ("SwishGradient", [F4([1, 2]), F4([0.7310586, 1.7615942]), F4([1, 1])], {},
     F4([0.9276706, 1.0907843])),
    ("SoftsignGradient", [F4([[1, 2]]), F4([1, 2])], {}, F4([[0.25, 2 / 9]])),
    ("CoshGradient", [F4([1, 2]), F4([[0, 1]])], {}, F4([[0, 2.3504024]])),
    ("PRelu", [PLANES, F4([0.5, 2])], {}, F4([[[[-2, -1.5], [-1, -0.5]], [[0, 1], [2, 3]]]])),
    ("PRelu", [PLANES, F4(0.5)], {}, F4([[[[-2, -1.5], [-1, -0.5]], [[0, 1], [2, 3]]]])),
    ("PRelu", [PLANES, F4([[0.5, 2]])], {"order": "NHWC"},
     F4([[[[-2, -6], [-1, -2]], [[0, 1], [2, 3]]]])),
    ("PRelu", [F4([[-1, 1, -2]]), F4([1, 2, 3])], {}, F4([[-1, 1, -6]])),
    ("PReluGradient", [PLANES, np.ones_like(PLANES), PLANES, F4([0.5, 2])], {},
     F4([[[[0.5, 0.5], [0.5, 0.5]], [[2, 1], [1, 1]]]])),
    ("Glu", [F4([[1, 2, 3, 4]])], {}, F4([[0.95257413, 1.9640275]])),
    ("Glu", [F4([[1, 2], [3, 4]])], {"dim": 0}, F4([[0.95257413, 1.9640275]])),
    ("Pow", [F4([-8, 0, -0.0, INF])], {"exponent": 0.5}, F4([NAN, 0, 0, INF])),
    ("Pow", [F4([-8, -2, 0, INF, NAN])], {"exponent": 2.0}, F4([64, 4, 0, INF, NAN])),
    ("Pow", [F4([-8, -2, 0])], {"exponent": -1.0}, F4([-0.125, -0.5, INF])),
    ("Pow", [F4([-8, 0, NAN])], {"exponent": 0.0}, F4([1, 1, 1])),
    ("Pow", [F4([-1, -2, 0, 4]), F4([2, 0.5, 0, 0.5])], {}, F4([1, NAN, 1, 2])),
    ("Pow", [SIX, F4([1, 2, 3])], {"broadcast": 1}, F4([[1, 4, 27], [4, 25, 216]])),
    ("Pow", [SIX, F4([1, 2])], {"broadcast": 1, "axis": 0}, F4([[1, 2, 3], [16, 25, 36]])),
    ("Pow", [SIX, F4([[2]])], {"broadcast": 1}, F4([[1, 4, 9], [16, 25, 36]])),
    ("SumReduceLike", [SIX, F4([0, 0, 0])], {}, F4([5, 7, 9])),
    ("SumReduceLike", [SIX, I4([0, 0])], {"axis": 0}, F4([6, 15])),
    ("SumReduceLike", [SIX, F4([[0], [0]])], {}, F4([[6], [15]])),
    ("SumReduceLike", [SIX, F4(0)], {}, F4(21)),
    ("SumReduceLike", [np.ones((0, 3), F4), F4([0, 0, 0])], {}, F4([0, 0, 0])),
    ("MaxGradient", [F4([2, 3]), F4([10, 20]), F4([2, 3]), F4([2, 1])], {}, F4([10, 20])),
    ("Mean", [F4([1, 2]), F4([3, 5]), F4([0, 0])], {}, F4([4 / 3, 7 / 3])),
    ("SumRelu", [I4([1, -5]), I4([2, 1])], {}, I4([3, 0])),
    ("Where", [np.array([True, False]), SIX[:, :2], -SIX[:, :2]], {"broadcast_on_rows": 1},
     F4([[1, 2], [-4, -5]])),
    ("Conditional", [np.array([True, False]), SIX[:, :2], -SIX[:, :2]], {},
     F4([[1, 2], [-4, -5]])),
    ("IsMemberOf", [I4([1, 2, 5])], {"value": [1, 5]}, np.array([True, False, True])),
    ("IsMemberOf", [I4([1])], {}, np.array([False])),
    ("IsMemberOf", [np.array([True, False])], {"value": [1]}, np.array([True, False])),
    ("IsMemberOf", [np.array([b"a", b"b"], object)], {"value": ["a"]}, np.array([True, False])),
    ("IsNaN", [F4([1, NAN, INF])], {}, np.uint8([0, 1, 0])),
    ("ReplaceNaN", [F8([1, NAN, INF])], {"value": 2.1}, F8([1, 2.0999999046325684, INF])),
    ("SquareRootDivide", [F4([[4, 8], [9, 3]]), F4([0, 9])], {}, F4([[4, 8], [3, 1]])),
    ("BatchBoxCox", [SIX, F4([0, 1, 2]), F4([0, 0, 1])], {},
     F4([[0, 1, 7.5], [1.3862944, 4, 24]])),
    ("BatchBoxCox", [F4([[1, 2, -3]]), F4([0.5, 0, 2]), F4([0, 0, 1])], {},
     F4([[0, 0.6931472, -0.5]])),
    ("StumpFunc", [F4([-1, 0, 1])], {"threshold": 0.0, "low_value": -2.0, "high_value": 3.0},
     F4([-2, -2, 3])),
    ("StumpFuncIndex", [F4([[-1, 0, 1]])], {}, I8([0, 1])),
    ("MakeTwoClass", [F4([0.25, 0.75])], {}, F4([[0.75, 0.25], [0.25, 0.75]])),
    ("MakeTwoClassGradient", [F4([[1, 2], [3, 5]])], {}, F4([1, 2])),
    ("RowMul", [SIX, F4([2, 3])], {}, F4([[2, 4, 6], [12, 15, 18]])),
    ("ReduceTailSum", [SIX], {}, F4([6, 15])),
    ("ElementwiseLinear", [F4([[1, 2], [3, 4]]), F4([2, 3]), F4([10, 20])], {},
     F4([[12, 26], [16, 32]])),
]  # fmt: skip


@pytest.mark.parametrize(("type", "inputs", "args", "expected"), VALUES)
def test_values(run, type, inputs, args, expected):
    found = run(type, inputs, **args)[0]
    assert found.dtype == expected.dtype and found.shape == expected.shape
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=3e-6, atol=1e-7)
    else:
        assert found.tolist() == expected.tolist()


def test_other_outputs(run):
    slopes = run("PReluGradient", [PLANES, np.ones_like(PLANES), PLANES, F4([0.5, 2])])[1]
    assert slopes.tolist() == [-10, 0]
    slopes = run("PReluGradient", [PLANES, np.ones_like(PLANES), PLANES, F4([0.5])])[1]
    assert slopes.tolist() == [-10]
    matrix = F4([[1, 2], [3, 4]])
    found = run("ElementwiseLinearGradient", [matrix, matrix, F4([2, 3])])
    assert [array.tolist() for array in found] == [[[2, 6], [6, 12]], [10, 20], [4, 6]]
    found = run("DivGradient", [F4([1, 2]), F4([4, 5]), F4([0.5, 0.25])])
    assert [array.tolist() for array in found] == [[0.5, 0.125], [-2, -0.625]]
    low, high = run("StumpFuncIndex", [F4([-1, 0, 1])])
    assert low.tolist() == [0, 1] and high.tolist() == [2]
