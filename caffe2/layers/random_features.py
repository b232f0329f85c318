"""Random features: fixed random projections that stand in for a kernel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.graph.records import Scalar, Struct
from caffe2.layers.dense import Initializer, row_shape
from caffe2.layers.layer import ModelLayer


def _check_output_dims(output_dims: int) -> None:
    if output_dims < 1:
        raise UsageError(f"Expected output dimensions >= 1, got {output_dims}")


class RandomFourierFeatures(ModelLayer):
    """Y = sqrt(2 / output_dims) * cos(X W^T + b), where W is normal with deviation 1 / sigma and b
    uniform in [0, 2 pi): the inner product of two rows is about exp(-|x - y|^2 / (2 sigma^2))
    (Rahimi and Recht, "Random Features for Large-Scale Kernel Machines", 2007).

    w_init, b_init   other initializers of W and b, neither of which is learned
    """

    def __init__(
        self,
        model: Any,
        input_record: Any,
        output_dims: int,
        sigma: float,
        w_init: Initializer | None = None,
        b_init: Initializer | None = None,
        name: str = "random_fourier_features",
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        inputs = row_shape("RandomFourierFeatures", input_record)[0]
        if not sigma > 0:
            raise UsageError(f"Expected bandwidth > 0, got {sigma}")
        _check_output_dims(output_dims)
        self.output_dims = output_dims
        self.w = self.create_param(
            param_name="w",
            shape=[output_dims, inputs],
            initializer=w_init or ("GaussianFill", {"mean": 0.0, "std": 1.0 / sigma}),
            optimizer=model.NoOptim,
        )
        self.b = self.create_param(
            param_name="b",
            shape=[output_dims],
            initializer=b_init or ("UniformFill", {"min": 0.0, "max": 2 * math.pi}),
            optimizer=model.NoOptim,
        )
        self.output_schema = self.output_scalar((np.float32, (output_dims,)))

    def add_ops(self, net: Net) -> None:
        angle = net.FC([self.input_record(), self.w, self.b], net.NextScopedBlob("cosine_arg"))
        cosine = net.Cos([angle], net.NextScopedBlob("new_feature_vec"))
        scale = math.sqrt(2.0 / self.output_dims)
        net.Scale([cosine], self.output_schema.field_blobs(), scale=scale)


class ArcCosineFeatureMap(ModelLayer):
    """Y = H(z) z^s with z = X W^T + b, where H is 1 above 0 and 0 elsewhere; for s = 0,
    H(z) z / (1 + z), which is smooth: features of the arc-cosine kernel of degree s (Cho and Saul,
    "Kernel Methods for Deep Learning", 2009).

    W is normal with deviation scale / sqrt(inputs), b uniform within half of that; they are learned
    only with an optimizer of their own.

    set_weight_as_global_constant   W and b are constants of the model instead of parameters; they
                                    are drawn now, by `numpy.random`
    initialize_output_schema        False: a subclass sets the output schema
    """

    def __init__(
        self,
        model: Any,
        input_record: Any,
        output_dims: int,
        s: int = 1,
        scale: float = 1.0,
        weight_init: Initializer | None = None,
        bias_init: Initializer | None = None,
        weight_optim: Any = None,
        bias_optim: Any = None,
        set_weight_as_global_constant: bool = False,
        initialize_output_schema: bool = True,
        name: str = "arc_cosine_feature_map",
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        if not isinstance(s, int):
            raise UsageError(f"Expected s to be type int, got type {type(s)}")
        if s < 0:
            raise UsageError(f"Expected s >= 0, got {s}")
        if not scale > 0:
            raise UsageError(f"Expected scale > 0, got {scale}")
        _check_output_dims(output_dims)
        self.output_dims = output_dims
        self.s = s
        self.set_weight_as_global_constant = set_weight_as_global_constant
        self.input_dims = row_shape(type(self).__name__, self._random_input())[0]
        if set_weight_as_global_constant:
            spread = self._spread(scale)
            w = np.random.normal(scale=spread, size=(output_dims, self.input_dims))
            b = np.random.uniform(-spread / 2, spread / 2, size=output_dims)
            self.random_w = model.add_global_constant(f"{self.name}_fixed_rand_W", w)
            self.random_b = model.add_global_constant(f"{self.name}_fixed_rand_b", b)
        else:
            self.random_w, self.random_b = self._create_pair(
                "random",
                self._spread(scale),
                (weight_init, bias_init),
                (weight_optim or model.NoOptim, bias_optim or model.NoOptim),
            )
        if initialize_output_schema:
            # The output is called after the layer, not inside it.
            blob = model.net.NextBlob(f"{self.name}_output")
            self.output_schema = Scalar((np.float32, (output_dims,)), blob)

    def _random_input(self) -> Any:
        return self.input_record

    def _spread(self, scale: float) -> float:
        return scale / math.sqrt(self.input_dims)

    def _create_pair(
        self,
        which: str,
        spread: float,
        initializers: tuple[Initializer | None, Initializer | None],
        optimizers: tuple[Any, Any],
    ) -> tuple[Any, Any]:
        w = self.create_param(
            param_name=f"{which}_w",
            shape=[self.output_dims, self.input_dims],
            initializer=initializers[0] or ("GaussianFill", {"mean": 0.0, "std": spread}),
            optimizer=optimizers[0],
        )
        b = self.create_param(
            param_name=f"{which}_b",
            shape=[self.output_dims],
            initializer=initializers[1] or ("UniformFill", {"min": -spread / 2, "max": spread / 2}),
            optimizer=optimizers[1],
        )
        return w, b

    def _add_features(self, net: Net, source: Any, output: Any) -> None:
        z = net.FC([source, self.random_w, self.random_b], net.NextScopedBlob("random_features"))
        if self.s == 0:
            softsign = net.Softsign([z], net.NextScopedBlob("softsign"))
            net.Relu([softsign], [output])
        elif self.s == 1:
            net.Relu([z], [output])
        else:
            positive = net.Relu([z], net.NextScopedBlob("relu_rand"))
            power = net.Pow([z], net.NextScopedBlob("pow_rand"), exponent=float(self.s - 1))
            net.Mul([positive, power], [output])

    def add_ops(self, net: Net) -> None:
        self._add_features(net, self.input_record(), self.output_schema())


class SemiRandomFeatures(ArcCosineFeatureMap):
    """The features of ArcCosineFeatureMap, times learned ones: Y = H(z) z^s (X W^T + b) (Kawaguchi
    et al., "Deep Semi-Random Features for Nonlinear Function Approximation", 2018).

    input_record   X, or a Struct of `full`, which the learned part reads, and `random`, which the
                   random part reads; both of one shape

    The outputs are `full` (Y) and `random` (H(z) z^s), for the next such layer.
    """

    def __init__(
        self,
        model: Any,
        input_record: Any,
        output_dims: int,
        s: int = 1,
        scale_random: float = 1.0,
        scale_learned: float = 1.0,
        weight_init_random: Initializer | None = None,
        bias_init_random: Initializer | None = None,
        weight_init_learned: Initializer | None = None,
        bias_init_learned: Initializer | None = None,
        weight_optim: Any = None,
        bias_optim: Any = None,
        set_weight_as_global_constant: bool = False,
        name: str = "semi_random_features",
        **kwargs: Any,
    ) -> None:
        if isinstance(input_record, Struct):
            for field in ("full", "random"):
                if field not in input_record.fields:
                    raise UsageError(f"SemiRandomFeatures: the input record has no field '{field}'")
            self.input_record_full = input_record.full
            self.input_record_random = input_record.random
        else:
            self.input_record_full = self.input_record_random = input_record
        full = row_shape("SemiRandomFeatures", self.input_record_full)
        random = row_shape("SemiRandomFeatures", self.input_record_random)
        if full != random:
            raise UsageError(f"SemiRandomFeatures: the shapes {full} and {random} are not the same")
        super().__init__(
            model,
            input_record,
            output_dims,
            s=s,
            scale=scale_random,
            weight_init=weight_init_random,
            bias_init=bias_init_random,
            set_weight_as_global_constant=set_weight_as_global_constant,
            initialize_output_schema=False,
            name=name,
            **kwargs,
        )
        if not scale_learned > 0:
            raise UsageError(f"Expected scale > 0, got {scale_learned}")
        self.learned_w, self.learned_b = self._create_pair(
            "learned",
            self._spread(scale_learned),
            (weight_init_learned, bias_init_learned),
            (weight_optim, bias_optim),
        )
        names = [model.net.NextBlob(f"{self.name}_{part}_output") for part in ("full", "random")]
        self.output_schema = Struct(
            ("full", Scalar((np.float32, (output_dims,)), names[0])),
            ("random", Scalar((np.float32, (output_dims,)), names[1])),
        )

    def _random_input(self) -> Any:
        return self.input_record_random

    def add_ops(self, net: Net) -> None:
        source = self.input_record_full()
        learned = net.FC(
            [source, self.learned_w, self.learned_b], net.NextScopedBlob("learned_features")
        )
        random = self.output_schema.random()
        self._add_features(net, self.input_record_random(), random)
        net.Mul([random, learned], self.output_schema.full.field_blobs())
