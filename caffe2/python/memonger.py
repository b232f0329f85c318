"""Blobs that share memory; see `caffe2.graph.sharing` and `caffe2.graph.lifetimes`."""

from caffe2.graph.lifetimes import (
    AssignmentAlgorithm,
    LiveRange,
    Optimization,
    compute_assignments_dp,
    compute_assignments_greedy,
    compute_interference_graph,
    get_memory_usage,
    optimize_interference,
    topological_sort_traversal,
    topological_sort_traversal_longest_path,
)
from caffe2.graph.sharing import (
    optimize_inference_fast,
    optimize_inference_for_dag,
    release_blobs_when_used,
    share_grad_blobs,
    verify_graph_equality,
    verify_inplace_blobs,
)
from caffe2.runtime.blob_sizes import (
    Statistics,
    blob_nbytes,
    collect_blob_sizes,
    compute_statistics,
)

__all__ = [
    "AssignmentAlgorithm",
    "LiveRange",
    "Optimization",
    "Statistics",
    "blob_nbytes",
    "collect_blob_sizes",
    "compute_assignments_dp",
    "compute_assignments_greedy",
    "compute_interference_graph",
    "compute_statistics",
    "get_memory_usage",
    "optimize_inference_fast",
    "optimize_inference_for_dag",
    "optimize_interference",
    "release_blobs_when_used",
    "share_grad_blobs",
    "topological_sort_traversal",
    "topological_sort_traversal_longest_path",
    "verify_graph_equality",
    "verify_inplace_blobs",
]
