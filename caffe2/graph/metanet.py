"""MetaNetDef: the nets of a model, and the names of its inputs, outputs and parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from caffe2.graph.errors import UsageError
from caffe2.proto import caffe2_pb2, metanet_pb2


def get_comp_name(string: str, name: str | None) -> str:
    """The key of a part of one of several models in a MetaNetDef: `<string>_<name>`."""
    return f"{string}_{name}" if name else string


def _first(entries: Iterable[Any], key: str) -> Any:
    """The value of the first entry with this key; None when there is none."""
    return next((entry.value for entry in entries if entry.key == key), None)


def to_first_match_dict(kv_list: Iterable[Any]) -> dict[str, Any]:
    """Entries as a dictionary: of equal keys the first counts."""
    found: dict[str, Any] = {}
    for entry in kv_list:
        found.setdefault(entry.key, entry.value)
    return found


def AddNet(meta_net_def: metanet_pb2.MetaNetDef, net_name: str, net_def: Any) -> None:
    """Adds a Net or NetDef under a key."""
    proto = net_def.Proto() if hasattr(net_def, "Proto") else net_def
    meta_net_def.nets.add(key=net_name).value.CopyFrom(proto)


def GetNet(meta_net_def: metanet_pb2.MetaNetDef, key: str) -> caffe2_pb2.NetDef | None:
    """The net of a key; None when there is none."""
    net: caffe2_pb2.NetDef | None = _first(meta_net_def.nets, key)
    return net


def AddPlan(meta_net_def: metanet_pb2.MetaNetDef, plan_name: str, plan_def: Any) -> None:
    """Adds a Plan or PlanDef under a key."""
    proto = plan_def.Proto() if hasattr(plan_def, "Proto") else plan_def
    meta_net_def.plans.add(key=plan_name).value.CopyFrom(proto)


def GetPlan(meta_net_def: metanet_pb2.MetaNetDef, key: str) -> caffe2_pb2.PlanDef | None:
    """The plan of a key; None when there is none."""
    plan: caffe2_pb2.PlanDef | None = _first(meta_net_def.plans, key)
    return plan


def AddBlobs(meta_net_def: metanet_pb2.MetaNetDef, blob_name: str, blob_def: Iterable[Any]) -> None:
    """Adds names of blobs to those of a key."""
    names = _first(meta_net_def.blobs, blob_name)
    if names is None:
        names = meta_net_def.blobs.add(key=blob_name).value
    names.extend(map(str, blob_def))


def ReplaceBlobs(
    meta_net_def: metanet_pb2.MetaNetDef, blob_name: str, blob_def: Iterable[Any]
) -> None:
    """Puts names of blobs in the place of those of a key.  UsageError when there are none."""
    names = _first(meta_net_def.blobs, blob_name)
    if names is None:
        raise UsageError(f"The blob_name:{blob_name} does not exist")
    names[:] = map(str, blob_def)


def GetBlobs(meta_net_def: metanet_pb2.MetaNetDef, key: str) -> Sequence[str]:
    """The names of blobs of a key; none when there is no such key."""
    found = _first(meta_net_def.blobs, key)
    return found or []


def GetBlobsByTypePrefix(meta_net_def: metanet_pb2.MetaNetDef, blob_type_prefix: str) -> list[str]:
    """The names of blobs of all keys that begin with a prefix, each once."""
    entries = to_first_match_dict(meta_net_def.blobs).items()
    names = (name for key, value in entries if key.startswith(blob_type_prefix) for name in value)
    return list(dict.fromkeys(names))


def GetBlobsOrder(meta_net_def: metanet_pb2.MetaNetDef) -> Sequence[str]:
    return meta_net_def.blobsOrder


def SetBlobsOrder(meta_net_def: metanet_pb2.MetaNetDef, blobs_order: Iterable[str]) -> None:
    meta_net_def.blobsOrder[:] = blobs_order


def SetPreLoadBlobs(meta_net_def: metanet_pb2.MetaNetDef, pre_load_blobs: Iterable[str]) -> None:
    meta_net_def.preLoadBlobs[:] = pre_load_blobs


def SetRequestOnlyEmbeddings(
    meta_net_def: metanet_pb2.MetaNetDef, request_only_embeddings: Iterable[str]
) -> None:
    meta_net_def.requestOnlyEmbeddings[:] = request_only_embeddings


def SetTensorBoundShapes(meta_net_def: metanet_pb2.MetaNetDef, tensor_bound_shapes: Any) -> None:
    """Sets the largest shapes of blobs, a TensorBoundShapes."""
    meta_net_def.tensorBoundShapes.CopyFrom(tensor_bound_shapes)


def SetAOTConfig(meta_net_def: metanet_pb2.MetaNetDef, aot_config: Any) -> None:
    """Sets what is compiled ahead of time, an AOTConfig."""
    meta_net_def.aotConfig.CopyFrom(aot_config)


def GetApplicationSpecificInfo(meta_net_def: metanet_pb2.MetaNetDef, key: str) -> str | None:
    """The text of a key that an application has left; None when there is none."""
    text: str | None = _first(meta_net_def.applicationSpecificInfo, key)
    return text


def GetApplicationSpecificInfoDict(meta_net_def: metanet_pb2.MetaNetDef) -> dict[str, str]:
    return to_first_match_dict(meta_net_def.applicationSpecificInfo)


def GetArgumentByName(net_def: caffe2_pb2.NetDef, arg_name: str) -> caffe2_pb2.Argument | None:
    """The argument of a net; None when there is none."""
    return next((arg for arg in net_def.arg if arg.name == arg_name), None)


def set_model_info(
    meta_net_def: metanet_pb2.MetaNetDef, project_str: str, model_class_str: str, version: str
) -> None:
    """Says of which project, kind and version a model is."""
    info = meta_net_def.modelInfo
    info.project, info.modelClass, info.version = project_str, model_class_str, version
