"""For tests of what scripts see."""

import pytest

from caffe2.python import schema, workspace
from caffe2.python.layer_model_helper import LayerModelHelper


@pytest.fixture
def model():
    """A model of layers without input, in an empty workspace."""
    workspace.ResetWorkspace()
    return LayerModelHelper("m", schema.Struct(), schema.Struct())
