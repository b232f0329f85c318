"""What the harness tests each operator with: one line per operator and set of arguments."""

import cases_data as data
import cases_nn as nn

# Operators whose contract needs a test of its own, and the name of that test.
SPECIAL = {"CreateMutex": "test_mutex", "AtomicIter": "test_mutex"}

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
