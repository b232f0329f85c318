"""The catalogue: complete, consistent, in agreement with the original, quick to import."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from operator_cases import (
    CASES,
    LOOSER,
    MORE_IN_PLACE,
    NOT_OF_THE_ORIGINAL,
    OTHER_GRADIENTS,
    SPECIAL,
)

from caffe2 import ops
from caffe2.ops.arguments import (
    DeclarationError,
    Float,
    Floats,
    Int,
    Ints,
    OperatorError,
    Scalar,
    Str,
)
from caffe2.ops.datatypes import ANY, FLOAT
from caffe2.ops.declaration import (
    GradientSlice,
    GradientState,
    NativeOnly,
    Spec,
    _declarations,
    operator,
    same_as,
)
from caffe2.testing.gradient_checker import GradientRecorder

ROOT = Path(__file__).resolve().parents[2]
FACTS = ROOT.parent / "shared" / "reference" / "operators.json"
NAMES = sorted(ops.all())


@pytest.fixture(scope="module")
def facts():
    if not FACTS.exists():
        pytest.skip(f"{FACTS.name} of the shared folder is not here")
    return {fact["name"]: fact for fact in json.loads(FACTS.read_text())["operators"]}


# Completeness


@pytest.mark.parametrize("name", NAMES)
def test_complete(name):
    declaration = ops.find(name)
    assert len(declaration.doc.splitlines()) > 2 or not declaration.inputs.names
    assert callable(declaration.shape)
    body = declaration.reference
    assert callable(body) or (isinstance(body, NativeOnly) and body.reason)
    assert callable(declaration.gradient) or isinstance(declaration.gradient, GradientState)


@pytest.mark.parametrize("name", NAMES)
def test_has_a_case(name):
    if name in SPECIAL:
        assert f'"{name}"' in (ROOT / SPECIAL[name]).read_text()
    else:
        assert name in {case.type for case in CASES}, "no harness case in operator_cases.py"


def test_every_case_is_of_a_declared_operator():
    assert {case.type for case in CASES} | set(SPECIAL) == set(NAMES)


# Agreement with the original

# (operator, inputs, outputs, arguments) -> gradient operators (type, inputs, outputs, arguments)
# and what is said of each input, as the original's registry answered.
GRADIENTS = [
    ("Relu", 1, 1, {}, [("ReluGradient", "o0 g0", "i0_grad", {})], ["i0_grad"]),
    ("Sigmoid", 1, 1, {}, [("SigmoidGradient", "o0 g0", "i0_grad", {})], ["i0_grad"]),
    ("Tanh", 1, 1, {}, [("TanhGradient", "o0 g0", "i0_grad", {})], ["i0_grad"]),
    ("Softmax", 1, 1, {}, [("SoftmaxGradient", "o0 g0", "i0_grad", {})], ["i0_grad"]),
    ("FC", 3, 1, {"axis": 2},
     [("FCGradient", "i0 i1 g0", "i1_grad i2_grad i0_grad", {"axis": 2})],
     ["i0_grad", "i1_grad", "i2_grad"]),
    ("Conv", 3, 1, {"kernel": 2},
     [("ConvGradient", "i0 i1 g0", "i1_grad i2_grad i0_grad", {"kernel": 2})],
     ["i0_grad", "i1_grad", "i2_grad"]),
    ("Conv", 2, 1, {}, [("ConvGradient", "i0 i1 g0", "i1_grad i0_grad", {"no_bias": 1})],
     ["i0_grad", "i1_grad"]),
    ("MaxPool", 1, 1, {}, [("MaxPoolGradient", "i0 o0 g0", "i0_grad", {})], ["i0_grad"]),
    ("AveragePool", 1, 1, {}, [("AveragePoolGradient", "i0 o0 g0", "i0_grad", {})], ["i0_grad"]),
    ("LabelCrossEntropy", 2, 1, {},
     [("LabelCrossEntropyGradient", "i0 i1 g0", "i0_grad", {})], ["i0_grad", None]),
    ("AveragedLoss", 1, 1, {}, [("AveragedLossGradient", "i0 g0", "i0_grad", {})], ["i0_grad"]),
    ("SoftmaxWithLoss", 2, 2, {},
     [("SoftmaxWithLossGradient", "i0 i1 o0 g1", "i0_grad", {})], ["i0_grad", None]),
    ("SoftmaxWithLoss", 3, 2, {"scale": 2.0},
     [("SoftmaxWithLossGradient", "i0 i1 i2 o0 g1", "i0_grad", {"scale": 2.0})],
     ["i0_grad", None, None]),
    ("Sum", 3, 1, {}, [], ["g0", "g0", "g0"]),
    ("WeightedSum", 4, 1, {}, [("WeightedSumGradient", "g0 i0 i1 i2 i3", "i0_grad i2_grad", {})],
     ["i0_grad", None, "i2_grad", None]),
    ("WeightedSum", 4, 1, {"grad_on_w": 1},
     [("WeightedSumGradient", "g0 i0 i1 i2 i3", "i0_grad i2_grad i1_grad i3_grad",
       {"grad_on_w": 1})],
     ["i0_grad", "i1_grad", "i2_grad", "i3_grad"]),
    ("Scale", 1, 1, {"scale": 3.0}, [("Scale", "g0", "i0_grad", {"scale": 3.0})], ["i0_grad"]),
    ("Copy", 1, 1, {}, [("CopyOnDeviceLike", "g0 i0", "i0_grad", {})], ["i0_grad"]),
    ("Cast", 1, 1, {"to": 2, "from_type": 1},
     [("Cast", "g0", "i0_grad", {"to": 1, "from_type": 2})], ["i0_grad"]),
    ("Flatten", 1, 1, {"axis": 2}, [("ResizeLike", "g0 i0", "i0_grad", {"axis": 2})], ["i0_grad"]),
    *((name, 2, 1, {"broadcast": 1},
       [(f"{name}Gradient", "g0 i0 i1", "i0_grad i1_grad", {"broadcast": 1})],
       ["i0_grad", "i1_grad"]) for name in ("Add", "Sub", "Mul")),
    ("Div", 2, 1, {}, [("DivGradient", "g0 i0 i1 o0", "i0_grad i1_grad", {})],
     ["i0_grad", "i1_grad"]),
    ("Reshape", 1, 2, {"shape": [1, 2]},
     [("Reshape", "g0 o1", "i0_grad _i0_grad_dims", {})], ["i0_grad"]),
    ("Reshape", 2, 2, {}, [("Reshape", "g0 o1", "i0_grad _i0_grad_dims", {})], ["i0_grad", None]),
    ("MatMul", 2, 1, {},
     [("MatMul", "g0 i1 i0", "i0_grad", {"trans_b": 1, "axis_b": 1}),
      ("MatMul", "i0 g0 i1", "i1_grad", {"trans_a": 1, "axis_a": 1})], ["i0_grad", "i1_grad"]),
    ("MatMul", 2, 1, {"trans_b": 1},
     [("MatMul", "g0 i1 i0", "i0_grad", {"axis_b": 1}),
      ("MatMul", "g0 i0 i1", "i1_grad", {"trans_a": 1, "axis_b": 1})], ["i0_grad", "i1_grad"]),
    ("MatMul", 2, 1, {"trans_a": 1},
     [("MatMul", "i1 g0 i0", "i0_grad", {"trans_b": 1, "axis_a": 1}),
      ("MatMul", "i0 g0 i1", "i1_grad", {"axis_a": 1})], ["i0_grad", "i1_grad"]),
    ("MatMul", 2, 1, {"trans_a": 1, "trans_b": 1},
     [("MatMul", "i1 g0 i0", "i0_grad", {"trans_a": 1, "trans_b": 1, "axis_a": 1}),
      ("MatMul", "g0 i0 i1", "i1_grad", {"trans_a": 1, "trans_b": 1, "axis_b": 1})],
     ["i0_grad", "i1_grad"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "inputs", "outputs", "args", "operators", "grads"), GRADIENTS)
def test_gradient_rule(name, inputs, outputs, args, operators, grads):
    op = ops.find(name).view(_names("i", inputs), _names("o", outputs), args)
    recorder = GradientRecorder(op, args, {i: f"g{i}" for i in range(outputs)})
    made = [
        (step.type, " ".join(step.inputs), " ".join(step.outputs), dict(step.args))
        for step in recorder.operations
    ]
    assert made == operators
    assert [recorder.input_gradients.get(index) for index in range(inputs)] == grads


def _names(letter, count):
    return [f"{letter}{index}" for index in range(count)]


@pytest.mark.parametrize("name", [name for name in NAMES if callable(ops.find(name).gradient)])
def test_gradient_operators_of_the_original(name, facts):
    """Types, inputs and outputs of the gradient operators, where the original could be asked."""
    fact = facts.get(name, {}).get("gradient_ops")
    if not fact:
        pytest.skip("the original was not asked")
    counts, args = fact["for"], dict(fact["for"].get("args", {}))
    for needed in (key for key, arg in ops.find(name).args.items() if arg.required):
        args.setdefault(needed, next(case.args[needed] for case in CASES if case.type == name))
    op = ops.find(name).view(_names("in", counts["inputs"]), _names("out", counts["outputs"]), args)
    recorder = GradientRecorder(op, args, {i: f"out{i}_grad" for i in range(counts["outputs"])})
    made = [
        {"type": step.type, "inputs": list(step.inputs), "outputs": list(step.outputs)}
        for step in recorder.operations
    ]
    assert (made == fact["ops"]) == (name not in OTHER_GRADIENTS)
    found = [recorder.input_gradients.get(index) for index in range(counts["inputs"])]
    kinds = ["sparse" if isinstance(g, GradientSlice) else g and "dense" for g in found]
    assert kinds == fact["input_gradients"]


@pytest.mark.parametrize("name", NAMES)
def test_facts_of_the_original(name, facts):
    """Counts, names, in-place pairs and gradient state."""
    if name not in facts:
        assert name in NOT_OF_THE_ORIGINAL
        return
    fact, declaration = facts[name], ops.find(name)
    gradient = declaration.gradient
    assert fact["gradient"] == ("yes" if callable(gradient) else gradient.value)
    pairs = "any" if declaration.inplace_any else [list(pair) for pair in declaration.inplace]
    if name not in MORE_IN_PLACE:
        assert pairs == fact["inplace_allowed"]
    enforced = fact.get("inplace_enforced", [])
    # Where pairs go on without end, the original was asked about the first ones.
    largest = max([0, *(max(pair) for pair in (*enforced, *declaration.enforced_inplace))])
    asked = range(largest + 1)
    found = [[i, o] for i in asked for o in asked if declaration.enforces_inplace(i, o)]
    assert found == enforced
    for what in ("inputs", "outputs"):
        names = getattr(declaration, what)
        allowed = fact.get(f"{what}_allowed", fact[what])
        if name not in LOOSER:
            assert [names.least, names.most] == [allowed[0], allowed[-1]], what


# Looking up


def test_unknown_operator():
    with pytest.raises(KeyError, match="no operator is called 'Rellu'; did you mean Relu") as error:
        ops.find("Rellu")
    assert error.value.near[0] == "Relu"
    for own in ("Another", "MyProjOp", "CustomNms"):
        with pytest.raises(KeyError, match=f"^no operator is called '{own}'$"):
            ops.find(own)


def test_all_is_in_order_of_names():
    names = list(ops.all())  # with those that other tests have declared
    assert names == sorted(names) and set(names) >= set(NAMES)


def run_python(code):
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_import_is_lazy_and_needs_numpy_only():
    code = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("google", "hypothesis") or name.startswith("caffe2.graph"):
            raise ImportError(name)
sys.meta_path.insert(0, Block())
import caffe2.ops as ops
assert "caffe2.ops.conv" not in sys.modules
assert ops.find("Conv").name == "Conv"
assert "caffe2.ops.conv" in sys.modules
assert not any(name.startswith(("caffe2.graph", "caffe2._native")) for name in sys.modules)
"""
    result = run_python(code)
    assert result.returncode == 0, result.stderr


