"""graph.json of exchange.py as a file for LiteRT: channels last, activations in the layer before.

Runs in a Python that has ai-edge-litert; needs nothing of this project.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

_ACTIVATIONS = {"Relu": 1, "Clip": 3}  # RELU, RELU6
_OPERATORS, _OPTIONS = schema.BuiltinOperator, schema.BuiltinOptions


class _Writer:
    def __init__(self, params: dict[str, Any]) -> None:
        self.params = params
        self.graph = schema.SubGraphT()
        self.graph.tensors, self.graph.operators, self.graph.name = [], [], "main"
        self.model = schema.ModelT()
        self.model.version, self.model.subgraphs = 3, [self.graph]
        self.model.operatorCodes, self.model.buffers = [], [schema.BufferT()]
        self.codes: dict[int, int] = {}
        self.tensors: dict[str, tuple[int, tuple[int, ...]]] = {}  # number and shape, NHWC

    def tensor(self, name: str, shape: tuple[int, ...], data: Any = None) -> int:
        made = schema.TensorT()
        made.name, made.shape, made.buffer = name, list(shape), 0
        made.type = schema.TensorType.FLOAT32
        if data is not None:
            if data.dtype == np.int32:
                made.type = schema.TensorType.INT32
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(np.ascontiguousarray(data).tobytes(), np.uint8)
            self.model.buffers.append(buffer)
            made.buffer = len(self.model.buffers) - 1
        self.graph.tensors.append(made)
        number = len(self.graph.tensors) - 1
        self.tensors.setdefault(name, (number, tuple(shape)))
        return number

    def constant(self, name: str, data: Any) -> int:
        return self.tensor(name, data.shape, data)

    def operator(
        self, code: int, inputs: list[int], output: int, kind: int = 0, **options: Any
    ) -> None:
        if code not in self.codes:
            listed = schema.OperatorCodeT()
            listed.builtinCode, listed.deprecatedBuiltinCode, listed.version = code, code, 1
            self.model.operatorCodes.append(listed)
            self.codes[code] = len(self.model.operatorCodes) - 1
        made = schema.OperatorT()
        made.opcodeIndex, made.inputs, made.outputs = self.codes[code], inputs, [output]
        made.builtinOptionsType = kind
        if kind:
            name = next(n for n, value in vars(_OPTIONS).items() if value == kind)
            made.builtinOptions = getattr(schema, f"{name}T")()
            for key, value in options.items():
                if not hasattr(made.builtinOptions, key):
                    raise AttributeError(f"{name} has no {key}")
                setattr(made.builtinOptions, key, value)
        self.graph.operators.append(made)

    def padded(self, name: str, pad: int) -> tuple[int, tuple[int, ...]]:
        number, (n, h, w, c) = self.tensors[name]
        if not pad:
            return number, (n, h, w, c)
        shape = (n, h + 2 * pad, w + 2 * pad, c)
        pads = np.int32([[0, 0], [pad, pad], [pad, pad], [0, 0]])
        output = self.tensor(f"{name}_padded", shape)
        inputs = [number, self.constant(f"{name}_pads", pads)]
        self.operator(_OPERATORS.PAD, inputs, output, _OPTIONS.PadOptions)
        return output, shape


def _windows(shape: tuple[int, ...], kernel: int, stride: int, channels: int) -> tuple[int, ...]:
    n, h, w, _ = shape
    return (n, (h - kernel) // stride + 1, (w - kernel) // stride + 1, channels)


def _convolution(to: _Writer, node: dict[str, Any], name: str, act: int) -> None:
    weights = to.params[node["in"][1]]
    k, _, kernel, _ = weights.shape
    pad, stride = node["pad"], node["stride"]
    same = stride == 1 and 2 * pad == kernel - 1
    source, shape = to.tensors[node["in"][0]] if same else to.padded(node["in"][0], pad)
    y_shape = (*shape[:3], k) if same else _windows(shape, kernel, stride, k)
    depthwise = node["group"] > 1
    weights = weights.transpose((1, 2, 3, 0) if depthwise else (0, 2, 3, 1))
    bias = to.params[node["in"][2]] if len(node["in"]) > 2 else np.zeros(k, np.float32)
    inputs = [source, to.constant(f"{name}_w", weights), to.constant(f"{name}_b", bias)]
    options = {"padding": 0 if same else 1, "strideH": stride, "strideW": stride}
    options |= {"dilationHFactor": 1, "dilationWFactor": 1, "fusedActivationFunction": act}
    output = to.tensor(name, y_shape)
    if depthwise:
        code, kind = _OPERATORS.DEPTHWISE_CONV_2D, _OPTIONS.DepthwiseConv2DOptions
        to.operator(code, inputs, output, kind, depthMultiplier=1, **options)
    else:
        to.operator(_OPERATORS.CONV_2D, inputs, output, _OPTIONS.Conv2DOptions, **options)


def _pooling(to: _Writer, node: dict[str, Any], name: str, act: int) -> None:
    kernel = node["kernel"]
    if kernel == 0:  # the mean of each channel
        number, (n, _, _, c) = to.tensors[node["in"][0]]
        axes = to.constant(f"{name}_axes", np.int32([1, 2]))
        output = to.tensor(name, (n, 1, 1, c))
        to.operator(_OPERATORS.MEAN, [number, axes], output, _OPTIONS.ReducerOptions, keepDims=True)
        return
    # What is padded is never below 0 in these nets.
    source, shape = to.padded(node["in"][0], node["pad"])
    options = {"padding": 1, "strideH": node["stride"], "strideW": node["stride"]}
    options |= {"filterHeight": kernel, "filterWidth": kernel, "fusedActivationFunction": act}
    output = to.tensor(name, _windows(shape, kernel, node["stride"], shape[3]))
    to.operator(_OPERATORS.MAX_POOL_2D, [source], output, _OPTIONS.Pool2DOptions, **options)


def _fully_connected(to: _Writer, node: dict[str, Any], name: str, act: int) -> None:
    number, shape = to.tensors[node["in"][0]]
    weights = to.params[node["in"][1]]
    k = weights.shape[0]
    if len(shape) == 4:
        n, h, w, c = shape
        weights = weights.reshape(k, c, h, w).transpose(0, 2, 3, 1).reshape(k, -1)
        flat = to.tensor(f"{name}_flat", (n, h * w * c))
        sizes = to.constant(f"{name}_sizes", np.int32([n, h * w * c]))
        to.operator(_OPERATORS.RESHAPE, [number, sizes], flat, _OPTIONS.ReshapeOptions,
                    newShape=[n, h * w * c])  # fmt: skip
        number = flat
    bias = to.constant(f"{name}_b", to.params[node["in"][2]])
    inputs = [number, to.constant(f"{name}_w", weights), bias]
    output = to.tensor(name, (shape[0], k))
    code, kind = _OPERATORS.FULLY_CONNECTED, _OPTIONS.FullyConnectedOptions
    to.operator(code, inputs, output, kind, fusedActivationFunction=act)


def convert(folder: Path, shape: tuple[int, ...]) -> bytes:
    """The content of a .tflite file for inputs of `shape` (NCHW, or two dimensions)."""
    nodes = json.loads((folder / "graph.json").read_text())
    to = _Writer(dict(np.load(folder / "graph.npz")))
    source = to.tensor("x", shape if len(shape) == 2 else (shape[0], *shape[2:], shape[1]))
    done = set()
    for index, node in enumerate(nodes):
        if index in done:
            continue
        name, act = node["out"], 0
        readers = [i for i, other in enumerate(nodes) if name in other["in"]]
        if len(readers) == 1 and nodes[readers[0]]["type"] in _ACTIVATIONS:
            done.add(readers[0])
            name, act = nodes[readers[0]]["out"], _ACTIVATIONS[nodes[readers[0]]["type"]]
        if node["type"] == "Conv":
            _convolution(to, node, name, act)
        elif node["type"] in ("MaxPool", "AveragePool"):
            _pooling(to, node, name, act)
        elif node["type"] == "FC":
            _fully_connected(to, node, name, act)
        else:
            inputs = [to.tensors[item] for item in node["in"]]
            numbers, shapes = [item[0] for item in inputs], [item[1] for item in inputs]
            if node["type"] == "Sum":
                output = to.tensor(name, shapes[0])
                code, kind, options = _OPERATORS.ADD, _OPTIONS.AddOptions, {}
            elif node["type"] == "Concat":
                output = to.tensor(name, (*shapes[0][:3], sum(item[3] for item in shapes)))
                code, kind = _OPERATORS.CONCATENATION, _OPTIONS.ConcatenationOptions
                options = {"axis": 3}
            else:
                raise ValueError(f"{node['type']} is none of the operators of these nets")
            to.operator(code, numbers, output, kind, fusedActivationFunction=act, **options)
    to.graph.inputs, to.graph.outputs = [source], [to.tensors[name][0]]
    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(to.model.Pack(builder), b"TFL3")
    return bytes(builder.Output())
