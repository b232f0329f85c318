"""Preferences among engines, which the old API sets process-wide.

They have no effect: the engine chooses its kernels itself, and an operator's own `engine` asks for
one by name.
"""

from typing import Any


def SetEnginePref(per_op_engine_pref: Any, global_engine_pref: Any) -> None:
    """No effect."""


def SetGlobalEnginePref(global_engine_pref: Any) -> None:
    """No effect."""


def SetPerOpEnginePref(per_op_engine_pref: Any) -> None:
    """No effect."""


def SetOpEnginePref(op_type: str, op_pref: Any) -> None:
    """No effect."""
