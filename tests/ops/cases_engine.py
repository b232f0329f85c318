"""Operators that steer nets, queues and counters: tested in files of their own."""

CASES: list = []

# Operators whose contract the harness does not know, and the file that tests them.
SPECIAL = {
    "CreateMutex": "tests/ops/test_operators.py",
    "AtomicIter": "tests/ops/test_operators.py",
    **dict.fromkeys(
        ("If", "AsyncIf", "While", "ONNXWhile", "Do", "CreateScope", "HasScope"),
        "tests/engine/test_control.py",
    ),
    **dict.fromkeys(
        (
            "CreateBlobsQueue",
            "EnqueueBlobs",
            "SafeEnqueueBlobs",
            "DequeueBlobs",
            "SafeDequeueBlobs",
            "WeightedSampleDequeueBlobs",
            "CloseBlobsQueue",
        ),
        "tests/engine/test_queues.py",
    ),
    **dict.fromkeys(
        (
            "CreateCounter",
            "ResetCounter",
            "CountUp",
            "CountDown",
            "CheckCounterDone",
            "RetrieveCount",
            "AtomicFetchAdd",
            "AtomicFetchAdd64",
            "CreateAtomicBool",
            "ConditionalSetAtomicBool",
            "CheckAtomicBool",
        ),
        "tests/engine/test_counters.py",
    ),
}

NOT_OF_THE_ORIGINAL = {"AsyncIf": "a name of older releases"}

LOOSER = {
    "EnqueueBlobs": "a queue and at least one blob",
    "SafeEnqueueBlobs": "a queue and at least one blob",
    "DequeueBlobs": "one queue",
    "SafeDequeueBlobs": "one queue, at least one blob and the status",
}
