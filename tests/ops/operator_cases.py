"""What the harness tests each operator with: one line per operator and set of arguments."""

import cases_data as data
import cases_nn as nn

# Operators whose contract the harness does not know, and the file that tests them.
SPECIAL = {
    "CreateMutex": "tests/ops/test_operators.py",
    "AtomicIter": "tests/ops/test_operators.py",
    **dict.fromkeys(
        ("If", "AsyncIf", "While", "Do", "CreateScope", "HasScope"), "tests/engine/test_control.py"
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

CASES = [
    *nn.ACTIVATION,
    *nn.MATRICES,
    *nn.CONVOLUTION,
    *nn.POOLING,
    *nn.LOSS,
    *data.ARITHMETIC,
    *data.ELEMENTWISE,
    *data.RESHAPING,
    *data.FILL,
    *data.RANDOM,
    *data.SGD,
]
