"""A trained model as one database: its nets as a MetaNetDef, and its parameters.

save_to_db("minidb", "model.minidb", PredictorExportMeta(
    predict_net=model.net, parameters=model.params, inputs=["data"], outputs=["softmax"]))
net = prepare_prediction_net("model.minidb", "minidb")
workspace.RunNet(net)
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from caffe2.graph import metanet
from caffe2.graph.blob import BlobReference
from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.graph.operator import CreateOperator
from caffe2.graph.scope import CurrentDeviceScope
from caffe2.proto import caffe2_pb2, metanet_pb2
from caffe2.proto.predictor_consts_pb2 import PredictorConsts
from caffe2.runtime import workspace

_NAMES = PredictorConsts()


class _Fields(NamedTuple):
    predict_net: caffe2_pb2.NetDef
    parameters: list[str]
    inputs: list[str]
    outputs: list[str]
    shapes: dict[str, Any]
    name: str
    extra_init_net: Any
    global_init_net: Any
    net_type: str | None
    num_workers: int | None
    trainer_prefix: str | None


class PredictorExportMeta(_Fields):
    """What belongs to a model that is to be saved.

    predict_net      computes the outputs: a Net or NetDef
    parameters       the blobs to save
    inputs, outputs  blobs of the net
    shapes           blob -> shape of inputs and outputs; where one is missing, that of the blob in
                     the workspace counts
    name             of the model, when a MetaNetDef is to hold several
    extra_init_net   goes on after the net that makes the inputs
    global_init_net  goes on after the net that loads the parameters
    net_type, num_workers  how predict_net is to be run

    Names of blobs are strings or BlobReferences.  UsageError for a parameter that is also an input
    or output, and for a predict_net that is no net.
    """

    __slots__ = ()

    def __new__(
        cls,
        predict_net: Any,
        parameters: Iterable[Any],
        inputs: Iterable[Any],
        outputs: Iterable[Any],
        shapes: Mapping[Any, Sequence[int]] | None = None,
        name: str = "",
        extra_init_net: Any = None,
        global_init_net: Any = None,
        net_type: str | None = None,
        num_workers: int | None = None,
        trainer_prefix: str | None = None,
    ) -> PredictorExportMeta:
        proto = predict_net.Proto() if hasattr(predict_net, "Proto") else predict_net
        if not isinstance(proto, caffe2_pb2.NetDef):
            raise UsageError(
                f"predict_net must be a Net or NetDef, not {type(predict_net).__name__}"
            )
        parameters, inputs, outputs = (
            [str(blob) for blob in blobs] for blobs in (parameters, inputs, outputs)
        )
        for what, blobs in (("inputs", inputs), ("outputs", outputs)):
            both = sorted(set(parameters) & set(blobs))
            if both:
                raise UsageError(
                    f"Parameters and {what} are required to be disjoint. Both are: "
                    + ", ".join(both)
                )
        return super().__new__(
            cls,
            proto,
            parameters,
            inputs,
            outputs,
            {str(blob): shape for blob, shape in (shapes or {}).items()},
            name,
            extra_init_net,
            global_init_net,
            net_type,
            num_workers,
            trainer_prefix,
        )

    def inputs_name(self) -> str:
        return metanet.get_comp_name(_NAMES.INPUTS_BLOB_TYPE, self.name)

    def outputs_name(self) -> str:
        return metanet.get_comp_name(_NAMES.OUTPUTS_BLOB_TYPE, self.name)

    def parameters_name(self) -> str:
        return metanet.get_comp_name(_NAMES.PARAMETERS_BLOB_TYPE, self.name)

    def global_init_name(self) -> str:
        return metanet.get_comp_name(_NAMES.GLOBAL_INIT_NET_TYPE, self.name)

    def predict_init_name(self) -> str:
        return metanet.get_comp_name(_NAMES.PREDICT_INIT_NET_TYPE, self.name)

    def predict_net_name(self) -> str:
        return metanet.get_comp_name(_NAMES.PREDICT_NET_TYPE, self.name)

    def train_init_plan_name(self) -> str:
        return metanet.get_comp_name(_NAMES.TRAIN_INIT_PLAN_TYPE, self.name)

    def train_plan_name(self) -> str:
        return metanet.get_comp_name(_NAMES.TRAIN_PLAN_TYPE, self.name)


def create_predict_net(predictor_export_meta: PredictorExportMeta) -> caffe2_pb2.NetDef:
    """The net that predicts, with the inputs, parameters and outputs of the model as its own."""
    meta = predictor_export_meta
    net = caffe2_pb2.NetDef()
    net.CopyFrom(Net(meta.predict_net.name or "predict").Proto())
    net.op.extend(meta.predict_net.op)
    net.partition_info.extend(meta.predict_net.partition_info)
    net.external_input.extend([*meta.inputs, *meta.parameters])
    net.external_output.extend(meta.outputs)
    net.arg.extend(meta.predict_net.arg)
    if meta.net_type is not None:
        net.type = meta.net_type
    if meta.num_workers is not None:
        net.num_workers = meta.num_workers
    return net


def create_predict_init_net(
    ws: Any, predictor_export_meta: PredictorExportMeta
) -> caffe2_pb2.NetDef:
    """The net that makes inputs and outputs, full of zeros.

    ws: where the shapes of blobs are that `shapes` does not name: anything with FetchBlob.
    """
    meta = predictor_export_meta
    net = Net("predict-init")
    for blob in dict.fromkeys([*meta.inputs, *meta.outputs]):
        shape = meta.shapes.get(blob)
        if shape is None:
            shape = ws.FetchBlob(blob).shape
        # Not named after the present NameScope: the model's blobs are not.
        net.ConstantFill([], BlobReference(blob, net), shape=list(shape), value=0.0)
    net.AddExternalInput(*(BlobReference(blob) for blob in (*meta.inputs, *meta.outputs)))
    if meta.extra_init_net:
        net.AppendNet(_as_net(meta.extra_init_net))
    return net.Proto()


def _create_global_init_net(meta: PredictorExportMeta) -> caffe2_pb2.NetDef:
    net = Net("global-init")
    reader = BlobReference(_NAMES.PREDICTOR_DBREADER, net)
    net.Load([reader], [BlobReference(blob, net) for blob in meta.parameters])
    net.AddExternalOutput(*(BlobReference(blob, net) for blob in meta.parameters))
    if meta.global_init_net:
        net.AppendNet(_as_net(meta.global_init_net))
    return net.Proto()


def _as_net(net: Any) -> Net:
    return net if isinstance(net, Net) else Net(net)


def get_meta_net_def(
    predictor_export_meta: PredictorExportMeta, ws: Any = None, db_type: str | None = None
) -> metanet_pb2.MetaNetDef:
    """The MetaNetDef of a model; `ws` as in `create_predict_init_net` (default: the current
    workspace)."""
    meta, found = predictor_export_meta, metanet_pb2.MetaNetDef()
    metanet.AddNet(found, meta.predict_init_name(), create_predict_init_net(ws or workspace, meta))
    metanet.AddNet(found, meta.global_init_name(), _create_global_init_net(meta))
    metanet.AddNet(found, meta.predict_net_name(), create_predict_net(meta))
    metanet.AddBlobs(found, meta.parameters_name(), meta.parameters)
    metanet.AddBlobs(found, meta.inputs_name(), meta.inputs)
    metanet.AddBlobs(found, meta.outputs_name(), meta.outputs)
    return found


def get_predictor_exporter_helper(submodelNetName: str) -> PredictorExportMeta:
    """An empty model of a name, whose methods give the keys of its parts."""
    net = caffe2_pb2.NetDef(name=submodelNetName)
    return PredictorExportMeta(net, [], [], [], name=submodelNetName)


def save_to_db(
    db_type: str,
    db_destination: str | os.PathLike[str],
    predictor_export_meta: PredictorExportMeta,
    use_ideep: bool = False,
    *args: Any,
    **kwargs: Any,
) -> None:
    """Writes a model, with the parameters that the current workspace has, to a new database.

    The MetaNetDef is also in the blob "!!META_NET_DEF" afterwards.  EngineError when a parameter
    is missing or the file cannot be written; a file that was there before is then unchanged.
    `use_ideep` and further arguments are without effect.
    """
    meta = predictor_export_meta
    message = get_meta_net_def(meta, db_type=db_type)
    workspace.FeedBlob(_NAMES.META_NET_DEF, message.SerializeToString())
    blobs = [BlobReference(blob) for blob in (_NAMES.META_NET_DEF, *meta.parameters)]
    workspace.RunOperatorOnce(
        CreateOperator(
            "Save", blobs, [], db=os.fspath(db_destination), db_type=db_type, absolute_path=True
        )
    )


def load_from_db(
    filename: str | os.PathLike[str],
    db_type: str,
    device_option: caffe2_pb2.DeviceOption | None = None,
    *args: Any,
    **kwargs: Any,
) -> metanet_pb2.MetaNetDef:
    """The MetaNetDef of a saved model.

    Afterwards the current workspace has the blobs "!!META_NET_DEF", and "!!PREDICTOR_DBREADER", out
    of which the net GLOBAL_INIT_NET_TYPE loads the parameters.  EngineError when the file is
    missing or no such database, UsageError when what it holds is no MetaNetDef.
    `device_option`: put on the operators that load, and on all of the nets; default: that of the
    current DeviceScope.  Further arguments are without effect.
    """
    device = device_option if device_option is not None else CurrentDeviceScope()
    reader, blob = BlobReference(_NAMES.PREDICTOR_DBREADER), BlobReference(_NAMES.META_NET_DEF)
    path = os.fspath(filename)
    for op in (
        CreateOperator("CreateDB", [], [reader], db=path, db_type=db_type, device_option=device),
        CreateOperator("Load", [reader], [blob], device_option=device),
    ):
        workspace.RunOperatorOnce(op)
    content = workspace.FetchBlob(blob)
    try:
        found = metanet_pb2.MetaNetDef.FromString(content)
    except (DecodeError, TypeError) as error:
        raise UsageError(f"'{path}' holds no MetaNetDef in {blob}: {error}") from None
    if device is not None:
        for entry in found.nets:
            for op in entry.value.op:
                op.device_option.CopyFrom(device)
    return found


def prepare_prediction_net(
    filename: str | os.PathLike[str],
    db_type: str,
    device_option: caffe2_pb2.DeviceOption | None = None,
    *args: Any,
    **kwargs: Any,
) -> Net:
    """Loads a saved model into the current workspace: its parameters, its inputs (zeros) and its
    net, which is ready to run and is given back.  Errors: see `load_from_db`; UsageError for a
    model without these nets."""
    meta = load_from_db(filename, db_type, device_option)
    nets = []
    for key in (
        _NAMES.GLOBAL_INIT_NET_TYPE,
        _NAMES.PREDICT_INIT_NET_TYPE,
        _NAMES.PREDICT_NET_TYPE,
    ):
        net = metanet.GetNet(meta, key)
        if net is None:
            known = ", ".join(entry.key for entry in meta.nets) or "none"
            raise UsageError(f"'{os.fspath(filename)}' has no net {key}; it has {known}")
        nets.append(Net(net))
    load, init, predict = nets
    workspace.RunNetOnce(load)
    workspace.RunNetOnce(init)
    workspace.CreateNet(predict)
    return predict
