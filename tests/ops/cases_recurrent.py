"""Harness cases of recurrent units; nets that recur have tests of their own."""

import numpy as np

from caffe2.testing import Bad, Case, exactly, floats, integers

I4 = np.int32
SIZES = {"R": (3, 1, 0)}
TIME = exactly([2], I4)
LENGTHS = integers("R", low=1, high=4, dtype=I4)


CASES = []
for _gates, _type, _states in (
    (4, "LSTMUnit", ("hidden_t_prev", "cell_t_prev")),
    (3, "GRUUnit", ("hidden_t_prev",)),
):
    for _units in (2, 1, 33):
        for _drop in (0, 1):
            _args = {"drop_states": _drop}
            if _type == "LSTMUnit":
                _args["forget_bias"] = 0.5
            _state = (1, "R", _units)
            _inputs = {
                **{name: floats(*_state, low=-2, high=2) for name in _states},
                "gates": floats(1, "R", _gates * _units, low=-2, high=2),
            }
            _rest = {"seq_lengths": LENGTHS, "timestep": TIME}
            _common = {
                "args": _args,
                "title": f"{_units}-drop{_drop}",
                "sizes": SIZES,
                "mismatch": {"timestep": 0},
            }
            _new = ("hidden_t", "cell_t")[: len(_states)]
            CASES += [
                Case(
                    _type,
                    **_common,
                    **_inputs,
                    **_rest,
                    bad=[Bad("no sequence lengths", args={"sequence_lengths": 0})],
                ),
                Case(
                    f"{_type}Gradient",
                    **_common,
                    **_inputs,
                    **_rest,
                    **{name: floats(*_state, low=-2, high=2) for name in _new},
                    **{f"{name}_grad": floats(*_state) for name in _new},
                ),
            ]


def lstm(title, layers, directions, biases, batch_first):
    """Sequences of 5 steps with 3 features; 4 units."""
    weights = []
    for layer in range(layers):
        for _ in range(directions):
            weights += [floats(16, directions * 4 if layer else 3), floats(16, 4)]
            weights += [floats(16), floats(16)] if biases else []
    state = floats(layers * directions, "R", 4)
    args = {"num_layers": layers, "bidirectional": directions - 1, "has_biases": int(biases)}
    return Case(
        "InferenceLSTM",
        title=title,
        args={**args, "batch_first": int(batch_first)},
        outputs=3,
        sizes=SIZES,
        X=floats("R", 5, 3) if batch_first else floats(5, "R", 3),
        hidden_0=state,
        cell_0=state,
        weights=weights,
        mismatch={"X": 2},
        bad=[Bad("more layers", args={"num_layers": layers + 1})],
    )


CASES += [
    lstm("", 1, 1, False, False),
    lstm("two layers", 2, 1, True, False),
    lstm("both ways", 2, 2, True, True),
]

SPECIAL = dict.fromkeys(
    (
        "RecurrentNetwork",
        "RecurrentNetworkGradient",
        "RecurrentNetworkBlobFetcher",
        "rnn_internal_apply_link",
        "rnn_internal_accumulate_gradient_input",
    ),
    "tests/train/test_recurrent.py",
)

LOOSER = {
    "InferenceLSTM": "a sequence, two states and weights",
    "RecurrentNetworkGradient": "the inputs and outputs of the forward operator",
    "rnn_internal_accumulate_gradient_input": "one sum",
}
