"""Gradient rules: from an operator and the gradients of its outputs to gradient operators.

The rules stand in the declarations of the operators; `GradientRegistry.RegisterGradient` takes
further ones for operators of one's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any, TypeAlias

from caffe2 import ops
from caffe2.graph.blob import BlobReference
from caffe2.graph.errors import GradientError
from caffe2.graph.operator import MakeArgument
from caffe2.ops.arguments import OperatorError
from caffe2.ops.declaration import GradientSlice, GradientState, OpView
from caffe2.proto import caffe2_pb2

Gradient: TypeAlias = BlobReference | GradientSlice
Name: TypeAlias = str | GradientSlice | None
Rule: TypeAlias = Callable[
    [caffe2_pb2.OperatorDef, list[Any]], tuple[Iterable[caffe2_pb2.OperatorDef], Sequence[Any]]
]

_STATES = {
    GradientState.SHOULD_NOT_DO_GRADIENT: "it should not be differentiated",
    GradientState.GRADIENT_NOT_IMPLEMENTED: "its gradient is not implemented",
    GradientState.NOT_REGISTERED: "it has no gradient",
}


class GradientContext:
    """What a declaration's gradient rule sees of one operator."""

    def __init__(
        self, operator: caffe2_pb2.OperatorDef, view: OpView, g_output: Sequence[Name]
    ) -> None:
        self._operator, self._view = operator, view
        self._g_output = list(g_output)
        self.g_input: list[Name] = [None] * len(view.inputs)
        self.old_inputs: set[str] = set()

    @property
    def type(self) -> str:
        return self._view.type

    @property
    def inputs(self) -> tuple[str, ...]:
        return self._view.inputs

    @property
    def outputs(self) -> tuple[str, ...]:
        return self._view.outputs

    @property
    def args(self) -> SimpleNamespace:
        return self._view.args

    def input(self, index: int) -> str:
        """The name of an input, whose value before the operator ran the rule needs."""
        name = self._view.input(index)
        if name in self._view.outputs:
            self.old_inputs.add(name)
        return name

    def output(self, index: int) -> str:
        return self._view.output(index)

    def grad(self, index: int) -> Name:
        """The gradient of an output: a name, a GradientSlice, or None when it has none."""
        return self._g_output[index]

    def input_grad(self, index: int) -> str:
        """`<input>_grad`, recorded as the gradient of that input."""
        name = f"{self._view.input(index)}_grad"
        self.g_input[index] = name
        return name

    def input_grad_slice(self, index: int) -> GradientSlice:
        """`<input>_grad_indices` and `<input>_grad_values`, recorded as the gradient."""
        name = f"{self._view.input(index)}_grad"
        found = GradientSlice(f"{name}_indices", f"{name}_values")
        self.g_input[index] = found
        return found

    def set_input_grad(self, index: int, gradient: Name) -> None:
        """Records a blob that exists already as the gradient of an input."""
        self.g_input[index] = gradient

    def make(
        self,
        type: str,
        inputs: Sequence[Name],
        outputs: Sequence[str],
        copy_args: bool = True,
        **args: Any,
    ) -> caffe2_pb2.OperatorDef:
        """A gradient operator: device, engine and (`copy_args`) arguments are those of the
        operator, `args` come on top."""
        forward = self._operator
        operator = caffe2_pb2.OperatorDef(type=type, name="", output=outputs, is_gradient_op=True)
        operator.input.extend(self._dense(blob) for blob in inputs)
        if copy_args:
            operator.arg.extend(arg for arg in forward.arg if arg.name not in args)
        operator.arg.extend(MakeArgument(key, value) for key, value in args.items())
        if forward.HasField("device_option"):
            operator.device_option.CopyFrom(forward.device_option)
        if forward.HasField("engine"):
            operator.engine = forward.engine
        return operator

    def _dense(self, blob: Name) -> str:
        if isinstance(blob, str):
            return blob
        output = self.outputs[self._g_output.index(blob)] if blob in self._g_output else "?"
        state = "is not provided" if blob is None else "is sparse (expected dense)"
        raise GradientError(f"gradient of output '{output}' {state}")


