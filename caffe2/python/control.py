"""Loops and branches of plans; see `caffe2.plans.control`."""

from caffe2.plans.control import (
    BoolNet,
    CombineConditions,
    Do,
    DoParallel,
    DoUntil,
    DoWhile,
    For,
    GetConditionBlobFromNet,
    If,
    IfNot,
    MergeConditionNets,
    NotNet,
    Switch,
    SwitchNot,
    Until,
    While,
)

__all__ = [
    "BoolNet",
    "CombineConditions",
    "Do",
    "DoParallel",
    "DoUntil",
    "DoWhile",
    "For",
    "GetConditionBlobFromNet",
    "If",
    "IfNot",
    "MergeConditionNets",
    "NotNet",
    "Switch",
    "SwitchNot",
    "Until",
    "While",
]
