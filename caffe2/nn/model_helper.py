"""ModelHelper: a net, the net that makes its parameters, and the parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from caffe2.graph.blob import BlobReference
from caffe2.graph.errors import UsageError
from caffe2.graph.gradients import Gradient
from caffe2.graph.net import Net
from caffe2.graph.scope import SEPARATOR, CurrentNameScope
from caffe2.nn.modifiers import DEFAULT_MODIFIER, OptimizerContext
from caffe2.nn.parameter_sharing import parameter_sharing_context
from caffe2.nn.parameters import ParameterInfo, ParameterTags
from caffe2.ops.declaration import GradientSlice
from caffe2.proto import caffe2_pb2

_ARG_SCOPE = {"order": "NCHW", "use_cudnn": True, "cudnn_exhaustive_search": False}
# In the debug_info of operators that make parameters.
_INIT_MARK = "/param_init_net"
# Operators that models with allow_not_known_ops=False may use: none that brew has parameters for.
_KNOWN = """
    Accuracy Adadelta Adagrad Adam Add AveragedLoss Cast Checkpoint ConstantFill Copy
    CopyCPUToGPU CopyGPUToCPU CreateDB DequeueBlobs EnsureCPUOutput ExpandDims Flatten FlattenToVec
    LabelCrossEntropy LearningRate MakeTwoClass MatMul NCCLAllreduce NHWC2NCHW PRelu PackSegments
    Print ReduceFrontSum Scale ScatterWeightedSum Sigmoid Snapshot Softmax SoftmaxWithLoss
    SortedSegmentSum SparseAdadelta SparseAdagrad SquaredL2Distance Squeeze StopGradient Summarize
    Tanh TensorProtosDBInput Transpose UnpackSegments WeightedSum YellowFin
