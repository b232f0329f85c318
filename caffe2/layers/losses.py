"""Losses of batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.graph.records import Scalar, Struct
from caffe2.layers.layer import ModelLayer, cast_to_float
from caffe2.layers.tags import Tags
from caffe2.proto import caffe2_pb2

_FLOAT = int(caffe2_pb2.TensorProto.FLOAT)


def check_fields(layer: str, record: Any, *fields: str) -> None:
    """UsageError when a record is no Struct or lacks one of the fields."""
    known = record.fields if isinstance(record, Struct) else {}
    missing = [field for field in fields if field not in known]
    if missing:
        raise UsageError(
            f"{layer}: the input record has no field '{missing[0]}'; it has {', '.join(known)}"
        )


class _Loss(ModelLayer):
    """A loss that is one number, and no part of the predict net."""

    fields: tuple[str, ...] = ()

    def __init__(self, model: Any, name: str, input_record: Any, **kwargs: Any) -> None:
        super().__init__(model, name, input_record, **kwargs)
        check_fields(type(self).__name__, input_record, *self.fields)
        self.tags.add(Tags.EXCLUDE_FROM_PREDICTION)

    def _weighted(self, net: Net, loss: Any, name: str) -> Any:
        """The loss of each example times its `weight`, if the record has it."""
        if "weight" not in self.input_record.fields:
            return loss
        weight = self.input_record.weight
        factor = cast_to_float(net, weight, weight() + "_float32")
        factor = net.StopGradient([factor], [net.NextScopedBlob("weight_stop_gradient")])
        return net.Mul([loss, factor], [net.NextScopedBlob(name)])

    def _average(self, net: Net, loss: Any) -> None:
        net.AveragedLoss(loss, self.output_schema.field_blobs())


class BatchLRLoss(_Loss):
    """Logistic loss: the cross entropy of labels (0 or 1) and logits.

    input_record   `label`, `logit`; `weight` of each example; `log_variance`, the logarithm of the
                   uncertainty of each (Kendall and Gal, 2017); `prediction`, the probability, for
                   jsd_weight, homotopy_weighting and focal_gamma
    average_loss   False: the sum
    jsd_weight     this part of the loss is the Jensen-Shannon divergence instead
    homotopy_weighting  it grows from 0 to 1 in the course of training
    pos_label_target, neg_label_target   what labels 1 and 0 are replaced by
    log_D_trick, unjoined_lr_loss        see the operator SigmoidCrossEntropyWithLogits
    uncertainty_penalty   the weight of log_variance itself
    focal_gamma    weighs each example by |label - prediction|^gamma (Lin et al., "Focal Loss for
                   Dense Object Detection", 2017); stop_grad_in_focal_factor takes that as constant
    task_gamma     the loss is multiplied by task_gamma^i in run i, down to task_gamma_lb
    """

    fields = ("label", "logit")

    def __init__(
        self,
        model: Any,
        input_record: Any,
        name: str = "batch_lr_loss",
        average_loss: bool = True,
        jsd_weight: float = 0.0,
        pos_label_target: float = 1.0,
        neg_label_target: float = 0.0,
        homotopy_weighting: bool = False,
        log_D_trick: bool = False,
        unjoined_lr_loss: bool = False,
        uncertainty_penalty: float = 1.0,
        focal_gamma: float = 0.0,
        stop_grad_in_focal_factor: bool = False,
        task_gamma: float = 1.0,
        task_gamma_lb: float = 0.1,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        if log_D_trick and unjoined_lr_loss:
            raise UsageError("log_D_trick and unjoined_lr_loss exclude each other")
        if not 0 <= neg_label_target <= pos_label_target <= 1:
            raise UsageError(
                f"label targets are {neg_label_target} and {pos_label_target}; "
                "0 <= neg_label_target <= pos_label_target <= 1 is needed"
            )
        if uncertainty_penalty < 0:
            raise UsageError(f"uncertainty_penalty is {uncertainty_penalty}; it must be >= 0")
        self.average_loss = average_loss
        self.pos_label_target = pos_label_target
        self.neg_label_target = neg_label_target
        self.homotopy_weighting = homotopy_weighting
        self.log_D_trick = log_D_trick
        self.unjoined_lr_loss = unjoined_lr_loss
        self.uncertainty_penalty = uncertainty_penalty
        self.focal_gamma = focal_gamma
        self.stop_grad_in_focal_factor = stop_grad_in_focal_factor
        self.apply_exp_decay = task_gamma < 1.0
        if self.apply_exp_decay:
            self.task_gamma_cur = self._state("task_gamma_cur", 1.0)
            self.task_gamma = self._state("task_gamma", task_gamma)
            self.task_gamma_lb = self._state("task_gamma_lb", task_gamma_lb)
        self.jsd_fuse = bool(jsd_weight) or homotopy_weighting
        if self.jsd_fuse or focal_gamma:
            check_fields("BatchLRLoss", input_record, "prediction")
        if self.jsd_fuse:
            self.init_weight(jsd_weight, homotopy_weighting)
        self.output_schema = self.output_scalar(np.float32)

    def _state(self, name: str, value: float, dtype: int = _FLOAT) -> Any:
        arguments = {"value": value, "dtype": dtype}
        return self.create_param(
            param_name=f"{self.name.rpartition('/')[2]}_{name}",
            shape=[1],
            initializer=("ConstantFill", arguments),
            optimizer=self.model.NoOptim,
        )

    def init_weight(self, jsd_weight: float, homotopy_weighting: bool) -> None:
        """Makes the weights of the two losses: constants, or blobs that each run changes."""
        if homotopy_weighting:
            self.mutex = self.create_param(
                param_name=f"{self.name.rpartition('/')[2]}_mutex",
                shape=None,
                initializer=("CreateMutex", {}),
                optimizer=self.model.NoOptim,
            )
            self.counter = self._state("counter", 0, int(caffe2_pb2.TensorProto.INT64))
            self.xent_weight = self._state("xent_weight", 1.0)
            self.jsd_weight = self._state("jsd_weight", 0.0)
            return
        if not 0 <= jsd_weight <= 1:
            raise UsageError(f"jsd_weight is {jsd_weight}; it must be from 0 to 1")
        add = self.model.add_global_constant
        self.jsd_weight = add(f"{self.name}_jsd_weight", float(jsd_weight))
        self.xent_weight = add(f"{self.name}_xent_weight", 1.0 - jsd_weight)

    def update_weight(self, net: Net) -> None:
        """Adds what moves weight from the cross entropy to the divergence."""
        net.AtomicIter([self.mutex, self.counter], [self.counter])
        net.LearningRate(
            [self.counter], [self.xent_weight], base_lr=1.0, policy="inv", gamma=1e-6, power=0.1
        )
        one = self.model.global_constants["ONE"]
        net.Sub([one, self.xent_weight], [self.jsd_weight])

    def add_ops(self, net: Net) -> None:
        record = self.input_record
        # The shape of a label is (batch,), that of logits (batch, 1).
        label = net.Cast([record.label()], net.NextScopedBlob("label_float32"), to=_FLOAT)
        label = net.ExpandDims([label], net.NextScopedBlob("expanded_label"), dims=[1])
        if self.pos_label_target != 1.0 or self.neg_label_target != 0.0:
            label = net.StumpFunc(
                [label],
                net.NextScopedBlob("smoothed_label"),
                threshold=0.5,
                low_value=self.neg_label_target,
                high_value=self.pos_label_target,
            )
        loss = net.SigmoidCrossEntropyWithLogits(
            [record.logit(), label],
            net.NextScopedBlob("cross_entropy"),
            log_D_trick=self.log_D_trick,
            unjoined_lr_loss=self.unjoined_lr_loss,
        )
        if self.focal_gamma:
            label = net.StopGradient([label], net.NextScopedBlob("label_stop_gradient"))
            loss = self._focal(net, loss, record.prediction(), label)
        if self.apply_exp_decay:
            current = net.Mul([self.task_gamma_cur, self.task_gamma], [self.task_gamma_cur])
            lowest = net.NextScopedBlob("task_gamma_cur_multiplier")
            factor = net.Max([current, self.task_gamma_lb], lowest)
            loss = net.Mul([loss, factor], net.NextScopedBlob("expdecayxent"))
        if self.jsd_fuse:
            jsd = net.BernoulliJSD([record.prediction(), label], net.NextScopedBlob("jsd"))
            if self.homotopy_weighting:
                self.update_weight(net)
            loss = net.WeightedSum(
                [loss, self.xent_weight, jsd, self.jsd_weight], net.NextScopedBlob("loss")
            )
        if "log_variance" in record.fields:
            loss = self._uncertain(net, loss, record.log_variance)
        loss = self._weighted(net, loss, "weighted_cross_entropy")
        if self.average_loss:
            self._average(net, loss)
        else:
            net.ReduceFrontSum(loss, self.output_schema.field_blobs())

    def _focal(self, net: Net, loss: Any, prediction: Any, label: Any) -> Any:
        """For labels 0 and 1, y + p - 2 y p is |y - p|."""
        both = net.Add([prediction, label], net.NextScopedBlob("y_plus_p"))
        product = net.Mul([prediction, label], net.NextScopedBlob("yp"))
        twice = net.Scale([product], net.NextScopedBlob("two_yp"), scale=2.0)
        distance = net.Sub([both, twice], net.NextScopedBlob("y_plus_p_sub_two_yp"))
        name = net.NextScopedBlob("y_plus_p_sub_two_yp_power")
        factor = net.Pow([distance], name, exponent=self.focal_gamma)
        if self.stop_grad_in_focal_factor:
            factor = net.StopGradient([factor], net.NextScopedBlob("focal_factor_stop_gradient"))
        factor = net.FlattenToVec([factor], net.NextScopedBlob("flat_focal_factor"))
        return net.Mul([loss, factor], net.NextScopedBlob("focallossxent"))

    def _uncertain(self, net: Net, loss: Any, log_variance: Scalar) -> Any:
        """(exp(-s) loss + penalty s) / 2 with s = log_variance."""
        s = cast_to_float(net, log_variance, log_variance() + "_float32")
        # One number for each example, as the loss has; (batch, 1) would be broadcast with it.
        s = net.FlattenToVec([s], net.NextScopedBlob("flat_log_variance"))
        negative = net.Negative([s], net.NextScopedBlob("neg_log_variance"))
        # exp(88) is about the largest float32.
        clipped = net.Clip([negative], net.NextScopedBlob("clipped_neg_log_variance"), max=88.0)
        precision = net.Exp([clipped], net.NextScopedBlob("exp_neg_log_variance"))
        scaled = net.Mul([precision, loss], net.NextScopedBlob("exp_neg_log_variance_loss"))
        name = net.NextScopedBlob("penalized_unceratinty")  # the name of the original
        penalty = net.Scale([s], name, scale=self.uncertainty_penalty)
        both = net.Add([scaled, penalty], net.NextScopedBlob("loss"))
        return net.Scale([both], net.NextScopedBlob("loss"), scale=0.5)


class BatchMSELoss(_Loss):
    """Mean of (label - prediction)^2 / 2 over the batch, times `weight`.

    input_record   `label` (batch,), `prediction` (batch, 1); `weight` of each example
    """

    fields = ("label", "prediction")

    def __init__(
        self, model: Any, input_record: Any, name: str = "batch_mse_loss", **kwargs: Any
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        self.output_schema = self.output_scalar(np.float32)

    def add_ops(self, net: Net) -> None:
        label = cast_to_float(net, self.input_record.label, net.NextScopedBlob("cast_label"))
        label = net.ExpandDims([label], 1, dims=[1])
        label = net.StopGradient(label, net.NextScopedBlob("stopped_label"))
        prediction = self.input_record.prediction()
        loss = net.SquaredL2Distance([label, prediction], net.NextScopedBlob("l2"))
        self._average(net, self._weighted(net, loss, "weighted_l2_distance"))


class BatchHuberLoss(_Loss):
    """Mean over the batch of e^2 / 2 where e = |label - prediction| is below delta, and of
    delta (e - delta / 2) elsewhere (Huber, "Robust Estimation of a Location Parameter", 1964).

    input_record   `label` (batch,), `prediction` (batch, 1); `weight` of each example
    """

    fields = ("label", "prediction")

    def __init__(
        self,
        model: Any,
        input_record: Any,
        name: str = "batch_huber_loss",
        delta: float = 1.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        if not delta > 0:
            raise UsageError(f"delta is {delta}; it must be positive")
        self._delta = delta
        self.output_schema = self.output_scalar(np.float32)

    def add_ops(self, net: Net) -> None:
        record = self.input_record
        prediction = net.Squeeze(
            [record.prediction()], net.NextScopedBlob("squeezed_prediction"), dims=[1]
        )
        label = cast_to_float(net, record.label, net.NextScopedBlob("cast_label"))
        delta = net.ConstantFill(
            [label], net.NextScopedBlob("delta"), value=self._delta, dtype=_FLOAT
        )
        label = net.StopGradient([label], net.NextScopedBlob("stopped_label"))
        delta = net.StopGradient([delta], net.NextScopedBlob("stopped_delta"))
        error = net.L1Distance([label, prediction], net.NextScopedBlob("abs_error"))
        small = net.Min([error, delta], net.NextScopedBlob("min_error_delta"))
        square = net.Scale(net.Sqr([small]), scale=0.5)
        linear = net.Mul([net.Sub([error, small]), delta], net.NextScopedBlob("huber_linear_term"))
        loss = net.Add([square, linear], net.NextScopedBlob("huber_dist"))
        self._average(net, self._weighted(net, loss, "weighted_huber_distance"))


class BatchSigmoidCrossEntropyLoss(_Loss):
    """Mean of the cross entropy of labels and logits, where each example has several.

    input_record   `label` and `prediction`, of one shape
    """

    fields = ("label", "prediction")

    def __init__(
        self,
        model: Any,
        input_record: Any,
        name: str = "batch_sigmoid_cross_entropy_loss",
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        shapes = [input_record[field].field_type().shape for field in ("prediction", "label")]
        if shapes[0] != shapes[1]:
            raise UsageError(
                f"prediction and label must have the same shape, got {shapes[0]} and {shapes[1]}"
            )
        self.output_schema = self.output_scalar(np.float32, "loss")

    def add_ops(self, net: Net) -> None:
        pair = [self.input_record.prediction(), self.input_record.label()]
        name = net.NextScopedBlob("sigmoid_cross_entropy")
        self._average(net, net.SigmoidCrossEntropyWithLogits(pair, name, **self.kwargs))


class BatchSoftmaxLoss(ModelLayer):
    """Mean of -log softmax(prediction)[label].  See the operator SoftmaxWithLoss.

    input_record   `label`, `prediction` (batch, classes); `weight` of each example
    label_smoothing_matrix  (classes, classes): row i is the distribution that stands for label i
    label_prob     labels are distributions, (batch, classes)
    scale, average_by_batch_size   arguments of the operator

    The outputs are `softmax` (batch, classes) and `loss`.
    """

    def __init__(
        self,
        model: Any,
        input_record: Any,
        name: str = "batch_softmax_loss",
        label_smoothing_matrix: Any = None,
        label_prob: bool = False,
        scale: float = 1.0,
        average_by_batch_size: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        check_fields("BatchSoftmaxLoss", input_record, "label", "prediction")
        self.label_smoothing_matrix = label_smoothing_matrix
        self.label_prob = label_prob
        self.scale = scale
        self.average_by_batch_size = average_by_batch_size
        prediction = input_record.prediction.field_type()
        if label_smoothing_matrix is not None:
            matrix = np.asarray(label_smoothing_matrix, np.float32)
            if matrix.ndim != 2 or matrix.shape != (matrix.shape[0],) * 2:
                raise UsageError(
                    f"label_smoothing_matrix must be a square matrix, got shape {matrix.shape}"
                )
            self.label_smoothing_matrix = matrix
            self.initialize_label_smoothing_constants()
        self.output_schema = Struct(
            ("softmax", self.output_scalar(prediction, "softmax")),
            ("loss", self.output_scalar(np.float32, "loss")),
        )

    def initialize_label_smoothing_constants(self) -> None:
        """Makes the matrix and the number of classes constants of the model."""
        add = self.model.add_global_constant
        matrix = self.label_smoothing_matrix
        self.label_smoothing_matrix = add(f"{self.name}_label_smoothing_matrix", matrix)
        self.label_dim = add(f"{self.name}_label_dim", len(matrix), dtype=np.int64)
        # The labels become distributions.
        self.label_prob = True

    def compute_smoothed_label(self, net: Net) -> Any:
        """Adds what makes distributions of labels, and gives their blob."""
        label = self.input_record.label
        return one_hot_times(
            net,
            label,
            self.label_dim,
            self.label_smoothing_matrix,
            net.NextScopedBlob("smoothed_label"),
        )

    def add_ops(self, net: Net) -> None:
        record = self.input_record
        label = record.label()
        if self.label_smoothing_matrix is not None:
            label = self.compute_smoothed_label(net)
        elif not self.label_prob and record.label.field_type().base != np.int32:
            label = net.Cast(
                [label],
                net.NextScopedBlob("int32_label"),
                to=int(caffe2_pb2.TensorProto.INT32),
            )
        inputs = [record.prediction(), label]
        if "weight" in record.fields:
            inputs.append(cast_to_float(net, record.weight, record.weight() + "_float32"))
        net.SoftmaxWithLoss(
            inputs,
            self.output_schema.field_blobs(),
            label_prob=self.label_prob,
            scale=self.scale,
            average_by_batch_size=self.average_by_batch_size,
        )


def one_hot_times(net: Net, label: Scalar, classes: Any, matrix: Any, output: Any) -> Any:
    """The row of a matrix that each label names, by a product, which works for any rows."""
    index = label()
    if label.field_type().base != np.int64:
        index = net.Cast(
            [index], net.NextScopedBlob("int64_label"), to=int(caffe2_pb2.TensorProto.INT64)
        )
    one_hot = net.OneHot([index, classes], net.NextScopedBlob("one_hot_label"))
    return net.MatMul([one_hot, matrix], output)


class _PairLoss(_Loss):
    """A loss of one positive score for each example, and a list of negative ones."""

    fields = ("pos_prediction", "neg_prediction")

    def _repeated(self, net: Net) -> tuple[Any, Any]:
        """The positive scores, each beside its negative ones."""
        negative = self.input_record.neg_prediction
        pair = [self.input_record.pos_prediction(), negative.lengths()]
        positive = net.LengthsTile(pair, net.NextScopedBlob("pos_score_repeated"))
        return positive, negative.items()


class MarginRankLoss(_PairLoss):
    """Sum of max(0, margin - positive + negative) over all pairs; with average_loss, the mean.

    input_record   `pos_prediction` (batch, 1), `neg_prediction`, a List of scores
    """

    def __init__(
        self,
        model: Any,
        input_record: Any,
        name: str = "margin_rank_loss",
        margin: float = 0.1,
        average_loss: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        if not margin >= 0:
            raise UsageError(f"For hinge loss, margin should be no less than 0, got {margin}")
        self._margin = margin
        self._average_loss = average_loss
        self.output_schema = self.output_scalar(np.float32)

    def add_ops(self, net: Net) -> None:
        positive, negative = self._repeated(net)
        one = net.ConstantFill(
            [negative],
            net.NextScopedBlob("const_1"),
            value=1,
            dtype=int(caffe2_pb2.TensorProto.INT32),
        )
        loss = net.MarginRankingCriterion(
            [positive, negative, one], net.NextScopedBlob("rank_loss"), margin=self._margin
        )
        if self._average_loss:
            self._average(net, loss)
        else:
            net.ReduceFrontSum(loss, self.output_schema.field_blobs())


class BPRLoss(_PairLoss):
    """Sum of log(1 + exp(negative - positive)) over all pairs (Rendle et al., "BPR: Bayesian
    Personalized Ranking from Implicit Feedback", 2009).

    input_record   `pos_prediction` (batch, 1), `neg_prediction`, a List of scores
    """

    def __init__(
        self, model: Any, input_record: Any, name: str = "bpr_loss", **kwargs: Any
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        self.output_schema = self.output_scalar(np.float32)

    def add_ops(self, net: Net) -> None:
        positive, negative = self._repeated(net)
        losses = net.Softplus(net.Sub([negative, positive]))
        net.ReduceFrontSum(losses, self.output_schema.field_blobs())
