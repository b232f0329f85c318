"""The layer SparseLookup; see `caffe2.layers.embeddings`."""

from caffe2.layers.embeddings import (
    FP16_ENGINES,
    SparseLookup,
    get_sparse_lookup_predictor_version,
    get_sparse_lookup_trainer_version,
    get_trainer_version_based_on_optim,
)

__all__ = [
    "FP16_ENGINES",
    "SparseLookup",
    "get_sparse_lookup_predictor_version",
    "get_sparse_lookup_trainer_version",
    "get_trainer_version_based_on_optim",
]
