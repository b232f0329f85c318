"""Harness cases of operators on databases and of those that show blobs."""

SPECIAL = {
    **dict.fromkeys(
        ["CreateDB", "DBExists", "TensorProtosDBInput"], "tests/engine/test_databases.py"
    ),
    **dict.fromkeys(
        ["Checkpoint", "EstimateAllBlobSizes", "Load", "Save", "Snapshot"],
        "tests/engine/test_load_save.py",
    ),
    **dict.fromkeys(
        ["FeedBlob", "Fail", "Free", "GetAllBlobNames", "LogFatal", "Print", "Summarize"],
        "tests/engine/test_report.py",
    ),
}

LOOSER = {"Snapshot": "its schema says nothing; it is made as Checkpoint is"}

CASES: list = []