class GradientRegistry:
    """Gradient rules by operator type."""

    gradient_registry_: dict[str, Rule] = {}  # noqa: RUF012 -- the old API's public table

    @classmethod
    def RegisterGradient(cls, op_type: str) -> Callable[[Rule], Rule]:
        """Decorator for the rule of an operator type.

        The rule gets the OperatorDef and the gradients of its outputs (a name, a GradientSlice or
        None each); it gives the gradient operators and the gradients of the inputs.
        """

        def register(rule: Rule) -> Rule:
            cls.gradient_registry_[op_type] = rule
            return rule

        return register

    @classmethod
    def GetGradientForOp(
        cls, op: caffe2_pb2.OperatorDef, g_output: Sequence[Any]
    ) -> tuple[list[caffe2_pb2.OperatorDef], list[Name]]:
        """The gradient operators of one operator, and the gradient of each input (or None).

        g_output  the gradient of each output: a name, a GradientSlice or None
        """
        names = [gradient_name(gradient) for gradient in g_output]
        try:
            if op.type in cls.gradient_registry_:
                made, found = cls.gradient_registry_[op.type](op, list(g_output))
                g_input = [gradient_name(gradient) for gradient in found]
            else:
                made, g_input = _declared_gradient(op, names)
        except (GradientError, OperatorError) as error:
            raise GradientError(
                f"Exception when creating gradient for [{op.type}]: {error}"
            ) from error
        operators = _listed(made)
        g_input += [None] * (len(op.input) - len(g_input))
        return operators, g_input

    @classmethod
    def GetBackwardPass(
        cls,
        operators: Sequence[caffe2_pb2.OperatorDef],
        ys: Any,
        ys_generate_gradient: bool = False,
    ) -> tuple[list[caffe2_pb2.OperatorDef], dict[BlobReference, Gradient]]:
        """The backward pass of a list of operators; see `backward_pass`."""
        from caffe2.graph.backward import backward_pass

        return backward_pass(operators, ys)


def gradient_name(gradient: Any) -> Name:
    """A gradient as plain names."""
    if isinstance(gradient, tuple):
        indices, values = gradient
        return GradientSlice(str(indices), str(values))
    return None if gradient is None else str(gradient)


def _listed(made: Any) -> list[caffe2_pb2.OperatorDef]:
    """What a rule gave for operators: several, one or none."""
    return [made] if isinstance(made, caffe2_pb2.OperatorDef) else list(made or ())


def _declared_gradient(
    op: caffe2_pb2.OperatorDef, g_output: Sequence[Name]
) -> tuple[Any, list[Name]]:
    try:
        declaration = ops.find(op.type)
    except ops.UnknownOperatorError as error:
        raise GradientError(str(error)) from None
    rule = declaration.gradient
    if rule is GradientState.NO_GRADIENT:
        return [], []
    if isinstance(rule, GradientState):
        raise GradientError(f"operator {op.type} is in the way of a gradient: {_STATES[rule]}")
    try:
        view = declaration.view_of(op)
    except OperatorError as error:
        raise GradientError(f"it does not fit its schema: {error}") from None
    context = GradientContext(op, view, g_output)
    made = rule(context)
    for grad_op in _listed(made):
        for name in context.old_inputs.intersection(grad_op.input):
            raise GradientError(
                f"{grad_op.type} needs input '{name}' as it was, but {op.type} overwrites it "
                "in place; give its output another name"
            )
    return made, context.g_input


def GetIndexFromGradientList(g_list: Sequence[Any], name: Any) -> int | None:
    """The position of the gradient that is `name`, or a slice with that part; None: none is."""
    for index, gradient in enumerate(g_list):
        if gradient == name or (isinstance(gradient, GradientSlice) and name in gradient):
            return index
    return None
