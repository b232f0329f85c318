"""For tests of layers: a model, its nets, and what operators they have."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from caffe2.data.records import NewRecord
from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.graph.operator import MakeArgument
from caffe2.graph.records import Scalar, Struct
from caffe2.layers import nets
from caffe2.layers.model import LayerModelHelper
from caffe2.runtime import workspace
from caffe2.testing.test_case import TestCase


class OpSpec(NamedTuple):
    """An operator as it should be: its type, and its inputs, outputs and arguments by name, where
    None stands for anything."""

    type: str
    input: Any
    output: Any
    arg: Any = None


class LayersTestCase(TestCase):
    """A test with a new `self.model`, whose input is `float_features`, rows of 32 floats."""

    def setUp(self) -> None:
        super().setUp()
        self.setup_example()

    def setup_example(self) -> None:
        """Called by hypothesis before each example, too."""
        workspace.ResetWorkspace()
        self.reset_model()

    def reset_model(
        self, input_feature_schema: Any = None, trainer_extra_schema: Any = None
    ) -> None:
        """Begins with another model."""
        features = Struct(("float_features", Scalar((np.float32, (32,)))))
        self.model = LayerModelHelper(
            "test_model",
            input_feature_schema=input_feature_schema or features,
            trainer_extra_schema=trainer_extra_schema or Struct(),
        )

    def new_record(self, schema_obj: Any) -> Any:
        return NewRecord(self.model.net, schema_obj)

    def get_training_nets(self, add_constants: bool = False) -> tuple[Net, Net]:
        """The nets that fill parameters (and constants) and that train, without gradients."""
        net = Net("train_net")
        init_net = Net("train_init_net")
        if add_constants:
            init_net = self.model.create_init_net("train_init_net")
        for layer in self.model.layers:
            layer.add_operators(net, init_net)
        return init_net, net

    def get_eval_net(self) -> Net:
        return nets.generate_eval_net(self.model)

    def get_predict_net(self) -> Net:
        return nets.generate_predict_net(self.model)

    def run_train_net(self) -> None:
        """Trains once."""
        self.model.output_schema = Struct()
        for net in nets.generate_training_nets(self.model):
            workspace.RunNetOnce(net)

    def run_train_net_forward_only(self, num_iter: int = 1) -> None:
        """Runs the training net without gradients.  UsageError for less than one run."""
        if num_iter < 1:
            raise UsageError(f"num_iter is {num_iter}; it must be at least 1")
        self.model.output_schema = Struct()
        init_net, net = nets.generate_training_nets_forward_only(self.model)
        workspace.RunNetOnce(init_net)
        workspace.CreateNet(net)
        workspace.RunNet(net, num_iter=num_iter)

    def assertBlobsEqual(self, spec_blobs: Any, op_blobs: Any) -> None:
        """Names are the same; None stands for any, or for any list of them."""
        if spec_blobs is None:
            return
        self.assertEqual(len(spec_blobs), len(op_blobs))
        for wanted, found in zip(spec_blobs, op_blobs, strict=True):
            if wanted is not None:
                self.assertEqual(str(wanted), str(found))

    def assertArgsEqual(self, spec_args: Any, op_args: Any) -> None:
        """Arguments are these, by name, and no others."""
        self.assertEqual(sorted(spec_args), sorted(arg.name for arg in op_args))
        for arg in op_args:
            self.assertEqual(MakeArgument(arg.name, spec_args[arg.name]), arg)

    def assertNetContainOps(self, net: Any, op_specs: Any) -> Any:
        """The operators of a net are those of a list of OpSpecs; gives them."""
        ops = net.Proto().op
        self.assertEqual(len(op_specs), len(ops))
        for op, spec in zip(ops, op_specs, strict=True):
            self.assertEqual(spec.type, op.type)
            self.assertBlobsEqual(spec.input, op.input)
            self.assertBlobsEqual(spec.output, op.output)
            if spec.arg is not None:
                self.assertArgsEqual(spec.arg, op.arg)
        return ops