def test_a_broken_family_is_named_each_time(tmp_path):
    (tmp_path / "broken_family.py").write_text(
        "from caffe2.ops.declaration import operator, same_as\n"
        "class Body:\n    'y = x'\n    reference = staticmethod(lambda X: X)\n"
        "operator('Fine', inputs='X', outputs='Y', shape=same_as('X'))(Body)\n"
        "operator('Fine', inputs='X', outputs='Y', shape=same_as('X'))(Body)\n"
    )
    code = f"""
import caffe2.ops as ops
ops.__path__.append({str(tmp_path)!r})
for _ in range(2):
    try:
        ops.find("Unknown")
    except Exception as error:
        print(type(error).__name__, error)
"""
    lines = run_python(code).stdout.splitlines()
    expected = "DeclarationError operator Fine (caffe2.ops.broken_family): is declared in"
    assert len(lines) == 2 and all(line.startswith(expected) for line in lines), lines


# In-place pairs that go on


def test_pairs_of_many_go_on():
    enqueue = ops.find("EnqueueBlobs")
    blobs = [f"b{index}" for index in range(9)]
    assert enqueue.view(["q", *blobs], blobs).inputs[9] == "b8"
    with pytest.raises(OperatorError, match=r"output 1 \('x'\) must be the same .*blob \('b1'\)"):
        enqueue.view(["q", "b0", "b1"], ["b0", "x"])
    with pytest.raises(OperatorError, match=r"output 0 \('b0'\) cannot overwrite input queue"):
        enqueue.view(["b0", "b0"], ["b0"])
    assert not enqueue.allows_inplace(9, 9) and not ops.find("AtomicIter").allows_inplace(2, 1)


