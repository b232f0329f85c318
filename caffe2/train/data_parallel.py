"""One model on several devices: each has a replica and a part of the batch, and the gradients are
summed.

The result is one net (`model.net`) with the operators of all replicas, and one that makes their
parameters, the same for all.  Without GPUs the replicas run side by side on the CPU.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from caffe2.graph import predictor
from caffe2.graph.blob import BlobReference
from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.graph.scope import CurrentDeviceScope, CurrentNameScope, DeviceScope
from caffe2.graph.shapes import infer_shapes
from caffe2.graph.sharing import release_blobs_when_used, share_grad_blobs
from caffe2.nn.model_helper import ModelHelper
from caffe2.ops.datatypes import DataType, dtype_of
from caffe2.ops.declaration import GradientSlice, Spec
from caffe2.proto import caffe2_pb2
from caffe2.train.combined_batch_norm import combine_backward, combine_forward, interleave
from caffe2.train.replicas import Replicas, stripBlobName

_log = logging.getLogger(__name__)

Builder = Callable[..., Any]


def Parallelize(
    model_helper_obj: ModelHelper,
    input_builder_fun: Builder,
    forward_pass_builder_fun: Builder,
    param_update_builder_fun: Builder | None = None,
    optimizer_builder_fun: Builder | None = None,
    post_sync_builder_fun: Builder | None = None,
    pre_grad_net_transformer_fun: Builder | None = None,
    net_transformer_fun: Builder | None = None,
    devices: Iterable[int] | None = None,
    rendezvous: Mapping[str, Any] | None = None,
    net_type: str = "dag",
    broadcast_computed_params: bool = True,
    optimize_gradient_memory: bool = False,
    dynamic_memory_management: bool = False,
    blobs_to_keep: Collection[Any] | None = None,
    use_nccl: bool = False,
    max_concurrent_distributed_ops: int = 16,
    cpu_device: bool = False,
    ideep: bool = False,
    num_threads_per_device: int = 4,
    shared_model: bool = False,
    combine_spatial_bn: bool = False,
    barrier_net_timeout_sec: int = 300,
) -> None:
    """Builds a model for several devices.

    The builders are called for each device, within its NameScope ("gpu_0", or "cpu_0" with
    `cpu_device`) and DeviceScope:

    input_builder_fun(model)                      appends what reads the data
    forward_pass_builder_fun(model, loss_scale)   appends the layers; gives the losses, which are to
                                                  be multiplied by loss_scale
    param_update_builder_fun(model)               appends the updates of `model.GetParams()`

    and these once:

    optimizer_builder_fun(model)           instead of the updates: adds an optimizer and gives it.
                                           With neither the model predicts, and has no gradients
    post_sync_builder_fun(model)           after all that makes the parameters
    pre_grad_net_transformer_fun(model)    before the gradients are added
    net_transformer_fun(model, number_of_devices, prefix, device_type)   at the end

    devices                    numbers of devices; default: all GPUs, or the one device 0
    net_type                   "dag": operators that do not need each other run side by side
    broadcast_computed_params  running means of all replicas are those of the first one
    optimize_gradient_memory   gradients share memory; see `share_grad_blobs`
    dynamic_memory_management  memory is freed after the last use, besides `blobs_to_keep`
    shared_model               all replicas use the parameters of the first one
    combine_spatial_bn         batch normalization is over the batches of all replicas

    The other arguments have no effect; `rendezvous` with more than one shard is a UsageError.
    UsageError inside of a DeviceScope or NameScope, for a device that comes twice, for both kinds
    of updates at once and for a forward pass that gives no list of losses for them.
    """
    if CurrentDeviceScope() is not None or CurrentNameScope():
        raise UsageError("Parallelize sets the scopes itself: call it outside of any scope")
    if param_update_builder_fun and optimizer_builder_fun:
        raise UsageError("Can only specify one of param_update_builder_fun, optimizer_builder_fun")
    if rendezvous is not None and int(rendezvous.get("num_shards", 1)) > 1:
        raise UsageError("there are no collectives between machines; use one shard")
    model = model_helper_obj
    replicas = _replicas(model, devices, cpu_device or ideep, shared_model)
    net, init = model.net, model.param_init_net
    net.Proto().type = net_type
    net.Proto().num_workers = num_threads_per_device * len(replicas.devices)
    start, trains = len(net.Proto().op), bool(param_update_builder_fun or optimizer_builder_fun)
    losses: dict[int, list[Any]] = {}
    for device in replicas.devices:
        with replicas.on(device):
            input_builder_fun(model)
            found = forward_pass_builder_fun(model, loss_scale=1.0 / len(replicas.devices))
        if trains and not isinstance(found, (list, tuple)):
            raise UsageError("Model builder function must return list of loss blobs")
        losses[device] = list(found or ())
    several = len(replicas.devices) > 1
    if combine_spatial_bn and several:
        interleave(net, start, replicas)
        combine_forward(net)
    state: dict[str, Any] = {"_losses_by_gpu": losses, "_optimizer": None}
    params = replicas.group(model.params)
    computed = replicas.group(model.GetComputedParams(""))
    state |= {"_param_names": [*params, *computed], "_computed_param_names": list(computed)}
    grouped = {**params, **computed}
    before_updates = len(init.Proto().op)
    if trains:
        if pre_grad_net_transformer_fun:
            pre_grad_net_transformer_fun(model)
        _add_gradients(model, replicas, losses)
        if combine_spatial_bn and several:
            combine_backward(net)
        grads = replicas.group(
            model.param_to_grad[p] for p in model.params if p in model.param_to_grad
        )
        if broadcast_computed_params:
            for blobs in computed.values():
                replicas.broadcast(net, blobs)
        for blobs in reversed(grads.values()):
            replicas.reduce(net, blobs, shared_model)
        if shared_model:
            _share_parameters(model, replicas, params)
        grouped |= grads
        state["_grad_names"] = list(grads)
        before_updates = len(init.Proto().op)
        if param_update_builder_fun:
            for device in replicas.devices:
                with replicas.on(device):
                    param_update_builder_fun(model)
        else:
            assert optimizer_builder_fun is not None
            state["_optimizer"] = optimizer_builder_fun(model)
    elif shared_model:
        _share_parameters(model, replicas, params)
    made = [name for op in init.Proto().op[before_updates:] for name in op.output]
    states = replicas.group(BlobReference(name) for name in made)
    grouped |= {name: blobs for name, blobs in states.items() if name not in grouped}
    for name in dict.fromkeys([*([] if shared_model else params), *computed, *states]):
        replicas.broadcast(init, grouped[name])
    model.__dict__.update(state, _device_grouped_blobs=grouped)
    if post_sync_builder_fun:
        for device in replicas.devices:
            with replicas.on(device):
                post_sync_builder_fun(model)
    if optimize_gradient_memory and trains:
        _share_memory(model, None, set(blobs_to_keep or ()), False)
    if net_transformer_fun:
        net_transformer_fun(model, len(replicas.devices), replicas.prefix, replicas.device_type)
    if dynamic_memory_management:
        kept = {str(blob) for blob in (*(blobs_to_keep or ()), *GetCheckpointParams(model))}
        net.Proto().CopyFrom(release_blobs_when_used(net.Proto(), kept))
    model.__dict__.update(_data_parallel_model_init_nets=[init], _data_parallel_model_nets=[net])


Parallelize_GPU = partial(Parallelize, cpu_device=False)
Parallelize_CPU = partial(Parallelize, cpu_device=True)
Parallelize_iDeep = partial(Parallelize, ideep=True)


def _replicas(
    model: ModelHelper, devices: Iterable[int] | None, on_cpu: bool, shared: bool
) -> Replicas:
    from caffe2.runtime.machine import NumGpuDevices

    numbers = list(devices) if devices is not None else list(range(NumGpuDevices())) or [0]
    if not numbers or len(set(numbers)) < len(numbers):
        raise UsageError(f"devices are different numbers, at least one; got {numbers}")
    device_type = caffe2_pb2.PROTO_CPU if on_cpu else caffe2_pb2.PROTO_CUDA
    replicas = Replicas(device_type, numbers)
    if not on_cpu and NumGpuDevices() < len(numbers):
        _log.warning("there are not %d GPUs: the replicas run on the CPU", len(numbers))
    model.__dict__.update(
        _replicas=replicas,
        _devices=replicas.devices,
        _device_type=device_type,
        _device_prefix=replicas.prefix,
        _shared_model=shared,
        _rendezvous=None,
        _checkpoint_net=None,
    )
    return replicas


def _replicas_of(model: ModelHelper) -> Replicas:
    found = vars(model).get("_replicas")
    if found is None:
        raise UsageError(f"the model '{model.name}' was not parallelized")
    return found  # type: ignore[no-any-return]


def _add_gradients(model: ModelHelper, replicas: Replicas, losses: Mapping[int, list[Any]]) -> None:
    grads = {}
    for device in replicas.devices:
        with DeviceScope(replicas.option(device)):
            for loss in losses[device]:
                name = BlobReference(f"{loss}_grad")
                grads[loss] = model.net.ConstantFill(loss, name, value=1.0)
    model.AddGradientOperators(grads)


def _share_parameters(
    model: ModelHelper, replicas: Replicas, params: Mapping[str, Mapping[int, Any]]
) -> None:
    """Has all replicas use the parameters of the first one."""
    master, *others = replicas.devices
    names = {str(params[n][device]): str(params[n][master]) for n in params for device in others}
    for op in model.net.Proto().op:
        op.input[:] = [names.get(name, name) for name in op.input]
    init = model.param_init_net.Proto()
    kept = [op for op in init.op if not names.keys() & set(op.output)]
    copies = caffe2_pb2.NetDef(op=kept)
    del init.op[:]
    init.op.extend(copies.op)
    inputs = model.net.Proto().external_input
    inputs[:] = list(dict.fromkeys(names.get(name, name) for name in inputs))
    for blobs in (model.params, model.weights, model.biases):
        blobs[:] = [blob for blob in blobs if str(blob) not in names]
    for blob in [blob for blob in model.param_to_grad if str(blob) in names]:
        del model.param_to_grad[blob]


def AddBlobSync(model: ModelHelper, blobs: Iterable[str], net: Net | None = None) -> None:
    """Appends copies of blobs (names without scope) from the first replica to all others."""
    replicas = _replicas_of(model)
    for name in blobs:
        group = {d: BlobReference(f"{replicas.scope(d)}{name}") for d in replicas.devices}
        replicas.broadcast(net or model.net, group)
        vars(model)["_device_grouped_blobs"].setdefault(str(name), group)


def AddDistributedBlobSync(model: ModelHelper, blobs: Iterable[str]) -> None:
    """Nothing: there is one machine."""


def GetCheckpointParams(model: ModelHelper) -> set[Any]:
    """The blobs to save so that training can go on: parameters and states of the first replica, and
    of the optimizer what all replicas share."""
    replicas = _replicas_of(model)
    master = replicas.devices[0]
    grads = set(vars(model).get("_grad_names", ()))
    grouped = vars(model)["_device_grouped_blobs"]
    found = {blobs[master] for name, blobs in grouped.items() if name not in grads}
    made = {name for op in model.param_init_net.Proto().op for name in op.output}
    scope = replicas.scope(master)
    if vars(model)["_shared_model"] and vars(model)["_optimizer"] is not None:
        local = vars(model)["_optimizer"].get_auxiliary_parameters().local
        found.update(blob for blob in local if str(blob).startswith(scope))
    if "optimizer_iteration" in made:
        found.add(BlobReference("optimizer_iteration"))
    return found


def FinalizeAfterCheckpoint(
    model: ModelHelper, blobs: Iterable[Any] | None = None, cpu_mode: bool = False
) -> None:
    """Brings all replicas to the state of the first one, after its blobs were loaded: those of
    GetCheckpointParams, or `blobs`.  `cpu_mode` has no effect."""
    from caffe2.runtime import workspace

    replicas, parts = _replicas_of(model), vars(model)
    if parts["_checkpoint_net"] is None:
        wanted = GetCheckpointParams(model) if blobs is None else blobs
        grouped, net = parts["_device_grouped_blobs"], Net("checkpoint_sync_net")
        shared = set(parts["_param_names"]) - set(parts["_computed_param_names"])
        for blob in sorted(map(str, wanted)):
            name = stripBlobName(blob) if "/" in blob else blob
            if name in grouped and not (parts["_shared_model"] and name in shared):
                replicas.broadcast(net, grouped[name])
        workspace.CreateNet(net, overwrite=True)
        parts["_checkpoint_net"] = net
    workspace.RunNet(parts["_checkpoint_net"])


def GetLearningRateBlobNames(model: ModelHelper) -> list[str]:
    """The blobs that learning rates are in."""
    ops = model.net.Proto().op
    return [op.output[0] for op in ops if op.type == "LearningRate"]


def RunInitNet(model: ModelHelper) -> None:
    """Makes the parameters, and the net."""
    from caffe2.runtime import workspace

    _replicas_of(model)
    for net in vars(model)["_data_parallel_model_init_nets"]:
        workspace.RunNetOnce(net)
    CreateNet(model)


def CreateNet(model: ModelHelper, overwrite: bool = False) -> None:
    """Makes the net in the workspace."""
    from caffe2.runtime import workspace

    _replicas_of(model)
    for net in vars(model)["_data_parallel_model_nets"]:
        workspace.CreateNet(net, overwrite=overwrite)


def RunNet(model: ModelHelper, num_iterations: int) -> None:
    """Runs the net a number of times."""
    from caffe2.runtime import workspace

    _replicas_of(model)
    for net in vars(model)["_data_parallel_model_nets"]:
        workspace.RunNet(net, num_iterations)


def Synchronize(model: ModelHelper, timeout_sec: int = 300) -> None:
    """Waits for the other machines; there are none."""


def OptimizeGradientMemory(
    model: ModelHelper,
    input_shapes: Mapping[Any, Sequence[int]],
    excluded_blobs: Iterable[Any],
    recycle_activations: bool,
) -> None:
    """Has gradients share memory, in each replica; see `share_grad_blobs`.

    input_shapes         shapes of blobs; what follows from them is used to choose
    excluded_blobs       blobs that keep their names
    recycle_activations  values of the forward part share, too
    """
    _share_memory(model, input_shapes, set(excluded_blobs), recycle_activations)


def _share_memory(
    model: ModelHelper,
    input_shapes: Mapping[Any, Sequence[int]] | None,
    excluded: set[Any],
    activations: bool,
) -> None:
    replicas, proto = _replicas_of(model), model.net.Proto()
    shapes = {}
    if input_shapes:
        kind = dtype_of(DataType.FLOAT)
        specs = {str(name): Spec(tuple(shape), kind) for name, shape in input_shapes.items()}
        specs = infer_shapes(model.param_init_net.Proto(), specs)[0]
        shapes = {name: spec.shape for name, spec in infer_shapes(proto, specs)[0].items()}
    losses: Mapping[int, list[Any]] = vars(model)["_losses_by_gpu"]
    for device in replicas.devices:
        scope = replicas.scope(device)
        grads = [
            grad
            for grad in model.param_to_grad.values()
            if str(grad.values if isinstance(grad, GradientSlice) else grad).startswith(scope)
        ]
        shared = share_grad_blobs(
            proto,
            losses[device],
            [*grads, *_combined(model)],
            scope,
            dont_share_blobs=excluded,
            share_activations=activations,
            blob_shapes=shapes,
        )
        proto.CopyFrom(shared)


def _combined(model: ModelHelper) -> list[str]:
    """Gradients of parameters that are not in `param_to_grad`: of replicas that share a model."""
    replicas = _replicas_of(model)
    names = vars(model).get("_grad_names", ())
    return [f"{replicas.scope(device)}{name}" for device in replicas.devices for name in names]


def ExtractPredictorNet(
    model: ModelHelper,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    device: caffe2_pb2.DeviceOption,
) -> tuple[Net, list[Any]]:
    """The net of the first replica from inputs to outputs (names without scope), on a device, whose
    blobs are in no scope; and the names of the parameters in this model, by which they are fetched.

    See `caffe2.graph.predictor.ExtractPredictorNet`.
    """
    replicas = _replicas_of(model)
    scope = replicas.scope(replicas.devices[0])
    proto = model.net.Proto()
    names = {name for op in proto.op for name in (*op.input, *op.output)}
    renames = {name: name[len(scope) :] for name in names if name.startswith(scope)}
    net, params = predictor.ExtractPredictorNet(
        proto,
        [f"{scope}{name}" for name in inputs],
        [f"{scope}{name}" for name in outputs],
        device,
        renames,
    )
    return net, params
