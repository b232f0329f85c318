"""The names that public scripts use exist, each in the form in which they use it.

The lists are those names that scripts of three or more repositories use.
"""

import importlib

import pytest

from caffe2.proto import caffe2_pb2
from caffe2.python import brew, core, model_helper, workspace

MODULES = [
    "caffe2",
    "caffe2.proto.caffe2_legacy_pb2",
    "caffe2.proto.caffe2_pb2",
    "caffe2.python.brew",
    "caffe2.python.cnn",
    "caffe2.python.core",
    "caffe2.python.dyndep",
    "caffe2.python.experiment_util",
    "caffe2.python.hypothesis_test_util",
    "caffe2.python.model_helper",
    "caffe2.python.modeling.initializers",
    "caffe2.python.modeling.parameter_info",
    "caffe2.python.net_drawer",
    "caffe2.python.net_printer",
    "caffe2.python.optimizer",
    "caffe2.python.predictor.mobile_exporter",
    "caffe2.python.predictor_constants",
    "caffe2.python.scope",
    "caffe2.python.timeout_guard",
    "caffe2.python.utils",
    "caffe2.python.visualize",
    "caffe2.python.workspace",
]

NAMES = [
    "brew.accuracy",
    "brew.average_pool",
    "brew.concat",
    "brew.conv",
    "brew.dropout",
    "brew.fc",
    "brew.iter",
    "brew.max_pool",
    "brew.relu",
    "brew.softmax",
    "brew.spatial_bn",
    "brew.sum",
    "cnn.CNNModelHelper",
    "core.C",
    "core.CreateOperator",
    "core.DataType",
    "core.DeviceOption",
    "core.DeviceScope",
    "core.GlobalInit",
    "core.NameScope",
    "core.Net",
    "core.ScopedName",
    "core.get_ssa",
    "dyndep.InitOpsLibrary",
    "experiment_util.ModelTrainerLog",
    "hypothesis_test_util.HypothesisTestCase",
    "model_helper.ModelHelper",
    "modeling.initializers.ExternalInitializer",
    "modeling.initializers.Initializer",
    "modeling.initializers.update_initializer",
    "modeling.parameter_info.ParameterTags.BIAS",
    "modeling.parameter_info.ParameterTags.WEIGHT",
    "net_drawer.GetPydotGraph",
    "net_drawer.GetPydotGraphMinimal",
    "net_printer.to_string",
    "optimizer.add_weight_decay",
    "optimizer.build_sgd",
    "predictor.mobile_exporter.Export",
    "predictor_constants.predictor_constants.GLOBAL_INIT_NET_TYPE",
    "predictor_constants.predictor_constants.PREDICT_INIT_NET_TYPE",
    "scope.CurrentNameScope",
    "scope._NAMESCOPE_SEPARATOR",
    "timeout_guard.CompleteInTimeOrDie",
    "utils.Caffe2TensorToNumpyArray",
    "utils.CaffeBlobToNumpyArray",
    "utils.GetGPUMemoryUsageStats",
    "utils.MakeArgument",
    "utils.NumpyArrayToCaffe2Tensor",
    "visualize.NCHW",
    "workspace.Blobs",
    "workspace.C",
    "workspace.CreateBlob",
    "workspace.CreateNet",
    "workspace.CurrentWorkspace",
    "workspace.FeedBlob",
    "workspace.FetchBlob",
    "workspace.FetchBlobs",
    "workspace.GlobalInit",
    "workspace.GpuDeviceType",
    "workspace.HasBlob",
    "workspace.Predictor",
    "workspace.RegisteredOperators",
    "workspace.ResetWorkspace",
    "workspace.RunNet",
    "workspace.RunNetOnce",
    "workspace.RunOperatorOnce",
    "workspace.SwitchWorkspace",
    "workspace.blobs",
]

MESSAGES = [
    "Argument",
    "DeviceOption",
    "NetDef",
    "OperatorDef",
    "TensorProto",
    "TensorProtos",
    "CPU",
    "CUDA",
    "IDEEP",
]

