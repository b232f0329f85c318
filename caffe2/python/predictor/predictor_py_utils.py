"""The parts of a MetaNetDef; see `caffe2.graph.metanet`."""

from caffe2.graph.metanet import (
    AddBlobs,
    AddNet,
    AddPlan,
    GetApplicationSpecificInfo,
    GetApplicationSpecificInfoDict,
    GetArgumentByName,
    GetBlobs,
    GetBlobsByTypePrefix,
    GetBlobsOrder,
    GetNet,
    GetPlan,
    ReplaceBlobs,
    SetAOTConfig,
    SetBlobsOrder,
    SetPreLoadBlobs,
    SetRequestOnlyEmbeddings,
    SetTensorBoundShapes,
    get_comp_name,
    to_first_match_dict,
)
from caffe2.runtime.model_database import create_predict_init_net, create_predict_net

__all__ = [
    "AddBlobs",
    "AddNet",
    "AddPlan",
    "GetApplicationSpecificInfo",
    "GetApplicationSpecificInfoDict",
    "GetArgumentByName",
    "GetBlobs",
    "GetBlobsByTypePrefix",
    "GetBlobsOrder",
    "GetNet",
    "GetNetOriginal",
    "GetPlan",
    "GetPlanOriginal",
    "ReplaceBlobs",
    "SetAOTConfig",
    "SetBlobsOrder",
    "SetPreLoadBlobs",
    "SetRequestOnlyEmbeddings",
    "SetTensorBoundShapes",
    "create_predict_init_net",
    "create_predict_net",
    "get_comp_name",
    "to_first_match_dict",
]

GetNetOriginal, GetPlanOriginal = GetNet, GetPlan
