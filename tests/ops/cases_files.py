"""Harness cases of operators on databases and of those that show blobs."""

import numpy as np

from caffe2.testing import Bad, Case, exactly, floats

SPECIAL = {
    **dict.fromkeys(
        ["CreateDB", "DBExists", "TensorProtosDBInput"], "tests/engine/test_databases.py"
    ),
    **dict.fromkeys(["Checkpoint", "Load", "Save", "Snapshot"], "tests/engine/test_load_save.py"),
    **dict.fromkeys(["Fail", "Free", "GetAllBlobNames", "Print"], "tests/engine/test_report.py"),
}

LOOSER = {"Snapshot": "its schema says nothing; it is made as Checkpoint is"}

CASES = [
    Case("Summarize", data=floats(7, 3), bad=[Bad("empty", {"data": np.ones((0, 2), np.float32)})]),
    Case("Summarize", title="one", data=floats(1)),
    Case("Summarize", title="nan", data=exactly([3.0, np.nan, 1.0], np.float32)),
]
