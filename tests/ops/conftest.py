"""What tests of operators share."""

import numpy as np
import pytest

from caffe2 import ops
from caffe2.testing import EngineRunner, NumpyRunner, Operation

UNAVAILABLE = EngineRunner.unavailable()


@pytest.fixture(
    params=[
        pytest.param(NumpyRunner(), id="numpy"),
        pytest.param(
            EngineRunner(),
            id="engine",
            marks=pytest.mark.skipif(UNAVAILABLE is not None, reason=str(UNAVAILABLE)),
        ),
    ]
)
def run(request):
    """Runs one operator and returns its outputs: run(type, inputs, outputs=None, **args)."""

    def run(type, inputs, outputs=None, **args):
        declaration = ops.find(type)
        names = tuple(f"in{index}" for index in range(len(inputs)))
        targets = [f"out{index}" for index in range(outputs or declaration.outputs.least)]
        for source, target in declaration.enforced_inplace:
            if source < len(names) and target < len(targets):
                targets[target] = names[source]
        session = request.param.session()
        for name, array in zip(names, inputs, strict=True):
            session.feed(name, np.asarray(array))
        session.run(Operation(type, names, tuple(targets), args))
        return [session.fetch(name) for name in targets]

    run.runner = request.param
    return run