# Declarations that contradict themselves


def declare(name="Bad", doc="Y = X", inputs="X", outputs="Y", rules=None, **options):
    body = {"__doc__": doc, "reference": lambda X: X, **(rules or {})}
    options = {"shape": same_as("X"), **options}
    return operator(name, inputs=inputs, outputs=outputs, **options)(type("Body", (), body))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"doc": ""}, "no docstring"),
        ({"name": "Relu"}, "is declared in caffe2.ops.activation already"),
        ({"inputs": "X X"}, "a name occurs twice"),
        ({"inputs": "X 3"}, "'3' is no name"),
        ({"inputs": "A* B"}, "only the last name"),
        ({"inputs": "A? B"}, "a needed name follows an optional one"),
        ({"args": {"k": 3}}, "argument 'k' is no Int, Float"),
        ({"args": {"k": "Int"}}, "argument 'k' is no Int, Float"),
        ({"types": {"Z": FLOAT}}, "'Z', which is no input"),
        ({"types": {"X": frozenset([np.dtype(complex)])}}, "not all element types"),
        ({"inplace": [(1, 0)]}, "index out of range"),
        ({"inplace": [(0, 1)]}, "index out of range"),
        ({"enforced_inplace": [(-1, 0)]}, "index out of range"),
        ({"kind": "impure"}, "kind is 'impure'; allowed are pure, random"),
        ({"touches": ["disk"]}, "touches 'disk'"),
        ({"shape": None}, "needs one shape rule"),
        ({"rules": {"shape": lambda X: X}}, "needs one shape rule"),
        ({"shape": same_as("Z")}, "same_as names 'Z'"),
        ({"shape": lambda X, W: X}, "shape takes (X, W) instead of (X)"),
        ({"rules": {"reference": lambda W: W}}, "reference takes (W) instead of (X)"),
        ({"rules": {"reference": 3}}, "reference is no function"),
        ({"rules": {"reference": NativeOnly("")}}, "neither a NumPy body nor"),
        ({"rules": {"reference": NativeOnly("why")}, "native": False}, "nor a C++ kernel"),
        ({"rules": {"gradient": "yes"}}, "gradient is neither a rule nor a state"),
    ],
    ids=lambda value: re.sub(r" at 0x\w+", "", str(value))[:40],
)
def test_bad_declaration(options, text):
    before = dict(_declarations)
    with pytest.raises(DeclarationError) as caught:
        declare(**options)
    name = options.get("name", "Bad")
    assert str(caught.value).startswith(f"operator {name} (")
    assert text in str(caught.value)
    assert _declarations == before


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Int(0, min=1), "0"),
        (lambda: Int(5, max=4), "5"),
        (lambda: Int(1.5), "1.5"),
        (lambda: Int("a"), "'a'"),
        (lambda: Int(min=3, max=2), "min 3 is above max 2"),
        (lambda: Int(1, required=True), "no default"),
        (lambda: Int(2**31), "2147483648"),
        (lambda: Float("x"), "'x'"),
        (lambda: Str("a", choices=("b",)), "'b'"),
        (lambda: Ints(3), "a list"),
        (lambda: Ints([1, -1], min=0), "-1"),
    ],
)
def test_bad_argument_declaration(make, text):
    with pytest.raises(DeclarationError, match=text):
        make()


