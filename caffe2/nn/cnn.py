"""CNNModelHelper: the model of older scripts, whose layers are methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from caffe2.graph.device import DeviceOption
from caffe2.nn.brew import brew
from caffe2.nn.model_helper import ModelHelper
from caffe2.proto import caffe2_pb2

# Methods and the layers of brew that they stand for.
_LAYERS = {
    "Accuracy": "accuracy",
    "AddWeightDecay": "add_weight_decay",
    "AveragePool": "average_pool",
    "Concat": "concat",
    "Conv": "conv",
    "ConvNd": "conv_nd",
    "ConvTranspose": "conv_transpose",
    "DepthConcat": "depth_concat",
    "Dropout": "dropout",
    "FC": "fc",
    "FC_Decomp": "fc_decomp",
    "FC_Prune": "fc_prune",
    "FC_Sparse": "fc_sparse",
    "GroupConv": "group_conv",
    "GroupConv_Deprecated": "group_conv_deprecated",
    "ImageInput": "image_input",
    "InstanceNorm": "instance_norm",
    "Iter": "iter",
    "LRN": "lrn",
    "MaxPool": "max_pool",
    "MaxPoolWithIndex": "max_pool_with_index",
    "PRelu": "prelu",
    "PackedFC": "packed_fc",
    "PadImage": "pad_image",
    "Relu": "relu",
    "Softmax": "softmax",
    "SpatialBN": "spatial_bn",
    "SpatialGN": "spatial_gn",
    "Sum": "sum",
    "Transpose": "transpose",
    "VideoInput": "video_input",
}


class CNNModelHelper(ModelHelper):
    """A ModelHelper with the layers of `brew` as methods: `model.Conv("data", "conv1", 3, 64, 7)`.

    order                    "NCHW" or "NHWC": of all layers
    use_cudnn                ask for cuDNN kernels, where there are any
    cudnn_exhaustive_search  let cuDNN try its kernels
    ws_nbytes_limit          memory that cuDNN may use

    The others are those of ModelHelper.
    """

    def __init__(
        self,
        order: str = "NCHW",
        name: str | None = None,
        use_cudnn: bool = True,
        cudnn_exhaustive_search: bool = False,
        ws_nbytes_limit: int | None = None,
        init_params: bool = True,
        skip_sparse_optim: bool = False,
        param_model: ModelHelper | None = None,
    ) -> None:
        arg_scope: dict[str, Any] = {
            "order": order,
            "use_cudnn": use_cudnn,
            "cudnn_exhaustive_search": cudnn_exhaustive_search,
        }
        if ws_nbytes_limit:
            arg_scope["ws_nbytes_limit"] = ws_nbytes_limit
        super().__init__(
            name=name or "CNN",
            init_params=init_params,
            skip_sparse_optim=skip_sparse_optim,
            param_model=param_model,
            arg_scope=arg_scope,
        )
        self.order, self.use_cudnn = order, use_cudnn
        self.cudnn_exhaustive_search, self.ws_nbytes_limit = (
            cudnn_exhaustive_search,
            ws_nbytes_limit,
        )

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        if op_type not in _LAYERS:
            return super().__getattr__(op_type)
        layer = getattr(brew, _LAYERS[op_type])

        def call(*args: Any, **kwargs: Any) -> Any:
            return layer(self, *args, **kwargs)

        call.__name__, call.__doc__ = op_type, layer.__doc__
        return call

    @property
    def XavierInit(self) -> tuple[str, dict[str, Any]]:
        """For `weight_init`: uniform, by the number of inputs."""
        return "XavierFill", {}

    @property
    def MSRAInit(self) -> tuple[str, dict[str, Any]]:
        """For `weight_init`: normal, by the number of outputs."""
        return "MSRAFill", {}

    @property
    def ZeroInit(self) -> tuple[str, dict[str, Any]]:
        """For `weight_init` or `bias_init`: 0."""
        return "ConstantFill", {}

    def ConstantInit(self, value: float) -> tuple[str, dict[str, Any]]:
        """For `weight_init` or `bias_init`: a number."""
        return "ConstantFill", {"value": value}

    @property
    def CPU(self) -> caffe2_pb2.DeviceOption:
        """The CPU, for a DeviceScope."""
        return DeviceOption(caffe2_pb2.PROTO_CPU)

    @property
    def GPU(self) -> Callable[..., caffe2_pb2.DeviceOption]:
        """`model.GPU(1)` is the second GPU."""
        return lambda gpu_id=0: DeviceOption(caffe2_pb2.PROTO_CUDA, gpu_id)
