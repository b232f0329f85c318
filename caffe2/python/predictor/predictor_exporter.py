"""Models as databases; see `caffe2.runtime.model_database`."""

from caffe2.graph.metanet import set_model_info
from caffe2.python.predictor_constants import predictor_constants
from caffe2.runtime.model_database import (
    PredictorExportMeta,
    get_meta_net_def,
    get_predictor_exporter_helper,
    load_from_db,
    prepare_prediction_net,
    save_to_db,
)

__all__ = [
    "PredictorExportMeta",
    "get_meta_net_def",
    "get_predictor_exporter_helper",
    "load_from_db",
    "predictor_constants",
    "prepare_prediction_net",
    "save_to_db",
    "set_model_info",
]
