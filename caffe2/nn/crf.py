"""Conditional random fields (Lafferty et al., "Conditional Random Fields", 2001) on top of a net
that scores classes: sequences of labels, in which each depends on the one before."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.graph.blob import BlobReference
from caffe2.graph.net import Net
from caffe2.graph.scope import NameScope
from caffe2.nn.brew import brew
from caffe2.nn.recurrent import recurrent_net

_LOW = -1000.0  # the score of what cannot be


class CRFWithLoss:
    """The loss of a sequence of labels, and the best one.

    model             a ModelHelper
    num_classes       the number of classes; there are two more, begin and end
    transitions_blob  (num_classes + 2, num_classes + 2): element [i, j] is the score of class j
                      after class i; default: a new parameter, `crf_transitions`
    """

    def __init__(self, model: Any, num_classes: int, transitions_blob: Any = None) -> None:
        self.model = model
        self.num_classes = num_classes
        self.num_classes_padded = num_classes + 2
        if not transitions_blob:
            size = self.num_classes_padded
            transitions_blob = model.param_init_net.UniformFill(
                [], "crf_transitions", shape=[size, size], min=-1.0, max=1.0
            )
            model.AddParameter(transitions_blob)
        self.transitions = transitions_blob

    def crf_loss(self, predictions: Any, labels: Any, seq_lengths: Any = None) -> Any:
        """-log of the probability of the labels: the score of their path against those of all.

        predictions  (words, num_classes), the score of each class for each word
        labels       (words,), integers
        seq_lengths  no effect
        """
        net, init = self.model.net, self.model.param_init_net
        # Updates while the net runs do not change what the gradient sees.
        transitions = net.Copy(self.transitions, net.NextScopedBlob("transitions_snapshot"))
        unary = self._unary_scores(predictions, labels)
        padded = self.pad_predictions(predictions, init, net, self.num_classes)
        padded_labels = self.pad_labels(labels, init, net, self.num_classes)
        binary = self._binary_scores(padded_labels, transitions)
        path = net.Add([binary, unary], net.NextScopedBlob("path_total"))
        zero = init.ConstantFill([], shape=[1], value=0)
        first = net.Gather([padded, zero], net.NextScopedBlob("rnn_initial"), dense_gradient=True)
        rest, _ = net.RemovePadding([padded], outputs=2, padding_width=1, end_padding_width=0)
        steps = net.ExpandDims([rest], net.NextScopedBlob("rnn_input_data"), dims=[1])
        copy = net.Copy(transitions, net.NextScopedBlob("transitions_copy"))
        last = self.build_crf_net(steps, first, copy)
        flat, _ = net.Reshape([last], outputs=2, shape=(self.num_classes_padded,))
        same = init.ConstantFill([], value=0, shape=[self.num_classes_padded], dtype=2)
        total = net.SortedSegmentRangeLogSumExp([flat, same])
        total, _ = net.Reshape([total], outputs=2, shape=())
        return net.Sub([total, path], net.NextScopedBlob("crf_loss"))

    def _unary_scores(self, predictions: Any, labels: Any) -> Any:
        """The sum of the scores of the labels."""
        net = self.model.net
        size = self.model.param_init_net.ConstantFill([], shape=[1], value=self.num_classes)
        one_hot = net.OneHot([net.Cast(labels, to="int64"), size])
        product = net.DotProduct([net.FlattenToVec(one_hot), net.FlattenToVec(predictions)])
        return net.ReduceFrontSum(product)

    def _binary_scores(self, padded_labels: Any, transitions: Any) -> Any:
        """The sum of the scores of each label after the one before."""
        net = self.model.net
        columns, _ = net.RemovePadding(
            [padded_labels], outputs=2, padding_width=1, end_padding_width=0
        )
        rows, _ = net.RemovePadding(
            [padded_labels], outputs=2, padding_width=0, end_padding_width=1
        )
        size = net.ConstantFill([rows], value=self.num_classes_padded)
        indices = net.Add([net.Mul([rows, size]), columns])
        flat = net.FlattenToVec(transitions)
        return net.ReduceFrontSum(net.Gather([flat, indices], dense_gradient=True))

    def build_crf_net(self, input_blob: Any, initial_state: Any, transitions: Any) -> Any:
        """For each class of the last word the logarithm of the summed exponentials of the scores
        of all paths that end in it: (1, 1, classes).

        input_blob     (words - 1, 1, classes), the scores of all words but the first
        initial_state  (1, classes), those of the first
        """
        size = self.num_classes_padded
        net, init = self.model.net, self.model.param_init_net
        with NameScope("crf_net"):
            same = init.ConstantFill(
                [], init.NextScopedBlob("zero_segment_id"), value=0, shape=[size], dtype=2
            )
            init.AddExternalOutput(same)
            # The step net is a model, so that brew gives its operators the arguments of all others.
            step_model = type(self.model)(name="crf_step", param_model=self.model)
            step = step_model.net
            input_t, cell_t_prev, _ = step.AddExternalInputs("input_t", "cell_t_prev", transitions)
            before = brew.transpose(
                step_model, cell_t_prev, step.NextScopedBlob("prev_transpose"), axes=(0, 2, 1)
            )
            before = step.Tile(before, [step.NextScopedBlob("prev_tiled")], tiles=size, axis=2)
            now = step.Tile(input_t, [step.NextScopedBlob("input_t_tiled")], tiles=size, axis=1)
            both = step.Add([before, now], [step.NextScopedBlob("input_with_prev")])
            scores = step.Add(
                [both, transitions],
                [step.NextScopedBlob("prev_with_transitions")],
                broadcast=1,
                use_grad_hack=1,
            )
            scores, _ = step.Reshape(
                [scores],
                [
                    step.NextScopedBlob("all_with_transitions_reshaped"),
                    step.NextScopedBlob("all_with_transitions_orig"),
                ],
                shape=(size, size),
            )
            cell_t = step.SortedSegmentRangeLogSumExp(
                [scores, same], [step.NextScopedBlob("cell_t")]
            )
            step.AddExternalOutputs(cell_t)
        _, last = recurrent_net(
            net=net,
            cell_net=step,
            inputs=[(input_t, input_blob)],
            initial_cell_inputs=[(cell_t_prev, initial_state)],
            links={cell_t_prev: cell_t},
            scope="crf_net",
            outputs_with_grads=(1,),
        )
        return last

    def update_predictions(self, classes: Any) -> Any:
        """Scores (words, num_classes) in which the class of the best path is the best of each
        word, in the blob `post_crf_classes`; see crf_update_predictions."""
        return apply_crf(
            self.model.param_init_net,
            self.model.net,
            self.transitions,
            classes,
            self.num_classes,
            self.model.net.NextScopedBlob("post_crf_classes"),
        )

    @staticmethod
    def pad_labels(labels: Any, init_net: Net, net: Net, num_classes: int) -> Any:
        """The labels (int64) between the classes begin and end."""
        begin = init_net.ConstantFill([], shape=[1], value=num_classes)
        end = init_net.ConstantFill([], shape=[1], value=num_classes + 1)
        labels = net.Cast(labels, to="int64")
        padded, _ = net.Concat([begin, labels, end], outputs=2, axis=0)
        return padded

    @staticmethod
    def pad_predictions(predictions: Any, init_net: Net, net: Net, num_classes: int) -> Any:
        """Scores with two columns more, begin and end, and a row for each, first and last."""
        low = [_LOW] * num_classes
        begin = init_net.GivenTensorFill(
            [], ["b_scores"], shape=[1, num_classes + 2], values=[*low, 0.0, _LOW]
        )
        end = init_net.GivenTensorFill(
            [], ["e_scores"], shape=[1, num_classes + 2], values=[*low, _LOW, 0.0]
        )
        zero = net.ConstantFill([], shape=[1], value=0)
        words = net.Gather([net.Shape([predictions]), zero])
        words = net.LengthsRangeFill(net.Cast(words, to="int32"))
        column = net.ExpandDims(net.ConstantFill([words], value=_LOW), dims=[1])
        wide, _ = net.Concat([predictions, column, column], outputs=2, axis=1)
        padded, _ = net.Concat([begin, wide, end], outputs=2, axis=0)
        return padded


def apply_crf(
    init_net: Net,
    net: Net,
    transitions: Any,
    predictions: Any,
    num_classes: int,
    output: BlobReference | None = None,
) -> Any:
    """Scores (words, num_classes) in which the score of the best path's class is exchanged with the
    highest one of each word."""
    padded = CRFWithLoss.pad_predictions(predictions, init_net, net, num_classes)
    path = net.ViterbiPath([padded, transitions])
    swapped = net.SwapBestPath([padded, path])
    rows = net.RemovePadding([swapped], padding_width=1, end_padding_width=1)
    starts = net.GivenTensorIntFill([], shape=[2], values=np.array([0, 0]))
    # A negative end counts from behind: all rows, and no column for begin and end.
    ends = net.GivenTensorIntFill([], shape=[2], values=np.array([-1, -3]))
    return net.Slice([rows, starts, ends], *([output] if output is not None else []))


def crf_update_predictions(model: Any, crf_with_loss: CRFWithLoss, classes: Any) -> Any:
    """apply_crf with the transitions of a CRFWithLoss."""
    return apply_crf(
        model.param_init_net,
        model.net,
        crf_with_loss.transitions,
        classes,
        crf_with_loss.num_classes,
    )
