"""Declaring operators.  One declaration is the single source of everything known of an operator.

    @operator("Relu", inputs="X", outputs="Y", inplace=[(0, 0)], shape=same_as("X"))
    class Relu:
        \"\"\"Y = max(X, 0), element by element.\"\"\"

        def reference(X):
            return np.maximum(X, 0)

        def gradient(op):
            return op.make("ReluGradient", [op.output(0), op.grad(0)], [op.input_grad(0)])

`shape` maps the `Spec` of each input to the `Spec` of each output, `reference` maps arrays to
arrays and is the definition of what is right, `gradient` names the operators that compute the
gradient.  Each takes the inputs under their declared names and, when it names it, the `op`.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from caffe2.ops.arguments import (
    Argument,
    DeclarationError,
    OperatorError,
    fill_arguments,
    find_argument,
)
from caffe2.ops.datatypes import ANY, DType, TypeSet, type_names

Array: TypeAlias = npt.NDArray[Any]
KINDS = ("pure", "random", "stateful", "control", "io")
TOUCHES = ("files", "code", "network")


class Spec(NamedTuple):
    """What is known of a tensor before a run."""

    shape: tuple[int, ...]
    dtype: DType


class GradientState(Enum):
    """Why an operator has no gradient rule."""

    NO_GRADIENT = "no gradient needed"
    SHOULD_NOT_DO_GRADIENT = "should not be differentiated"
    GRADIENT_NOT_IMPLEMENTED = "not implemented"
    NOT_REGISTERED = "none registered"


NO_GRADIENT = GradientState.NO_GRADIENT
SHOULD_NOT_DO_GRADIENT = GradientState.SHOULD_NOT_DO_GRADIENT
GRADIENT_NOT_IMPLEMENTED = GradientState.GRADIENT_NOT_IMPLEMENTED


@dataclass(frozen=True)
class NativeOnly:
    """Stands where a NumPy body would, with the reason why there is none."""

    reason: str


class GradientSlice(NamedTuple):
    """A sparse gradient: rows `values` of the blob at `indices`; both are blob names."""

    indices: str
    values: str


Gradient: TypeAlias = str | GradientSlice | None


@dataclass(frozen=True)
class BlobNames:
    """The declared names of inputs or outputs: `"X W bias?"`, `"X*"`."""

    names: tuple[str, ...]
    least: int
    variadic: bool

    @classmethod
    def parse(cls, text: str) -> BlobNames:
        words = text.split()
        for word in words:
            if not re.fullmatch(r"[A-Za-z_]\w*\*?\??", word):
                raise DeclarationError(f"'{word}' is no name of a blob")
        names = tuple(word.rstrip("?*") for word in words)
        if len(set(names)) != len(names):
            raise DeclarationError(f"a name occurs twice in '{text}'")
        if any("*" in word for word in words[:-1]):
            raise DeclarationError(f"only the last name of '{text}' can stand for many")
        optional = [word.endswith("?") for word in words]
        if optional != sorted(optional):
            raise DeclarationError(f"a needed name follows an optional one in '{text}'")
        return cls(names, len(names) - sum(optional), bool(words) and "*" in words[-1])

    @property
    def most(self) -> int | None:
        """The largest number of blobs; None: no limit."""
        return None if self.variadic else len(self.names)

    def name(self, index: int) -> str:
        return self.names[min(index, len(self.names) - 1)]

    def repeats(self, index: int) -> bool:
        """Whether the name of this blob stands for those that follow, too."""
        return self.variadic and index >= len(self.names) - 1

    def check(self, what: str, blobs: Sequence[str]) -> None:
        if self.least <= len(blobs) and (self.variadic or len(blobs) <= len(self.names)):
            return
        if self.variadic:
            allowed = f"at least {self.least}"
        elif self.least == len(self.names):
            allowed = str(self.least)
        else:
            allowed = f"{self.least} to {len(self.names)}"
        listed = f" ({', '.join(self.names)})" if self.names else ""
        given = f" ({', '.join(blobs)})" if blobs else ""
        raise OperatorError("", f"has {len(blobs)} {what}{given}; allowed are {allowed}{listed}")


class OpView:
    """One use of an operator, as rules see it.

    `type`, `inputs`, `outputs` (blob names), `args` (a namespace of all declared arguments, with
    defaults filled in), `given` (names of arguments that are no defaults), `undeclared` (names of
    arguments that nobody declared) and, for bodies of random operators, `rng`.
    """

    def __init__(
        self,
        declaration: Declaration,
        inputs: Sequence[str],
        outputs: Sequence[str],
        args: SimpleNamespace,
        undeclared: tuple[str, ...] = (),
        rng: np.random.Generator | None = None,
    ) -> None:
        self.declaration = declaration
        self.type = declaration.name
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self.args, self.undeclared = args, undeclared
        self.given: frozenset[str] = frozenset()
        self._rng = rng

    def input(self, index: int) -> str:
        return self.inputs[index]

    def output(self, index: int) -> str:
        return self.outputs[index]

    def set_rng(self, rng: np.random.Generator) -> None:
        """The generator of the next run."""
        self._rng = rng

    @property
    def rng(self) -> np.random.Generator:
        if self._rng is None:
            raise OperatorError("", "draws random numbers and was given no generator")
        return self._rng

    def located(self, error: OperatorError) -> OperatorError:
        """`error` with this operator and, where it is about an input or output, its blob."""
        error.operator = self.type
        for names, blobs in (
            (self.declaration.inputs, self.inputs),
            (self.declaration.outputs, self.outputs),
        ):
            if error.subject in names.names:
                index = names.names.index(error.subject)
                error.blob = blobs[index] if index < len(blobs) else ""
        return error


class GradientContext(Protocol):
    """What a gradient rule sees: an `OpView` that also hands out names of gradients."""

    @property
    def type(self) -> str: ...
    @property
    def inputs(self) -> Sequence[str]: ...
    @property
    def outputs(self) -> Sequence[str]: ...
    @property
    def args(self) -> SimpleNamespace: ...
    def input(self, index: int) -> str: ...
    def output(self, index: int) -> str: ...

    def grad(self, index: int) -> Gradient:
        """The gradient of an output; None when nothing downstream has one."""

    def input_grad(self, index: int) -> str:
        """`<input>_grad`, which the rule promises to write: the gradient of an input."""

    def input_grad_slice(self, index: int) -> GradientSlice:
        """The same for a sparse gradient."""

    def set_input_grad(self, index: int, gradient: Gradient) -> None:
        """The gradient of an input is a blob that exists already (no operator is needed)."""

    def make(
        self,
        type: str,
        inputs: Sequence[Gradient],
        outputs: Sequence[str],
        copy_args: bool = True,
        **args: Any,
    ) -> Any:
        """A gradient operator (OperatorDef) with the arguments of this one, unless not wanted, and
        further ones.  An input that is None or a GradientSlice is an error: dense is needed."""


@dataclass(frozen=True)
class Declaration:
    """Everything known of one operator type; made by `operator`."""

    name: str
    doc: str
    module: str
    inputs: BlobNames
    outputs: BlobNames
    args: Mapping[str, Argument]
    types: Mapping[str, TypeSet]
    inplace: tuple[tuple[int, int], ...]
    inplace_any: bool
    enforced_inplace: tuple[tuple[int, int], ...]
    helpers: tuple[int, ...]
    kind: str
    native: bool
    blocks: bool
    touches: tuple[str, ...]
    touches_if: str
    shape: Callable[..., Any]
    reference: Callable[..., Any] | NativeOnly
    gradient: Callable[[Any], Any] | GradientState

    def view(
        self,
        inputs: Sequence[str],
        outputs: Sequence[str],
        args: Mapping[str, Any] | None = None,
        rng: np.random.Generator | None = None,
    ) -> OpView:
        """One use of the operator.  OperatorError for wrong counts, an output named twice, in-place
        use or arguments."""
        op = OpView(self, inputs, outputs, SimpleNamespace(), rng=rng)
        try:
            self.inputs.check("inputs", op.inputs)
            self.outputs.check("outputs", op.outputs)
            _check_distinct(op.outputs)
            self._check_inplace(op)
            op.args, op.undeclared = fill_arguments(self.args, args or {})
            op.given = frozenset(args or ())
        except OperatorError as error:
            raise op.located(error) from None
        return op

    def view_of(self, op_def: Any, rng: np.random.Generator | None = None) -> OpView:
        """The view of an OperatorDef message.  An argument may be given twice with the same
        contents; OperatorError for different ones, and what `view` refuses."""
        given: dict[str, Any] = {}
        contents: dict[str, bytes] = {}
        try:
            for message in op_def.arg:
                declared = find_argument(self.args, message.name)
                given[message.name] = declared.from_message(message) if declared else None
                content = message.SerializeToString()
                if contents.setdefault(message.name, content) != content and declared:
                    problem = "is given twice with different contents"
                    raise OperatorError(f"argument '{message.name}'", problem)
        except OperatorError as error:
            error.operator = self.name
            raise
        return self.view(list(op_def.input), list(op_def.output), given, rng)

    def touched_by(self, op_def: Any) -> tuple[str, ...]:
        """What an OperatorDef of this type touches, see `touches_if`."""
        idle = self.touches_if and not any(
            arg.name == self.touches_if and arg.i for arg in op_def.arg
        )
        return () if idle else self.touches

    def helpers_of(self, op_def: Any) -> list[str]:
        """The outputs of an OperatorDef of this type that are nobody's answer."""
        count = len(op_def.output)
        return [op_def.output[at] for at in self.helpers if -count <= at < count]

    def needs_spec(self, index: int) -> bool:
        """Whether the shape rule looks at this input: it does not where it takes Any."""
        rule = self.shape
        if hasattr(rule, "same_as"):
            return True
        annotation = rule.__annotations__.get(self.inputs.name(index))
        return annotation not in ("Any", Any)

    def infer(self, op: OpView, inputs: Sequence[Spec | None]) -> tuple[Spec | None, ...]:
        """What the outputs will be; None for one that depends on values or is no tensor.
        inputs: None for one that is not known, which the shape rule has to allow (needs_spec).
        OperatorError for types and shapes the operator refuses."""
        try:
            for index, spec in enumerate(inputs):
                name = self.inputs.name(index)
                allowed = self.types.get(name, ANY)
                if spec is not None and spec.dtype not in allowed:
                    found = type_names([spec.dtype])
                    raise OperatorError(name, f"is {found}; allowed are {type_names(allowed)}")
            found_specs = self._call(self.shape, op, inputs)
        except OperatorError as error:
            raise op.located(error) from None
        return self._outputs(op, found_specs, Spec)

    def run(self, op: OpView, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The outputs by the NumPy body.  OperatorError for inputs the operator refuses."""
        self.infer(op, [Spec(array.shape, array.dtype) for array in inputs])
        return self.compute(op, inputs)

    def compute(self, op: OpView, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """`run` without the check of types and shapes: bodies also work in float64."""
        if isinstance(self.reference, NativeOnly):
            raise OperatorError("", f"{self.name} has no NumPy body: {self.reference.reason}")
        try:
            found = self._call(self.reference, op, inputs)
        except OperatorError as error:
            raise op.located(error) from None
        return self._outputs(op, found, np.ndarray)

    def _call(self, rule: Callable[..., Any], op: OpView, values: Sequence[Any]) -> Any:
        missing = 0 if self.inputs.variadic else len(self.inputs.names) - len(values)
        named = {"op": op} if _takes_op(rule) else {}
        return rule(*values, *[None] * missing, **named)

    def _outputs(self, op: OpView, found: Any, single: type) -> tuple[Any, ...]:
        several = isinstance(found, (tuple, list)) and not isinstance(found, single)
        outputs = tuple(found) if several else (found,)
        if len(outputs) < len(op.outputs):
            raise OperatorError("", f"{self.name} gave {len(outputs)} of {len(op.outputs)} outputs")
        return outputs[: len(op.outputs)]

    def enforces_inplace(self, source: int, target: int) -> bool:
        """Whether this output must be the blob of this input."""
        return self._is_among(self.enforced_inplace, source, target)

    def allows_inplace(self, source: int, target: int) -> bool:
        """Whether this output may be the blob of this input."""
        return (
            self.inplace_any
            or self.enforces_inplace(source, target)
            or self._is_among(self.inplace, source, target)
        )

    def _is_among(self, pairs: Iterable[tuple[int, int]], source: int, target: int) -> bool:
        for first, output in pairs:
            step = source - first
            if step != target - output:
                continue
            goes_on = self.inputs.repeats(first) and self.outputs.repeats(output)
            if step == 0 or (step > 0 and goes_on):
                return True
        return False

    def _check_inplace(self, op: OpView) -> None:
        for target, blob in enumerate(op.outputs):
            subject = self.outputs.name(target)
            if self.outputs.repeats(target):
                subject = f"output {target} ('{blob}')"
            for source, name in enumerate(op.inputs):
                if name != blob and self.enforces_inplace(source, target):
                    raise OperatorError(
                        subject,
                        f"must be the same blob as {self.inputs.name(source)} "
                        f"('{name}'): the operator works in place",
                    )
                if name == blob and not self.allows_inplace(source, target):
                    allowed = sorted({*self.inplace, *self.enforced_inplace})
                    raise OperatorError(
                        subject,
                        f"cannot overwrite input {self.inputs.name(source)}; "
                        f"allowed in place (input, output): {allowed or 'none'}",
                    )


def _check_distinct(outputs: Sequence[str]) -> None:
    for index, blob in enumerate(outputs):
        first = outputs.index(blob)
        if first != index:
            raise OperatorError("", f"outputs {first} and {index} are the same blob '{blob}'")


@functools.cache
def _takes_op(rule: Callable[..., Any]) -> bool:
    return "op" in inspect.signature(rule).parameters


def same_as(name: str) -> Callable[..., Spec]:
    """The shape rule of an output that is like the named input."""

    def shape(*inputs: Spec, op: OpView) -> Spec:
        return inputs[op.declaration.inputs.names.index(name)]

    shape.same_as = name  # type: ignore[attr-defined]
    return shape


_declarations: dict[str, Declaration] = {}


def operator(
    name: str,
    *,
    inputs: str,
    outputs: str,
    args: Mapping[str, Argument] | None = None,
    types: Mapping[str, TypeSet] | None = None,
    inplace: Iterable[tuple[int, int]] | Literal["any"] = (),
    enforced_inplace: Iterable[tuple[int, int]] = (),
    helpers: Iterable[int] = (),
    kind: str = "pure",
    native: bool = True,
    blocks: bool = False,
    touches: Iterable[str] = (),
    touches_if: str = "",
    shape: Callable[..., Any] | None = None,
) -> Callable[[type], Declaration]:
    """Declares an operator; the class it decorates holds the docstring and the rules.

    inputs, outputs    names separated by blanks; `b?` may be left out, a last `X*` is one or more,
                       `X*?` any number
    args               name -> Int, Float, ... with default and allowed range; a `#` in the name
                       stands for any number
    types              input name -> allowed element types; an input not named takes any
    inplace            (input, output) pairs that may be one blob, or "any"; enforced_inplace: that
                       must be.  A pair of two `X*` goes on: (1, 0) is also (2, 1), (3, 2), ...
    helpers            outputs that are there for the gradient, or by convention, by number: where a
                       net does not name its answers they are none.  -1 is the last one
    kind               pure, random, stateful, control or io
    native             has a C++ kernel; otherwise the NumPy body runs
    blocks             may wait for another operator
    touches            "files", "code" (Python of the process), "network"
    touches_if         the argument without which it touches nothing
    shape              the shape rule, when it is not written in the class

    DeclarationError when the declaration contradicts itself or the name is taken.
    """

    def declare(body: type) -> Declaration:
        try:
            rules = vars(body)
            if (shape is None) == ("shape" not in rules):
                raise DeclarationError("needs one shape rule, in the class or as shape=")
            declaration = Declaration(
                name=name,
                doc=inspect.cleandoc(body.__doc__ or ""),
                module=body.__module__,
                inputs=BlobNames.parse(inputs),
                outputs=BlobNames.parse(outputs),
                args=dict(args or {}),
                types=dict(types or {}),
                inplace=() if inplace == "any" else tuple(inplace),
                inplace_any=inplace == "any",
                enforced_inplace=tuple(enforced_inplace),
                helpers=tuple(helpers),
                kind=kind,
                native=native,
                blocks=blocks,
                touches=tuple(touches),
                touches_if=touches_if,
                shape=shape or rules["shape"],
                reference=rules.get("reference", NativeOnly("")),
                gradient=rules.get("gradient", GradientState.NOT_REGISTERED),
            )
            _check(declaration)
            if name in _declarations:
                raise DeclarationError(f"is declared in {_declarations[name].module} already")
        except DeclarationError as error:
            raise DeclarationError(f"operator {name} ({body.__module__}): {error}") from None
        _declarations[name] = declaration
        return declaration

    return declare


def _check(declaration: Declaration) -> None:
    if not declaration.doc:
        raise DeclarationError("has no docstring")
    if declaration.kind not in KINDS:
        raise DeclarationError(f"kind is '{declaration.kind}'; allowed are {', '.join(KINDS)}")
    for item in declaration.touches:
        if item not in TOUCHES:
            raise DeclarationError(f"touches '{item}'; allowed are {', '.join(TOUCHES)}")
    if declaration.touches_if and declaration.touches_if not in declaration.args:
        raise DeclarationError(f"touches_if names '{declaration.touches_if}', which is no argument")
    for name, argument in declaration.args.items():
        if not isinstance(argument, Argument):
            raise DeclarationError(f"argument '{name}' is no Int, Float, ...: {argument!r}")
    for name, types in declaration.types.items():
        if name not in declaration.inputs.names:
            raise DeclarationError(f"types are given for '{name}', which is no input")
        if not types <= ANY:
            raise DeclarationError(f"types of '{name}' are not all element types of tensors")
    for pair in (*declaration.inplace, *declaration.enforced_inplace):
        for index, blobs in zip(pair, (declaration.inputs, declaration.outputs), strict=True):
            if not (0 <= index < len(blobs.names) or (blobs.variadic and index >= 0)):
                raise DeclarationError(f"in-place pair {pair} has an index out of range")
    for at in declaration.helpers:
        if not (at == -1 or 0 < at < len(declaration.outputs.names)):
            raise DeclarationError(f"helpers name output {at}, which is not among the later ones")
    if isinstance(declaration.reference, NativeOnly):
        if not declaration.reference.reason:
            raise DeclarationError("has neither a NumPy body nor a NativeOnly reason")
        if not declaration.native:
            raise DeclarationError("has neither a NumPy body nor a C++ kernel")
    else:
        _check_signature("reference", declaration.reference, declaration.inputs)
    shape = declaration.shape
    if hasattr(shape, "same_as"):
        if shape.same_as not in declaration.inputs.names:
            raise DeclarationError(f"same_as names '{shape.same_as}', which is no input")
    else:
        _check_signature("shape", shape, declaration.inputs)
    if not callable(declaration.gradient) and not isinstance(declaration.gradient, GradientState):
        raise DeclarationError(f"gradient is neither a rule nor a state: {declaration.gradient!r}")


def _check_signature(what: str, rule: Any, inputs: BlobNames) -> None:
    if not callable(rule):
        raise DeclarationError(f"{what} is no function: {rule!r}")
    parameters = [p for p in inspect.signature(rule).parameters.values() if p.name != "op"]
    taken = tuple(p.name for p in parameters)
    starred = bool(parameters) and parameters[-1].kind is inspect.Parameter.VAR_POSITIONAL
    if taken != inputs.names or starred != inputs.variadic:
        names = (
            [*inputs.names[:-1], "*" * inputs.variadic + inputs.names[-1]] if inputs.names else []
        )
        wanted = ", ".join(names)
        raise DeclarationError(f"{what} takes ({', '.join(taken)}) instead of ({wanted})")