# Arguments


class Message:
    """A stand-in for the Argument message."""

    def __init__(self, name, **fields):
        self.name = name
        self._set = set(fields)
        for field in ("floats", "ints", "strings", "nets"):
            setattr(self, field, [])
        for field, value in fields.items():
            setattr(self, field, value)

    def HasField(self, field):
        return field in self._set


@pytest.mark.parametrize(
    ("argument", "fields", "expected"),
    [
        (Int(), {"i": 3}, 3),
        (Int(), {"f": 3.0}, 3),
        (Float(), {"f": 0.5}, 0.5),
        (Float(), {"i": 2}, 2.0),
        (Str(), {"s": b"NCHW"}, "NCHW"),
        (Str(), {"s": b"\xff"}, "\udcff"),
        (Ints(), {"ints": [1, 2]}, (1, 2)),
        (Ints(), {}, ()),
        (Floats(), {"floats": [0.5]}, (0.5,)),
        (Floats(), {"ints": [1, 2]}, (1.0, 2.0)),
        (Scalar(), {"i": 3}, 3),
        (Scalar(), {"f": 3.0}, 3.0),
        (Scalar(), {"s": b"x"}, "x"),
        (Ints(), {"i": 3}, ()),
        (Floats(), {"f": 3.0}, ()),
    ],
)
def test_argument_from_message(argument, fields, expected):
    value = argument.accept("k", argument.from_message(Message("k", **fields)))
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("argument", "fields"),
    [
        (Int(), {"s": b"3"}),
        (Int(), {"ints": [3]}),
        (Int(), {"f": 1.5}),
        (Int(), {}),
        (Float(), {"s": b"3"}),
        (Str(), {"i": 3}),
        (Ints(), {"s": b"3"}),
        (Scalar(), {"ints": [1]}),
    ],
)
def test_argument_of_another_kind(argument, fields):
    with pytest.raises(OperatorError, match="argument 'k'"):
        argument.accept("k", argument.from_message(Message("k", **fields)))


def test_undeclared_arguments_are_noted():
    op = ops.find("Relu").view(["x"], ["y"], {"order": "NCHW"})
    assert op.undeclared == ("order",)


def test_error_names_operator_blob_and_value():
    op = ops.find("FC").view(["data", "fc_w", "fc_b"], ["fc"])
    with pytest.raises(OperatorError) as caught:
        ops.find("FC").infer(op, [Spec(shape, np.dtype("f4")) for shape in ((2, 3), (4, 5), (4,))])
    error = caught.value
    assert (error.operator, error.blob) == ("FC", "fc_w")
    assert str(error) == (
        "FC: W ('fc_w') has shape (4, 5): 5 features from axis_w=1 on; "
        "X has shape (2, 3): 3 from axis=1 on"
    )


def test_types_left_out_allow_any():
    op = ops.find("Copy").view(["x"], ["y"])
    for dtype in ANY:
        assert ops.find("Copy").infer(op, [Spec((2,), dtype)]) == (Spec((2,), dtype),)
