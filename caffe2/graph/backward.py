"""The backward pass: gradient operators for a list of operators, in reverse order.

Blobs may be overwritten, so every use of one is a use of a version of it.  A gradient operator
that needs a version which is gone when it runs is an error, not a wrong gradient.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from caffe2.graph.blob import BlobReference
from caffe2.graph.errors import GradientError, UsageError
from caffe2.graph.gradients import Gradient, GradientRegistry, Name, gradient_name
from caffe2.graph.operator import CreateOperator
from caffe2.ops.declaration import GradientSlice
from caffe2.proto import caffe2_pb2

Operator: TypeAlias = caffe2_pb2.OperatorDef
Key: TypeAlias = tuple[str, int]


def backward_pass(
    operators: Sequence[Operator], ys: Any, sites: Sequence[str] = ()
) -> tuple[list[Operator], dict[BlobReference, Gradient]]:
    """The gradient operators of `operators`, and the gradient of each blob that has one.

    ys     a list of blobs (their gradients are 1), or a dict from blobs to the blobs that hold
           their gradients (a name, a GradientSlice or None for 1)
    sites  where the user made each operator, for error texts

    Operators that no `y` depends on are skipped.  A blob that several operators read gets the sum
    of the gradients that come from them; a `y` that others depend on as well, its own one added.
    """
    if isinstance(ys, Mapping):
        given = {str(y): gradient_name(gradient) for y, gradient in ys.items()}
    elif isinstance(ys, list):
        given = dict.fromkeys(map(str, ys))
    else:
        raise TypeError("ys should either be a list or a dict.")
    from caffe2.graph import control_ops  # noqa: F401 - has the rules of operators that run nets

    return IR(operators, sites).GetBackwardPass(given)


@dataclass
class _Part:
    """One of the gradients that sum up to the gradient of a blob.

    `writes` are the outputs (operator, index) that compute each of its names; a part without any
    is a blob that was there before: given by the caller, or the gradient of another blob.
    """

    name: Name
    device: caffe2_pb2.DeviceOption | None = None
    made: Sequence[Operator] = ()
    writes: dict[str, list[tuple[Operator, int]]] = field(default_factory=dict)
    stamp: tuple[int, ...] = ()

    @property
    def computed(self) -> bool:
        return any(self.writes.values())

    def rename(self, old: str, new: str) -> str:
        """Lets the operators write `new` instead of `old`; gives the name they write."""
        slots = self.writes.pop(old, [])
        if not slots:
            return old
        for op, index in slots:
            op.output[index] = new
            rename_inside(op, old, new)
        still_written = any(old in op.output for op in self.made)
        first = next(i for i, op in enumerate(self.made) if op is slots[0][0])
        for op in self.made[first + 1 :] if not still_written else ():
            op.input[:] = [new if name == old else name for name in op.input]
        self.writes[new] = slots
        return new


class IR:
    """Operators with the versions of blobs they read and write, and their gradients so far.

    `backward_pass` is the way in.
    """

    AUTOGEN_GRAD_SUFFIX = "_autogen_grad"
    # In the extra_info of the device of a sum: made here, not by the user.
    IS_AUTO_GEN_SUM_OPS_TAG = "is_auto_gen_sum_ops"
    # With ":1" in the extra_info of operators: the sum of their gradients is on no device.
    ONLY_KEEP_IS_AUTO_GEN_SUM_OPS_TAG = "only_keep_is_auto_gen_sum_ops_tag"

    def __init__(self, operators: Sequence[Operator], sites: Sequence[str] = ()) -> None:
        self.operators, self.sites = operators, sites
        self.reads: list[dict[str, int]] = []
        self.writes: list[dict[str, int]] = []
        self.versions: dict[str, int] = {}  # of each blob, at the present point of the pass
        self.first_use: dict[Key, int] = {}
        for index, op in enumerate(operators):
            self.reads.append({name: self.versions.setdefault(name, 0) for name in op.input})
            for key in self.reads[-1].items():
                self.first_use.setdefault(key, index)
            for name in op.output:
                self.versions[name] = self.versions.get(name, -1) + 1
            self.writes.append({name: self.versions[name] for name in op.output})
        self._check_stops()

        self.parts: dict[Key, list[_Part]] = defaultdict(list)
        self.gradients: dict[Key, _Part] = {}
        self.splits: Counter[tuple[Key, str]] = Counter()
        self.written: Counter[str] = Counter()  # how often gradient operators wrote each blob
        self.grad_ops: list[Operator] = []
        self.latest: dict[str, Key] = {}  # the version of a blob whose gradient the caller gets

    def _check_stops(self) -> None:
        """UsageError for a StopGradient that stops nothing: nobody reads its output."""
        for index, op in enumerate(self.operators):
            for key in self.writes[index].items() if op.type == "StopGradient" else ():
                if key not in self.first_use and key[0] not in op.input:
                    raise UsageError(
                        f"StopGradient's output '{key[0]}' is orphan: no operator reads it. "
                        "You typically want to specify same input and output for StopGradient. "
                        f"The operator is {self._describe(index)}"
                    )

    def GetBackwardPass(
        self, given: Mapping[str, Name]
    ) -> tuple[list[Operator], dict[BlobReference, Gradient]]:
        """The gradient operators, and the gradient of each blob, from those of some blobs."""
        for y, gradient in given.items():
            made: list[Operator] = []
            part = _Part(gradient)
            if gradient is None:
                name = BlobReference(y + self.AUTOGEN_GRAD_SUFFIX)
                made = [CreateOperator("ConstantFill", [BlobReference(y)], [name], value=1.0)]
                writes = {name.name: [(made[0], 0)]}
                part = _Part(name.name, made[0].device_option, made, writes)
            self._add([((y, self.versions.get(y, 0)), part)], made)
        for index in reversed(range(len(self.operators))):
            self._differentiate(index)
            for key in self.reads[index].items():
                if self.first_use[key] == index:
                    self._settle(key)
        found = {name: self._gradient(key) for name, key in self.latest.items()}
        return self.grad_ops, {
            BlobReference(name): _references(gradient)
            for name, gradient in found.items()
            if gradient is not None
        }

    def _differentiate(self, index: int) -> None:
        """The gradient operators of one operator."""
        op = self.operators[index]
        reads, writes = self.reads[index], self.writes[index]
        g_output = [self._gradient((name, writes[name])) for name in op.output]
        for name in op.output:
            version = self.latest.get(name, (name, writes[name]))[1]
            if version != writes[name] and op.input:
                raise GradientError(
                    f'"{name}" has a gradient at version {version}, but {self._describe(index)} '
                    f"wrote version {writes[name]}, which is overwritten before it is used.\n"
                    f"{self._history(name)}"
                )
        # Operators of this type add their (zero) gradient to whatever else there is.
        if all(gradient is None for gradient in g_output) and op.type != "ZeroGradient":
            return
        try:
            made, g_input = GradientRegistry.GetGradientForOp(op, g_output)
            self._check_inputs(index, made, g_output)
        except GradientError as error:
            raise GradientError(f"{error}\nThe operator is {self._describe(index)}") from error
        parts = []
        for position, (blob, gradient) in enumerate(zip(op.input, g_input, strict=False)):
            if gradient is not None:
                ordinal = g_input[:position].count(gradient), g_input.count(gradient)
                part = _Part(gradient, _device(op, made), made, _writes(gradient, made, *ordinal))
                parts.append(((blob, reads[blob]), part))
            elif blob in writes:
                self.latest.pop(blob, None)
        self._add(parts, made)

    def _check_inputs(self, index: int, made: Sequence[Operator], g_output: Sequence[Name]) -> None:
        """Whether the gradient operators will find what they read as it was."""
        found = {name for gradient in g_output for name in _names(gradient)}
        for grad_op in made:
            for name in (name for name in grad_op.input if name not in found):
                version = self.writes[index].get(name, self.reads[index].get(name))
                if version is None and name in grad_op.output:
                    continue  # a later rewrite fills it, see `caffe2.train.combined_batch_norm`
                if version is None:
                    raise GradientError(
                        f"{grad_op.type} reads '{name}', which is neither a blob of the operator "
                        "nor made by its other gradient operators"
                    )
                if version != self.versions[name]:
                    what = "output" if name in self.writes[index] else "input"
                    raise GradientError(
                        f'Gradient operator needs {what} "{name}" at version {version}, but '
                        f"currently we have version {self.versions[name]}.\n"
                        f"{self._history(name)}"
                    )
            found.update(grad_op.output)

    def _add(self, parts: Sequence[tuple[Key, _Part]], made: Sequence[Operator]) -> None:
        """Takes in gradients and the operators for them, under new names where several meet."""
        for key, part in parts:
            present = self.parts[key]
            present.append(part)
            self.latest[key[0]] = key
            if isinstance(part.name, GradientSlice):
                if len(present) > 1:
                    for member in present if len(present) == 2 else present[-1:]:
                        self._split_slice(key, member)
            elif part.computed and any(p.computed or p.name == part.name for p in present[:-1]):
                (name,) = _names(part.name)
                part.name = part.rename(name, self._split_name(key, name))
        self.grad_ops.extend(made)
        for name in (name for grad_op in made for name in grad_op.output):
            self.written[name] += 1
            if name in self.versions:
                self.versions[name] += 1
        for _, part in parts:
            part.stamp = self._stamp(part.name)

    def _split_slice(self, key: Key, part: _Part) -> None:
        for name in _names(part.name) if isinstance(part.name, GradientSlice) else ():
            if part.writes[name]:
                new = part.rename(name, self._split_name(key, name))
                part.name = GradientSlice(*(new if n == name else n for n in _names(part.name)))
        part.stamp = self._stamp(part.name)

    def _split_name(self, key: Key, name: str) -> str:
        number = self.splits[key, name]
        self.splits[key, name] += 1
        return f"_{name}_autosplit_{number}"

    def _settle(self, key: Key) -> None:
        """Sums up the parts of a gradient, once all operators that read the blob have theirs."""
        parts = self.parts.get(key)
        if not parts or key in self.gradients:
            return
        if len(parts) == 1:
            self.gradients[key] = parts[0]
            return
        for part in parts:
            self._check_live(key, part)
        sparse = sum(isinstance(part.name, GradientSlice) for part in parts)
        if 0 < sparse < len(parts):
            raise GradientError(
                f"gradients of '{key[0]}' fail to add up: some are sparse and some dense, and "
                "a mix of them cannot be summed automatically"
            )
        device = self._common_device(key, parts)
        # Computed parts come first: the sum is written over the first of them.
        parts.sort(key=lambda part: not part.computed)
        summed: Name
        if sparse:
            summed = GradientSlice(
                *(self._concat(key, field, parts, device) for field in GradientSlice._fields)
            )
        else:
            names = [part.name for part in parts]
            summed = names[0] if parts[0].computed else f"{key[0]}_grad"
            if summed in names[1:] or (summed == names[0] and not parts[0].computed):
                summed = self._split_name(key, f"{key[0]}_grad")
            self._emit_sum("Sum", names, [summed], device)
        self.gradients[key] = _Part(summed, stamp=self._stamp(summed))

    def _concat(
        self, key: Key, field: str, parts: Sequence[_Part], device: caffe2_pb2.DeviceOption
    ) -> str:
        out = f"{key[0]}_grad_{field}_concat"
        names = [getattr(part.name, field) for part in parts]
        self._emit_sum("Concat", names, [out, f"{out}_split"], device, axis=0)
        return out

    def _emit_sum(
        self, type: str, inputs: Any, outputs: Any, device: caffe2_pb2.DeviceOption, **args: Any
    ) -> None:
        read, written = ([BlobReference(name) for name in names] for names in (inputs, outputs))
        op = CreateOperator(type, read, written, device_option=device, **args)
        self._add([], [op])

    def _common_device(self, key: Key, parts: Sequence[_Part]) -> caffe2_pb2.DeviceOption:
        devices = [part.device for part in parts if part.device is not None]
        common = caffe2_pb2.DeviceOption()
        if devices:
            common.CopyFrom(devices[0])
        for device in devices:
            if device != common:
                raise GradientError(
                    f"gradients of '{key[0]}' fail to add up: they come from different devices "
                    f"({_line(common)} and {_line(device)}); copy the blob to each device first"
                )
        if f"{self.ONLY_KEEP_IS_AUTO_GEN_SUM_OPS_TAG}:1" in common.extra_info:
            common.Clear()
        common.extra_info.append(f"{self.IS_AUTO_GEN_SUM_OPS_TAG}:1")
        return common

    def _gradient(self, key: Key) -> Name:
        """The whole gradient of a version of a blob."""
        self._settle(key)
        part = self.gradients.get(key)
        if part is None:
            return None
        self._check_live(key, part)
        return part.name

    def _stamp(self, gradient: Name) -> tuple[int, ...]:
        return tuple(self.written[name] for name in _names(gradient))

    def _check_live(self, key: Key, part: _Part) -> None:
        if part.stamp != self._stamp(part.name):
            raise GradientError(
                f"the gradient of '{key[0]}' is held by {' and '.join(_names(part.name))}, which "
                "another gradient operator overwrites before it is used; give in-place outputs "
                "names of their own"
            )

    def _describe(self, index: int) -> str:
        site = self.sites[index] if index < len(self.sites) and self.sites[index] else ""
        return f"#{index} {self.operators[index].type}" + (f" ({site})" if site else "")

    def _history(self, name: str) -> str:
        """Which operators wrote and read each version of a blob, one line each."""
        lines = [f"Versions of blob '{name}':"]
        for version in range(self.versions[name] + 1):
            wrote = [i for i, blobs in enumerate(self.writes) if blobs.get(name) == version]
            read = [i for i, blobs in enumerate(self.reads) if blobs.get(name) == version]
            outside = "a gradient operator" if version else "outside of the net"
            source = " ".join(map(self._describe, wrote)) or outside
            lines.append(f"  version {version}: from {source}")
            lines.extend(f"    read by {self._describe(index)}" for index in read)
        return "\n".join(lines)


def rename_inside(op: Operator, old: str, new: str) -> None:
    """Renames a blob in the nets of an operator whose nets run in the same workspace."""
    if op.type not in ("If", "AsyncIf", "While"):
        return
    op.input[:] = [new if name == old else name for name in op.input]
    for inner in (inner for arg in op.arg for inner in arg.n.op):
        inner.input[:] = [new if name == old else name for name in inner.input]
        inner.output[:] = [new if name == old else name for name in inner.output]
        rename_inside(inner, old, new)


def _names(gradient: Name) -> tuple[str, ...]:
    if isinstance(gradient, GradientSlice):
        return tuple(gradient)
    return () if gradient is None else (gradient,)


def _references(gradient: str | GradientSlice) -> Gradient:
    if isinstance(gradient, GradientSlice):
        return GradientSlice(*(BlobReference(name) for name in gradient))  # type: ignore[arg-type]
    return BlobReference(gradient)


def _device(op: Operator, made: Sequence[Operator]) -> caffe2_pb2.DeviceOption:
    return made[-1].device_option if made else op.device_option


def _writes(
    gradient: Name, made: Sequence[Operator], ordinal: int, count: int
) -> dict[str, list[tuple[Operator, int]]]:
    """Where `made` writes each name of a gradient.  When `count` inputs have the same gradient,
    each has one of the writes: the one that `ordinal` says."""
    found = {}
    for name in _names(gradient):
        slots = [(op, i) for op in made for i, output in enumerate(op.output) if output == name]
        if count > 1 and len(slots) >= count:
            slots = [slots[len(slots) - count + ordinal]]
        found[name] = slots
    return found


def _line(device: caffe2_pb2.DeviceOption) -> str:
    return " ".join(str(device).split()) or "no device"