MODEL = [
    "AddGradientOperators",
    "GetAllParams",
    "GetComputedParams",
    "GetOptimizationParamInfo",
    "GetParams",
    "Proto",
    "RunAllOnGPU",
    "biases",
    "create_param",
    "net",
    "param_init_net",
    "param_to_grad",
    "params",
]

NET = [
    "AddExternalInput",
    "AppendNet",
    "BlobIsDefined",
    "Clone",
    "GetBlobRef",
    "Name",
    "NextName",
    "Proto",
    "RunAllOnGPU",
    "external_inputs",
]


@pytest.mark.parametrize("name", MODULES)
def test_modules(name):
    importlib.import_module(name)


@pytest.mark.parametrize("name", NAMES)
def test_names_of_modules(name):
    *path, attribute = name.split(".")
    for length in range(len(path), 0, -1):
        try:
            found = importlib.import_module("caffe2.python." + ".".join(path[:length]))
            break
        except ModuleNotFoundError:
            continue
    for part in [*path[length:], attribute]:
        found = getattr(found, part)
    assert found is not None


@pytest.mark.parametrize("name", MESSAGES)
def test_names_of_messages(name):
    assert hasattr(caffe2_pb2, name)


def test_names_of_models_and_nets():
    model = model_helper.ModelHelper(name="names")
    for name in MODEL:
        assert getattr(model, name) is not None
    for name in NET:
        assert getattr(model.net, name) is not None


def test_legacy_messages():
    from caffe2.proto import caffe2_legacy_pb2

    assert caffe2_legacy_pb2.CAFFE_LEGACY_POOLING == 3


def test_a_net_runs_by_the_name_in_its_message_by_the_net_and_with_a_number():
    workspace.ResetWorkspace()
    net = core.Net("often")
    workspace.FeedBlob("count", [0.0])
    workspace.FeedBlob("one", [1.0])
    net.Add(["count", "one"], "count")
    workspace.CreateNet(net)
    workspace.RunNet(net.Proto().name)
    workspace.RunNet(net.Name())
    workspace.RunNet(net, 3)
    assert workspace.FetchBlob("count") == [5.0]


def test_cnn_model_helper_and_printing():
    from caffe2.python import cnn, net_printer

    model = cnn.CNNModelHelper(order="NCHW", name="old")
    model.Conv("data", "conv1", 1, 2, 3, weight_init=model.MSRAInit, bias_init=model.ZeroInit)
    model.FC(model.MaxPool("conv1", "pool1", kernel=2, stride=2), "fc", 8, 3)
    model.Softmax("fc", "prob")
    assert [op.type for op in model.net.Proto().op] == ["Conv", "MaxPool", "FC", "Softmax"]
    assert model.param_init_net.Proto().op[0].type == "MSRAFill"
    text = net_printer.to_string(model.net)
    assert "conv1 = Conv(data, conv1_w, conv1_b, kernel=3" in text
    workspace.ResetWorkspace()
    workspace.FeedBlob("data", [[[[0.5] * 6] * 6]])
    workspace.RunNetOnce(model.param_init_net)
    workspace.RunNetOnce(model.net)
    assert workspace.FetchBlob("prob").shape == (1, 3)


def test_trainer_log(tmp_path, monkeypatch):
    import json

    from caffe2.python import experiment_util

    class Logger(experiment_util.ExternalLogger):
        def set_runtime_args(self, runtime_args):
            self.args = runtime_args

        def log(self, log_dict):
            self.last = log_dict

    monkeypatch.chdir(tmp_path)
    logger = Logger()
    log = experiment_util.ModelTrainerLog("run", {"lr": 0.1}, [logger])
    log.log(64, 2, {"loss": 0.25})
    (path,) = tmp_path.iterdir()
    header, line = path.read_text().splitlines()
    assert header.startswith("# {'lr': 0.1}") and logger.args == {"lr": 0.1}
    assert json.loads(line)["input_count"] == 64 and json.loads(line)["loss"] == 0.25
    assert logger.last["batch_count"] == 2


def test_brew_is_a_module_with_its_helpers():
    assert "conv" in dir(brew) and callable(brew.Register) and callable(brew.arg_scope)
