"""Draws docs/schedules.svg: learning rates by several policies.  Needs matplotlib."""

from pathlib import Path

import matplotlib

from caffe2.python.learning_rate_scheduler import LearningRateSchedule, plot

SCHEDULES = {
    "step": {"stepsize": 30, "gamma": 0.5},
    "exp": {"gamma": 0.97},
    "inv": {"gamma": 0.1, "power": 0.75},
    "poly": {"power": 1.0, "max_iter": 100},
    "linearWarmup": {"start_multiplier": 0.1, "num_iter": 20},
    "cyclical": {"max_lr": 0.4, "stepsize": 20, "decay": 0.7},
    "cosine": {"max_lr": 0.9, "min_lr": 0.05, "period": 40, "lr_shrink": 0.8},
}


def main() -> None:
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "schedules", "svg.fonttype": "none"})
    schedules = {name: LearningRateSchedule(name, **args) for name, args in SCHEDULES.items()}
    axes = plot(schedules, iterations=101)
    axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
    axes.figure.set_size_inches(8, 4)
    target = Path(__file__).with_name("schedules.svg")
    axes.figure.savefig(target, bbox_inches="tight", metadata={"Date": None})


if __name__ == "__main__":
    main()
