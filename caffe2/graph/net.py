"""Net: a list of operators under construction."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from caffe2 import ops
from caffe2.graph import cloning, fills, weights
from caffe2.graph.backward import backward_pass
from caffe2.graph.blob import BlobReference, ScopedBlobReference, blob_references
from caffe2.graph.device import DeviceOption, run_on_device
from caffe2.graph.errors import UsageError
from caffe2.graph.gradients import Gradient
from caffe2.graph.net_blobs import NetBlobs
from caffe2.graph.net_records import NetRecords
from caffe2.graph.observer import KINDS, Attached, Observer
from caffe2.graph.operator import (
    CreateOperator,
    MakeArgument,
    Site,
    user_site,
)
from caffe2.graph.python_functions import python_arguments
from caffe2.graph.records import Field
from caffe2.graph.remapping import RemapFunction
from caffe2.graph.repair import join_split_arguments
from caffe2.ops.declaration import GradientSlice
from caffe2.proto import caffe2_pb2

_names_used: set[str] = set()
_names_lock = threading.Lock()


def _unique_net_name(base: str) -> str:
    """`base`, or `base_1`, `base_2`, ...: no two nets of a process have one name."""
    with _names_lock:
        name, index = base, 0
        while name in _names_used:
            index += 1
            name = f"{base}_{index}"
        _names_used.add(name)
    return name


class Net(NetBlobs, NetRecords):
    """Operators in order, with the blobs that come from outside and those that leave.

    `net.Relu("x", "y")` appends an operator of any declared type and gives a reference to its
    output (a tuple of them for several, None for none).  Inputs that no earlier operator of the
    net writes become external inputs.  Names given as strings are put in the current NameScope.
    """

    # Called with each operator that a method of a net makes; see runtime/immediate.py.
    on_create: ClassVar[Callable[[caffe2_pb2.OperatorDef], None] | None] = None

    def __init__(self, name_or_proto: str | caffe2_pb2.NetDef, inplace: bool = False) -> None:
        """A new net, or one that goes on with a copy of a NetDef (`inplace`: with itself).

        Its name gets a number when the process has a net of that name already.
        """
        if isinstance(name_or_proto, caffe2_pb2.NetDef):
            proto = name_or_proto if inplace else caffe2_pb2.NetDef()
            if not inplace:
                proto.CopyFrom(name_or_proto)
            join_split_arguments(proto)
            proto.name = _unique_net_name(proto.name or "net")
        elif isinstance(name_or_proto, str):
            proto = caffe2_pb2.NetDef(name=_unique_net_name(name_or_proto or "net"))
        else:
            raise TypeError(f"a Net is made from a name or a NetDef, got {name_or_proto!r}")
        super().__init__(proto)
        self._sites: list[Site] = []
        self._held: list[Any] = []  # what operators stand for by name, such as Python functions
        self._attributes: dict[str, list[Any]] = {}
        self.observers: list[Attached] = []
        self._param_init: Net | None = None
        self._inputs.update(proto.external_input)
        self._declare_inputs(proto.op)

    # -- what there is ----------------------------------------------------------------------

    def Proto(self) -> caffe2_pb2.NetDef:
        """The NetDef under construction; it may be changed directly."""
        return self._net

    def Name(self) -> str:
        return self._net.name

    def __str__(self) -> str:
        return self._net.name

    def __repr__(self) -> str:
        return f'<Net "{self._net.name}" of {len(self._net.op)} operators>'

    @property
    def op_sites(self) -> list[str]:
        """For each operator, the "file:line" of the user's code that made it ("": not known)."""
        self._fit_sites()
        return [site.line for site in self._sites]

    def AttachObserver(self, observer: Observer, before: bool = False) -> None:
        """Has `observer(op)` called for each operator when the net runs: after it, or `before` it.

        op is the OperatorDef.  Blobs can be fetched and fed meanwhile, and what it raises ends the
        run.  A net that was created already takes note when it is next run as this object.
        """
        self.observers.append(Attached(observer, before))

    def AddObserver(self, observer_type: str) -> Any:
        """Attaches a "TimeObserver" or "RunCountObserver" (see graph/observer.py), and gives it.
        UsageError for others."""
        if observer_type not in KINDS:
            raise UsageError(f"there is no {observer_type}; there are {', '.join(KINDS)}")
        observer = KINDS[observer_type]()
        self.AttachObserver(observer.before, before=True)
        self.AttachObserver(observer.after)
        return observer

    def RemoveObserver(self, observer: Any) -> None:
        """Detaches what AddObserver gave."""
        self.observers[:] = [
            attached
            for attached in self.observers
            if getattr(attached.observer, "__self__", None) is not observer
        ]

    def NumObservers(self) -> int:
        """How many observers are attached."""
        return sum(not attached.before for attached in self.observers)

    def PopulateProtoWithFileName(self) -> None:
        """Names each operator after the code that made it: "file:line:function"."""
        self._fit_sites()
        for op, site in zip(self._net.op, self._sites, strict=True):
            if site.line:
                op.name = f"{site.line}:{site.function}"

    def KeepRandomState(self, blob: Any) -> None:
        """Keeps the state of the net's random numbers in `blob`: int64, seed and number of runs.

        Saved and fed back, the net goes on with the numbers that it would have drawn.  Empty at
        first: the net fills it.  Operators whose device option has a seed keep that one.
        """
        self._net.arg.append(MakeArgument("random_state", str(blob)))

    def SaveSites(self) -> None:
        """Writes into each operator (its `debug_info`) where it was made, so that errors of a net
        that was saved and loaded say it."""
        self._fit_sites()
        for op, site in zip(self._net.op, self._sites, strict=True):
            if site.line:
                op.debug_info = site.line

    def StripSites(self) -> None:
        """Takes out of the net what says where its operators were made."""
        for op in self._net.op:
            op.ClearField("debug_info")
        self._sites = []

    @property
    def external_inputs(self) -> list[BlobReference]:
        return [BlobReference(name, self) for name in self._net.external_input]

    @property
    def external_outputs(self) -> list[BlobReference]:
        return [BlobReference(name, self) for name in self._net.external_output]

    @property
    def param_init(self) -> Net:
        """The net that makes the parameters which operators of this one were given sizes for."""
        if self._param_init is None:
            self._param_init = Net(self._net.name + "_init")
        return self._param_init

    def _fit_sites(self) -> None:
        del self._sites[len(self._net.op) :]
        self._sites.extend(Site(op.debug_info) for op in self._net.op[len(self._sites) :])

    @contextmanager
    def __call__(self) -> Iterator[Net]:
        """`with model.param_init_net() as init_net:`: the net itself, for a block of its own."""
        yield self

    # -- inputs, outputs, arguments -----------------------------------------------------------

    def AddExternalInput(self, *inputs: Any) -> Any:
        """Declares blobs that come from outside; gives one reference, or a list for several.

        The names stand for themselves, without scope; a record stands for its columns.  UsageError
        for one declared already.
        """
        added = self._add_inputs(inputs)
        return added[0] if len(added) == 1 else added

    AddExternalInputs = AddExternalInput

    def AddScopedExternalInputs(self, *inputs: Any) -> Any:
        """AddExternalInput for names in the current NameScope."""
        return self.AddExternalInput(*(ScopedBlobReference(blob) for blob in _flat(inputs)))

    def _add_inputs(self, inputs: Iterable[Any]) -> list[BlobReference]:
        references = [BlobReference(blob, self) for blob in _flat(inputs)]
        if not references:
            raise UsageError("no external input was named")
        self._look()
        names = [reference.name for reference in references]
        for index, name in enumerate(names):
            if name in self._inputs or name in names[:index]:
                raise UsageError(f"Net already contains an input named {name}")
        self._net.external_input.extend(names)
        return references

    def AddExternalOutput(self, *outputs: Any) -> None:
        """Declares blobs that leave the net.  UsageError (with near names) for undefined ones."""
        for output in _flat(outputs):
            if not self.BlobIsDefined(output):
                raise UsageError(f"{output} is not defined in net {self}{self._near(output)}")
            self._net.external_output.append(str(output))

    AddExternalOutputs = AddExternalOutput

    def AddScopedExternalOutputs(self, *outputs: Any) -> None:
        """AddExternalOutput for names in the current NameScope."""
        self.AddExternalOutput(*(ScopedBlobReference(blob) for blob in _flat(outputs)))

    def AddArgument(self, arg_name: str, arg_value: Any) -> None:
        """An argument of the net as a whole."""
        self._net.arg.append(MakeArgument(arg_name, arg_value))

    def add_attribute(self, name: str, obj: Any) -> None:
        """Remembers a Python object under a name; it does not become part of the NetDef."""
        self._attributes.setdefault(name, []).append(obj)

    def get_attributes(self, name: str) -> list[Any]:
        return self._attributes.get(name, [])

    def RunAllOnGPU(self, gpu_id: int = 0, use_cudnn: bool = False) -> None:
        """Puts all operators on a GPU; `use_cudnn` asks for their cuDNN kernels."""
        device = DeviceOption(caffe2_pb2.PROTO_CUDA, gpu_id)
        run_on_device(self._net, device, "CUDNN" if use_cudnn else "")

    def RunAllOnMKL(self) -> None:
        """Puts all operators on the device MKLDNN."""
        run_on_device(self._net, DeviceOption(caffe2_pb2.PROTO_MKLDNN))

    def RunAllOnIDEEP(self) -> None:
        """Puts all operators on the device IDEEP."""
        run_on_device(self._net, DeviceOption(caffe2_pb2.PROTO_IDEEP))

    def OrderedNet(self) -> Net:
        """This net, whose operators from now on run in order, whoever runs it."""
        self._net.type = "simple"
        return self

    # -- operators --------------------------------------------------------------------------

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        if op_type.startswith("_"):
            raise AttributeError(f"Attribute {op_type} not found.")
        try:
            ops.find(op_type)
        except ops.UnknownOperatorError as error:
            near = f" Did you mean: [{','.join(error.near)}]" if error.near else ""
            problem = f"Method {op_type} is not a registered operator.{near}"
            raise AttributeError(problem) from None

        def create(inputs: Any, outputs: Any = None, **kwargs: Any) -> Any:
            return self._create(op_type, inputs, outputs, kwargs)

        create.__name__ = op_type
        create.__doc__ = ops.find(op_type).doc
        return create

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.operator_types()]

    @staticmethod
    def operator_types() -> list[str]:
        """All declared operators."""
        return list(ops.all())

    def _create(self, op_type: str, inputs: Any, outputs: Any, kwargs: dict[str, Any]) -> Any:
        inputs = blob_references(inputs)
        if outputs is None:
            least = ops.find(op_type).outputs.least
            outputs = [self.NextName(op_type)] if least == 1 else least
        if isinstance(outputs, int):
            outputs = [self.NextName(op_type, index) for index in range(outputs)]
        outputs = blob_references(outputs)
        inputs += weights.missing_weights(self, op_type, inputs, outputs, kwargs)
        op = CreateOperator(op_type, inputs, outputs, **kwargs)
        self.extend_ops([op])
        if Net.on_create is not None:
            Net.on_create(op)
        made = tuple(BlobReference(output, self) for output in outputs)
        return made[0] if len(made) == 1 else made or None

    def extend_ops(self, new_ops: Iterable[caffe2_pb2.OperatorDef]) -> None:
        """Appends ready operators; inputs that nobody writes become external inputs."""
        new_ops = list(new_ops)
        self._fit_sites()
        self._look()
        self._declare_inputs(new_ops)
        self._net.op.extend(new_ops)
        self._sites.extend([user_site()] * len(new_ops))

    def insert_op_at_idx(self, op: caffe2_pb2.OperatorDef, op_idx: int) -> None:
        """Puts an operator in front of the one at `op_idx`."""
        self._fit_sites()
        following, sites = list(self._net.op[op_idx:]), self._sites
        del self._net.op[op_idx:]
        self._net.op.extend([op, *following])
        self._sites = [*sites[:op_idx], user_site(), *sites[op_idx:]]
        self._forget()

    def _declare_inputs(self, new_ops: Iterable[caffe2_pb2.OperatorDef]) -> None:
        """Makes external inputs of blobs that `new_ops`, appended, would read unwritten."""
        written: set[str] = set()
        for op in new_ops:
            for name in op.input:
                if not (name in self._inputs or name in self._written or name in written):
                    self._net.external_input.append(name)
                    self._inputs.add(name)
            written.update(op.output)
        self._seen_inputs = len(self._net.external_input)

    # -- whole nets --------------------------------------------------------------------------

    def AppendNet(
        self,
        net: Net | Iterable[caffe2_pb2.OperatorDef],
        device_option: caffe2_pb2.DeviceOption | None = None,
    ) -> Net:
        """Appends the operators of another net (or operators alone), its external inputs that
        this net does not write, and its external outputs.  `device_option` replaces theirs."""
        if isinstance(net, Net):
            net._fit_sites()
            source, sites = net.Proto(), net._sites
        else:
            source = caffe2_pb2.NetDef(op=list(net))
            sites = [user_site()] * len(source.op)
        self._look()
        self._net.external_input.extend(
            name
            for name in source.external_input
            if name not in self._inputs and name not in self._written
        )
        self.extend_ops(source.op)
        self._sites[len(self._sites) - len(sites) :] = sites
        if device_option is not None:
            for op in self._net.op[len(self._net.op) - len(sites) :]:
                op.device_option.CopyFrom(device_option)
        self._net.external_output.extend(
            name for name in source.external_output if name not in self._net.external_output
        )
        return self

    def Clone(
        self,
        name: str,
        blob_remap: Mapping[Any, Any] | None = None,
        op_id_mask: Sequence[int] | None = None,
        remap_funcs: Mapping[str, RemapFunction] | None = None,
        keep_schema: bool = True,
        update_external_list: bool = False,
    ) -> Net:
        """A copy under a new name.

        blob_remap            old name -> new name of blobs
        op_id_mask            indices of the operators to keep; default: all
        remap_funcs           by operator type, what renames the blobs that arguments speak of;
                              those that hold nets have theirs already
        keep_schema           the copy has the input and output records too
        update_external_list  external inputs and outputs are found anew from the operators kept:
                              blobs read unwritten, and blobs written that nobody reads
        """
        proto = cloning.clone_proto(
            self._net, name, blob_remap, op_id_mask, remap_funcs, update_external_list
        )
        remap = {str(old): str(new) for old, new in (blob_remap or {}).items()}
        clone = self._cloned(proto, op_id_mask)
        if keep_schema:
            clone._input_record = cloning.bind(self._input_record, remap, clone)
            clone._output_record = cloning.bind(self._output_record, remap, clone)
        return clone

    def _cloned(self, proto: caffe2_pb2.NetDef, op_id_mask: Sequence[int] | None) -> Net:
        self._fit_sites()
        clone = Net(proto)
        kept = range(len(self._sites)) if op_id_mask is None else op_id_mask
        clone._sites = [self._sites[index] for index in kept]
        clone._held = list(self._held)
        clone._attributes = {key: list(values) for key, values in self._attributes.items()}
        return clone

    def ClonePartial(
        self,
        name: str,
        inputs: Any,
        outputs: Sequence[Any],
        remap_funcs: Mapping[str, RemapFunction] | None = None,
    ) -> tuple[Net, list[BlobReference]]:
        """A net of the operators that lead from some blobs to others, and its outputs.

        inputs   blobs, or a dict from blobs to what they are called in the new net
        outputs  blobs that the net writes

        What the new net writes is called "<name>/<blob>"; other blobs keep their names.
        UsageError for an input that is computed from another one.
        """
        proto, remap, kept = cloning.clone_partial(self, name, inputs, outputs, remap_funcs)
        clone = self._cloned(proto, kept)
        return clone, [BlobReference(remap[str(output)], clone) for output in outputs]

    def reroute_tensor(
        self,
        tensor: Any,
        new_producer: caffe2_pb2.OperatorDef,
        can_modify: Sequence[caffe2_pb2.OperatorDef] | None = None,
    ) -> None:
        """Puts an operator behind the last that writes a blob; those that read the blob (only
        those in `can_modify`, where it is given) read the first output of the new one instead.
        UsageError when nobody writes the blob."""
        cloning.reroute_tensor(self, tensor, new_producer, can_modify)

    def Const(self, array: Any, blob_out: Any = None, dtype: Any = None) -> BlobReference:
        """A blob that holds the array (or number, string, list) each time the net runs."""
        op_type, arguments = fills.given_tensor(array, dtype)
        return self._create(op_type, [], [blob_out] if blob_out else 1, arguments)  # type: ignore[no-any-return]

    def LogInfo(self, *msg_or_blobs: Any) -> None:
        """Prints messages and blobs each time the net runs."""
        for message in msg_or_blobs:
            blob = message
            if not isinstance(message, BlobReference):
                name = self.NextName("log")
                blob = self.GivenTensorStringFill([], name, shape=[], values=[message])
            self.Print(blob, [])

    def Python(
        self,
        f: Any,
        grad_f: Any = None,
        python_func_type: Any = None,
        pass_workspace: bool = False,
        grad_output_indices: Sequence[int] | None = None,
        grad_input_indices: Sequence[int] | None = None,
    ) -> Callable[..., Any]:
        """What appends an operator that calls Python: `net.Python(f)(["x"], ["y"])`.

        f                    called as f(inputs, outputs), lists of tensors with `.data`, `.shape`,
                             `.reshape(shape)` and `.feed(array)`; or a tuple (make, args, kwargs),
                             whose result is called
        grad_f               the same for the gradient: its inputs are the inputs, the outputs and
                             the gradients of the outputs, its outputs those of the inputs
        pass_workspace       f gets the workspace as third argument
        grad_output_indices  the outputs whose gradients grad_f needs; default: all
        grad_input_indices   the inputs that get a gradient; default: all

        The functions live as long as the net.  The message holds a name for them only, so that
        the operator runs in this process and nowhere else.
        """
        arguments, held = python_arguments(
            f, grad_f, pass_workspace, grad_output_indices, grad_input_indices
        )

        def append(inputs: Any, outputs: Any = None, **kwargs: Any) -> Any:
            self._held.append(held)
            return self._create("Python", inputs, outputs, {**arguments, **kwargs})

        return append

    def DeduplicateGradientSlices(self, g: GradientSlice, aggregator: str = "sum") -> GradientSlice:
        """Appends operators that bring the rows of a sparse gradient with one index together.

        aggregator  "sum" or "mean"; ValueError for others
        """
        segments = {"sum": "UnsortedSegmentSum", "mean": "UnsortedSegmentMean"}
        if aggregator.lower() not in segments:
            raise UsageError(f"{aggregator} is not supported; sum and mean are")
        unique, remapping = self.Unique([g.indices], 2, engine="SparseHash")
        # An output that is asked for by number is numbered, too.
        (values,) = output_to_list(
            self.__getattr__(segments[aggregator.lower()])([g.values, remapping], 1)
        )
        return GradientSlice(indices=unique, values=values)

    def set_rand_seed(
        self, seed: int = 100, sequence_seed: bool = True, seed_on_op_def: bool = False
    ) -> None:
        """Gives every operator a random seed: `seed`, `seed` + 1, ... (sequence_seed), one that
        follows from the operator itself (seed_on_op_def), or the same for all."""
        if sequence_seed and seed_on_op_def:
            raise UsageError("sequence_seed and seed_on_op_def cannot be both set to True.")
        for index, op in enumerate(self._net.op):
            own = zlib.crc32(op.SerializeToString()) if seed_on_op_def else 0
            op.device_option.random_seed = (seed + own + index * sequence_seed) % 2**32

    def AddGradientOperators(self, ys: Any, skip: int = 0) -> dict[BlobReference, Gradient]:
        """Appends the operators that compute the gradients of `ys`.

        ys    a blob or a list of blobs, whose gradients are taken as 1, or a dict from blobs to
              blobs that hold their gradients (None: 1)
        skip  the number of operators at the beginning to leave alone

        Gives a dict from every blob that has a gradient to that gradient: a BlobReference, or a
        GradientSlice of two for a sparse one.  UsageError for a `y` that the net does not use,
        GradientError when the net cannot be differentiated.
        """
        if isinstance(ys, (str, BlobReference)):
            ys = [ys]
        for y in ys:
            if not self.UsesBlob(y):
                raise UsageError(f"net {self} has no blob '{y}' to start from{self._near(y)}")
        grad_ops, input_to_grad = backward_pass(self._net.op[skip:], ys, sites=self.op_sites[skip:])
        self.extend_ops(grad_ops)
        return input_to_grad


def _flat(blobs: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for blob in blobs:
        if isinstance(blob, Field):
            found.extend(blob.field_blobs() if blob.has_blobs() else blob.field_names())
        else:
            found.extend(blob if isinstance(blob, (list, tuple)) else [blob])
    return found


def get_net_name(netlike: Any) -> str:
    """The name of a Net or NetDef, or the name itself."""
    if isinstance(netlike, Net):
        return netlike.Name()
    return str(netlike.name) if isinstance(netlike, caffe2_pb2.NetDef) else str(netlike)


def output_to_list(op_output: Any) -> list[Any]:
    """What an operator call gave, as a list."""
    if op_output is None:
        return []
    return list(op_output) if isinstance(op_output, (list, tuple)) else [op_output]
