"""Arguments of operators: kind, default and allowed values of each, declared as data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
UNSET = object()
_SCALAR_FIELDS = ("i", "f", "s", "n", "t")


class DeclarationError(Exception):
    """A declaration that contradicts itself; raised when its module is imported."""


class OperatorError(ValueError):
    """Something an operator refuses.

    Rules raise `OperatorError("X", "has 3 dimensions, 4 are needed")` with the declared name of
    the input, output or argument (or "" for the operator as a whole); `Declaration` adds the
    operator and the blob, as attributes and to the text.
    """

    def __init__(self, subject: str, problem: str) -> None:
        super().__init__(subject, problem)
        self.subject = subject
        self.problem = problem
        self.operator = ""
        self.blob = ""

    def __str__(self) -> str:
        blob = f"('{self.blob}')" if self.blob else ""
        said = " ".join(part for part in (self.subject, blob, self.problem) if part)
        return f"{self.operator}: {said}" if self.operator else said


class Argument:
    """One declared argument: `default`, bounds `min` and `max` (of every element, both allowed),
    `choices`, and whether a caller must give it.  An argument that is not given is its default:
    None where none is declared, () for lists (unless that is declared as None)."""

    kind: ClassVar[str]
    field: ClassVar[str]
    repeated: ClassVar[bool] = False
    numbers: ClassVar[frozenset[type]] = frozenset()  # types that are right as they are

    def __init__(
        self,
        default: Any = UNSET,
        *,
        min: float | None = None,
        max: float | None = None,
        choices: Iterable[Any] = (),
        required: bool = False,
    ) -> None:
        if required and default is not UNSET:
            raise DeclarationError("a required argument has no default")
        if default is UNSET:
            default = () if self.repeated else None
        self.min, self.max, self.choices, self.required = min, max, tuple(choices), required
        if self.choices and self.kind not in ("String", "Strings"):
            raise DeclarationError(f"choices are for strings, not for {self.kind}")
        if min is not None and max is not None and min > max:
            raise DeclarationError(f"min {min} is above max {max}")
        try:
            self.choices = tuple(self.element(choice) for choice in self.choices)
            self.default = None if default is None else self.accept("default", default)
        except OperatorError as error:
            raise DeclarationError(str(error)) from None

    def accept(self, name: str, value: Any) -> Any:
        """`value` as rules see it; OperatorError when its kind or range is not allowed."""
        if not self.repeated:
            return self._accept_element(name, value)
        if not isinstance(value, (list, tuple, np.ndarray)):
            raise OperatorError(f"argument '{name}'", f"is {value!r}; needed is a list")
        if self.min is None and self.max is None and self.numbers.issuperset(map(type, value)):
            return tuple(value)  # weights: too many to look at one by one
        return tuple(self._accept_element(name, item) for item in value)

    def _accept_element(self, name: str, value: Any) -> Any:
        try:
            element = self.element(value)
        except OperatorError as error:
            raise OperatorError(f"argument '{name}'", error.problem) from None
        if self.choices and element not in self.choices:
            allowed = ", ".join(map(repr, self.choices))
            raise OperatorError(f"argument '{name}'", f"is {element!r}; allowed are {allowed}")
        below = self.min is not None and not element >= self.min
        above = self.max is not None and not element <= self.max
        if below or above:
            low = "" if self.min is None else f"{self.min} <= "
            high = "" if self.max is None else f" <= {self.max}"
            problem = f"is {element!r}; allowed is {low}{name}{high}"
            raise OperatorError(f"argument '{name}'", problem)
        return element

    def element(self, value: Any) -> Any:
        """One value of this kind, or OperatorError."""
        raise NotImplementedError

    def from_message(self, message: Any) -> Any:
        """The value that an `Argument` message holds for this kind, or OperatorError."""
        scalar = [field for field in _SCALAR_FIELDS if message.HasField(field)]
        # The original takes a single number for an empty list, and saved nets have such ones.
        number = self.field in ("ints", "floats") and scalar in (["i"], ["f"])
        if self.repeated and (number or not scalar):
            return list(getattr(message, self.field))
        if self.field in scalar:
            return getattr(message, self.field)
        raise OperatorError(
            f"argument '{message.name}'", f"holds no {self.kind} (field '{self.field}')"
        )


def _refuse(value: Any, wanted: str) -> OperatorError:
    return OperatorError("", f"is {value!r} of type {type(value).__name__}; needed is {wanted}")


class Int(Argument):
    """An integer of 32 bits, or of 64 where `max` (and `min`) say so."""

    kind, field = "Int", "i"

    def __init__(
        self,
        default: Any = UNSET,
        *,
        min: float = INT32_MIN,
        max: float = INT32_MAX,
        required: bool = False,
    ) -> None:
        super().__init__(default, min=min, max=max, required=required)

    def element(self, value: Any) -> int:
        whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
        if not whole and not isinstance(value, (bool, int, np.bool_, np.integer)):
            raise _refuse(value, "an integer")
        return int(value)

    def from_message(self, message: Any) -> Any:
        if not self.repeated and message.HasField("f"):
            return message.f
        return super().from_message(message)


class Float(Argument):
    """A floating-point number; an integer is taken as one."""

    kind, field = "Float", "f"

    def element(self, value: Any) -> float:
        if isinstance(value, (bool, np.bool_)) or not isinstance(
            value, (int, float, np.integer, np.floating)
        ):
            raise _refuse(value, "a number")
        return float(value)

    def from_message(self, message: Any) -> Any:
        if not self.repeated and message.HasField("i"):
            return message.i
        found = super().from_message(message)
        return found or list(message.ints) if self.repeated else found


class Bool(Argument):
    """True or False; on the wire 0 or 1."""

    kind, field = "Bool", "i"

    def element(self, value: Any) -> bool:
        if not isinstance(value, (bool, int, np.bool_, np.integer)) or value not in (0, 1):
            raise _refuse(value, "True or False")
        return bool(value)


class Str(Argument):
    """Text; bytes that are no UTF-8 survive as surrogates ("surrogateescape")."""

    kind, field = "String", "s"

    def element(self, value: Any) -> str:
        if isinstance(value, bytes):
            return value.decode("utf-8", "surrogateescape")
        if not isinstance(value, str):
            raise _refuse(value, "a string")
        return str(value)


class Ints(Int):
    """A list of integers."""

    kind, field, repeated = "Ints", "ints", True


class Floats(Float):
    """A list of numbers."""

    kind, field, repeated = "Floats", "floats", True
    numbers = frozenset([float])


class Strs(Str):
    """A list of texts."""

    kind, field, repeated = "Strings", "strings", True


class Scalar(Argument):
    """An integer, a number or text: what is given says which (the `value` of ConstantFill)."""

    kind, field = "Any", ""

    def element(self, value: Any) -> int | float | str:
        if isinstance(value, (float, np.floating)):
            return float(value)
        if isinstance(value, (int, np.bool_, np.integer)):
            return int(value)
        if isinstance(value, (str, bytes)):
            return Str().element(value)
        raise _refuse(value, "an integer, a number or a string")

    def from_message(self, message: Any) -> Any:
        for field in ("f", "i", "s"):
            if message.HasField(field):
                return getattr(message, field)
        raise OperatorError(f"argument '{message.name}'", "holds no integer, number or string")


class Scalars(Scalar):
    """A list of integers, of numbers or of texts."""

    kind, field, repeated = "Anys", "", True
    numbers = frozenset([int, float])

    def from_message(self, message: Any) -> Any:
        return list(message.floats) or list(message.ints) or list(message.strings)


class _Message(Argument):
    def element(self, value: Any) -> Any:
        if not hasattr(value, "SerializeToString"):
            raise _refuse(value, "a protobuf message")
        return value


class Net(_Message):
    """A nested net: a NetDef, or its text format in a string, as old nets have it."""

    kind, field = "Net", "n"

    def element(self, value: Any) -> Any:
        return value if isinstance(value, (str, bytes)) else super().element(value)

    def from_message(self, message: Any) -> Any:
        return message.s if message.HasField("s") else super().from_message(message)


class Nets(_Message):
    """Nested nets (NetDef)."""

    kind, field, repeated = "Nets", "nets", True


class Tensor(_Message):
    """A tensor (TensorProto)."""

    kind, field = "Tensor", "t"


def find_argument(declared: Mapping[str, Argument], name: str) -> Argument | None:
    """The declaration of an argument; a `#` in a declared name stands for any number."""
    return declared.get(name) or declared.get(re.sub(r"\d+", "#", name, count=1))


def fill_arguments(
    declared: Mapping[str, Argument], given: Mapping[str, Any]
) -> tuple[SimpleNamespace, tuple[str, ...]]:
    """All declared arguments with their given or default values, and the names nobody declared.
    Numbered ones (`#`) are there when they are given."""
    values, undeclared = {}, []
    for name, value in given.items():
        argument = find_argument(declared, name)
        if argument is None:
            undeclared.append(name)
        else:
            values[name] = argument.accept(name, value)
    for name, argument in declared.items():
        if "#" in name or name in values:
            continue
        if argument.required:
            raise OperatorError(f"argument '{name}'", "is missing")
        values[name] = argument.default
    return SimpleNamespace(**values), tuple(undeclared)
