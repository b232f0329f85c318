"""Random values for the inputs of a net."""

import numpy as np
import pytest

from caffe2.python import core, workspace


def test_random_inputs():
    workspace.ResetWorkspace()
    net = core.Net("fill")
    net.Gather(["data", "rows"], ["out"])
    workspace.FillRandomNetworkInputs(net, [[(3, 4), (50,)]], [["float", "long"]])
    data, rows = workspace.FetchBlob("data"), workspace.FetchBlob("rows")
    assert data.shape == (3, 4) and data.dtype == np.float32 and 0 <= data.min() < data.max() < 1
    assert rows.dtype == np.int64 and set(rows.tolist()) == {0, 1}


@pytest.mark.parametrize(
    ("dims", "types", "text"),
    [
        ([[(2,)]], [["float"]], "Gather has 2 inputs, but there are 1 shapes and 1 types"),
        ([], [], "1 operators read inputs of the net, but there are shapes of 0"),
        ([[(2,), (2,)]], [["float", "half"]], "'rows' cannot be of type 'half'"),
    ],
)
def test_shapes_and_types_that_do_not_fit(dims, types, text):
    workspace.ResetWorkspace()
    net = core.Net("fill")
    net.Gather(["data", "rows"], ["out"])
    with pytest.raises(RuntimeError, match=text):
        workspace.FillRandomNetworkInputs(net, dims, types)
    assert not workspace.HasBlob("data")