"""
_KNOWN_OPS = frozenset(_KNOWN.split())


class ModelHelper:
    """A model under construction.

    `net` computes, `param_init_net` makes the parameters that the layers of `brew` need.  Any
    operator is a method, `model.Relu("x", "y")`, and goes to `net`.

    name                 of `net`; `param_init_net` is called `<name>_init`
    init_params          False: parameters come from elsewhere, nothing fills them
    allow_not_known_ops  False: operators besides a list of old ones come from `brew` only
    skip_sparse_optim    True: optimizers leave parameters with sparse gradients alone
    param_model          a model whose parameters and `param_init_net` are used too
    arg_scope            arguments that every layer of `brew` gets unless told otherwise
    net                  a net to go on with, instead of a new one
    """

    def __init__(
        self,
        name: str | None = None,
        init_params: bool = True,
        allow_not_known_ops: bool = True,
        skip_sparse_optim: bool = False,
        param_model: ModelHelper | None = None,
        arg_scope: Mapping[str, Any] | None = None,
        net: Net | None = None,
    ) -> None:
        self.name = name or "model"
        self.net = net if net is not None else Net(self.name)
        self.init_params = init_params
        self.allow_not_known_ops = allow_not_known_ops
        self.skip_sparse_optim = skip_sparse_optim
        self.arg_scope: dict[str, Any] = {**_ARG_SCOPE, **(arg_scope or {})}
        self.gradient_ops_added = False
        self.grad_map: dict[BlobReference, Gradient] = {}
        self.weights: list[BlobReference] = []
        self.biases: list[BlobReference] = []
        self.param_init_net: Net
        self.params: list[BlobReference] = []
        self.param_to_grad: dict[BlobReference, Gradient] = {}
        self._computed_params: list[BlobReference] = []
        self._parameters_info: dict[BlobReference, ParameterInfo] = {}
        if param_model is not None:
            self.param_init_net = param_model.param_init_net
            self.params = param_model.params
            self.param_to_grad = param_model.param_to_grad
            self._computed_params = param_model._computed_params
            self._parameters_info = param_model._parameters_info
        elif net is not None:
            self.param_init_net = net.param_init
        else:
            self.param_init_net = Net(f"{self.name}_init")

    @classmethod
    def of_net(cls, net: Net) -> ModelHelper:
        """The model around a plain net, the same one each time; `net.param_init` makes its
        parameters."""
        if not net.get_attributes("model_helper"):
            net.add_attribute("model_helper", cls(name=net.Name(), net=net))
        return net.get_attributes("model_helper")[0]  # type: ignore[no-any-return]

    # -- parameters -------------------------------------------------------------------------

    def create_param(
        self,
        param_name: str | BlobReference,
        shape: Sequence[int],
        initializer: Any,
        tags: str | Iterable[str] | None = None,
    ) -> BlobReference:
        """A parameter, made by `initializer`; the one of that name, if there is one.

        A string is a name in the current NameScope, or in the one that it stands for by
        ParameterSharing.  UsageError when the parameter exists in
        another shape.
        """
        if isinstance(param_name, str):
            blob = BlobReference(parameter_sharing_context.get_parameter_name(param_name))
        elif isinstance(param_name, BlobReference):
            blob = param_name
        else:
            raise TypeError(f"Unsupported type for param_name: {param_name!r}")
        known = self._parameters_info.get(blob)
        if known is not None:
            if known.shape is not None and list(known.shape) != list(shape):
                raise UsageError(
                    f"parameter '{blob}' exists with shape {list(known.shape)}; "
                    f"it cannot have shape {list(shape)} as well"
                )
            return known.blob
        if self.init_params:
            info: ParameterInfo = initializer.create_param(
                param_name=blob, init_net=self.param_init_net, shape=shape
            )
        else:
            info = ParameterInfo(None, BlobReference(blob, self.net), shape=shape)
        self._parameters_info[blob] = info
        self.AddParameter(info.blob, tags)
        self._choose_optimizer(info, {tags} if isinstance(tags, str) else set(tags or ()))
        return info.blob

    @staticmethod
    def _choose_optimizer(info: ParameterInfo, tags: set[str]) -> None:
        """The optimizer that `UseOptimizer` around has for one of the tags, or for all."""
        context: Any = OptimizerContext.current()
        for name in (*sorted(tags), DEFAULT_MODIFIER):
            if context.has_optimizer(name):
                info.optimizer = context.get_optimizer(name)
                return

    def AddParameter(self, param: BlobReference, tags: str | Iterable[str] | None = None) -> None:
        """Counts a blob among the parameters; `tags` (of ParameterTags) say what it is for."""
        if not isinstance(param, BlobReference):
            raise TypeError(f"a parameter is a BlobReference, got {param!r}")
        kinds = {tags} if isinstance(tags, str) else set(tags or ())
        info = self._parameters_info.setdefault(param, ParameterInfo(None, param))
        info.param_id = len(self._parameters_info) - 1
        if ParameterTags.COMPUTED_PARAM in kinds:
            self._computed_params.append(param)
        else:
            self.params.append(param)
        if ParameterTags.WEIGHT in kinds:
            self.weights.append(param)
        if ParameterTags.BIAS in kinds:
            self.biases.append(param)

    def get_param_info(self, param: BlobReference) -> ParameterInfo | None:
        """What is known of a parameter, or None."""
        return self._parameters_info.get(param)

    def GetParams(self, namescope: str | None = None, top_scope: bool = False) -> list[Any]:
        """The learned parameters in a name scope (default: the current one) and those inside it.

        `top_scope` has no effect.
        """
        return _in_scope(self.params, namescope)

    def GetComputedParams(self, namescope: str | None = None) -> list[BlobReference]:
        """The parameters that are computed while training, such as running means."""
        return _in_scope(self._computed_params, namescope)

    def GetAllParams(self, namescope: str | None = None) -> list[BlobReference]:
        """GetParams and GetComputedParams."""
        return self.GetParams(namescope) + self.GetComputedParams(namescope)

    def Validate(self) -> None:
        """UsageError when a parameter occurs twice."""
        duplicates = self._Validate()
        if duplicates:
            raise UsageError(f"Duplicate params: {duplicates}")

    def _Validate(self) -> list[str]:
        """The names of parameters that occur twice."""
        count = Counter(map(str, self.params + self._computed_params))
        return [name for name, times in count.items() if times > 1]

    # -- gradients --------------------------------------------------------------------------

    def AddGradientOperators(self, *args: Any, **kwargs: Any) -> dict[BlobReference, Gradient]:
        """`net.AddGradientOperators`, once; then `param_to_grad` holds the gradient of each
        parameter that has one."""
        if self.gradient_ops_added:
            raise RuntimeError("You cannot run AddGradientOperators twice.")
        self.Validate()
        self.grad_map = self.net.AddGradientOperators(*args, **kwargs)
        self.gradient_ops_added = True
        self.param_to_grad.update(self.get_param_to_grad(self.params))
        for param, grad in self.param_to_grad.items():
            # Old scripts append to `params` themselves.
            self._parameters_info.setdefault(param, ParameterInfo(None, param)).grad = grad
        return self.grad_map

    def get_param_to_grad(self, params: Iterable[BlobReference]) -> dict[BlobReference, Gradient]:
        """The gradients of those parameters that have one."""
        if not self.gradient_ops_added:
            raise RuntimeError("You need to run AddGradientOperators first.")
        return {param: self.grad_map[param] for param in params if param in self.grad_map}

    def GetOptimizationParamInfo(
        self, params: Iterable[BlobReference] | None = None
    ) -> list[ParameterInfo]:
        """The parameters (default: all) that have a gradient, for an optimizer."""
        if not self.gradient_ops_added:
            raise RuntimeError("Need to call AddGradientOperators first")
        chosen = self.params if params is None else params
        grads = self.param_to_grad
        if self.skip_sparse_optim:
            grads = {p: grad for p, grad in grads.items() if not isinstance(grad, GradientSlice)}
        return [self._parameters_info[param] for param in chosen if param in grads]

    # -- nets ---------------------------------------------------------------------------------

    def Proto(self) -> caffe2_pb2.NetDef:
        return self.net.Proto()

    def InitProto(self) -> caffe2_pb2.NetDef:
        return self.param_init_net.Proto()

    def get_name(self) -> str:
        return self.name

    def AddExternalInput(self, *inputs: Any) -> Any:
        """Declares blobs that come from outside; see `Net.AddExternalInput`."""
        return self.net.AddExternalInput(*inputs)

    def RunAllOnGPU(self, *args: Any, **kwargs: Any) -> None:
        """Puts both nets on a GPU; see `Net.RunAllOnGPU`."""
        self.param_init_net.RunAllOnGPU(*args, **kwargs)
        self.net.RunAllOnGPU(*args, **kwargs)

    def GetDevices(self) -> list[int]:
        """The GPUs of a data parallel model.  UsageError for another model."""
        devices = vars(self).get("_devices")
        if not devices:
            raise UsageError("Use data_parallel_model to run model on multiple GPUs.")
        return list(devices)

    def GetCompleteNet(self) -> Net:
        """One net of both: what makes the parameters (marked in `debug_info`), then the rest."""
        complete = Net(f"{self.name}_complete_net")
        complete.Proto().type = self.net.Proto().type
        for op in self.param_init_net.Proto().op:
            copy = complete.Proto().op.add()
            copy.CopyFrom(op)
            copy.debug_info += _INIT_MARK
        complete.AppendNet(self.net)
        return complete

    def ConstructInitTrainNetfromNet(self, net: Net) -> None:
        """Takes the two nets of this model out of what GetCompleteNet gave."""
        marks = [op.debug_info.endswith(_INIT_MARK) for op in net.Proto().op]
        parts = {}
        for name, wanted in (("generated_param_init_net", True), ("generated_net", False)):
            kept = [index for index, mark in enumerate(marks) if mark is wanted]
            full = f"{net.Name()}/{name}"
            parts[name] = net.Clone(full, op_id_mask=kept, update_external_list=True)
        self.param_init_net = parts["generated_param_init_net"]
        self.net = parts["generated_net"]

    def CreateDB(self, blob_out: Any, db: str, db_type: str, **kwargs: Any) -> Any:
        """A reader of a database, made by `param_init_net`; see the operator CreateDB."""
        return self.param_init_net.CreateDB([], blob_out, db=db, db_type=db_type, **kwargs)

    def TensorProtosDBInput(
        self,
        unused_blob_in: Any,
        blob_out: Any,
        batch_size: int,
        db: str,
        db_type: str,
        **kwargs: Any,
    ) -> Any:
        """Batches of tensors out of a database of TensorProtos, with a reader of its own."""
        reader = self.CreateDB(f"dbreader_{db}", db, db_type)
        return self.net.TensorProtosDBInput([reader], blob_out, batch_size=batch_size, **kwargs)

    def add_param_DEPRECATED(
        self, param: BlobReference, key: Any = None, shape: Any = None, length: Any = None
    ) -> None:
        """Counts a blob, which `param_init_net` makes, among the parameters."""
        if param in self._parameters_info:
            raise UsageError(f"parameter '{param}' exists already")
        self._parameters_info[param] = ParameterInfo(None, param, key, shape, length)
        self.AddParameter(param)

    def Averaged(self, inputs: Any, outputs: Any = None, **kwargs: Any) -> Any:
        """The operator AveragedLoss by another name."""
        return self.net.AveragedLoss(inputs, outputs, **kwargs)

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        if op_type.startswith("_") or "net" not in vars(self):
            raise AttributeError(f"Attribute {op_type} not found.")
        make = self.net.__getattr__(op_type)
        if not self.allow_not_known_ops and op_type not in _KNOWN_OPS:
            raise AttributeError(f"Operator {op_type} is not known to be safe")
        if op_type not in ("Conv", "FC"):
            return make

        def create(inputs: Any, outputs: Any = None, **kwargs: Any) -> Any:
            if "dim_in" in kwargs and not isinstance(inputs, (list, tuple)):
                from caffe2.nn.brew import brew

                return getattr(brew, op_type.lower())(self, inputs, outputs, **kwargs)
            return make(inputs, outputs, **kwargs)

        return create

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.net.operator_types()]


def _in_scope(params: Iterable[BlobReference], namescope: str | None) -> list[BlobReference]:
    scope = CurrentNameScope() if namescope is None else namescope
    if scope and not scope.endswith(SEPARATOR):
        scope += SEPARATOR
    return [param for param in params if param.GetNameScope().startswith(scope)]
