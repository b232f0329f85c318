"""Models of layers that are fed and run, for tests of layers."""

import numpy as np

from caffe2.python import core, schema, workspace

F = np.float32


def feed(model, record, *arrays):
    """A record of new blobs that hold the arrays."""
    found = schema.NewRecord(model.net, record)
    schema.FeedRecord(found, arrays)
    return found


def rows(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(F)


def dense(model, array):
    return feed(model, schema.Scalar((F, array.shape[1:])), array)


def net_of(model, context):
    net = core.Net(context)
    for layer in model.layers:
        layer.add_operators(net, core.Net("unused"), context)
    return net


def run(model, context="training", init=True):
    """Runs the model; gives its net."""
    if init:
        workspace.RunNetOnce(model.create_init_net("constants"))
        workspace.RunNetOnce(model.param_init_net)
    net = net_of(model, context)
    workspace.RunNetOnce(net)
    return net


def value(record):
    return workspace.FetchBlob(str(record()))


def params(model):
    return [workspace.FetchBlob(str(p.parameter)) for p in model.layers[0].params]


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
