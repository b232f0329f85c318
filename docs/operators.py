"""Writes the pages of docs/operators, one for each family of operators, from their declarations.

    python docs/operators.py

Needs NumPy and protobuf, and no engine.
"""

from __future__ import annotations

import importlib
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "operators"
sys.path.insert(0, str(ROOT))

from caffe2 import ops  # noqa: E402
from caffe2.graph.control_ops import GradientRegistry  # noqa: E402
from caffe2.ops.arguments import (  # noqa: E402
    INT32_MAX,
    INT32_MIN,
    INT64_MAX,
    INT64_MIN,
    Argument,
)
from caffe2.ops.datatypes import type_names  # noqa: E402
from caffe2.ops.declaration import BlobNames, Declaration, NativeOnly  # noqa: E402

_INTRODUCTION = """# Operators

Every operator, by family.  These pages are made from the declarations in `caffe2/ops` by
`python docs/operators.py`.

A name with `?` may be left out, one with `*` stands for any number of blobs.  "In place" names the
output that may be the blob of an input.  An operator runs on a C++ kernel, or on its NumPy body,
which also defines what is right and which `engine="REFERENCE"` asks for.

| Family | Operators |
|---|---|
"""
_LIMITS = {INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX}


def pages() -> dict[str, str]:
    """File name -> text, of all pages."""
    families: dict[str, list[Declaration]] = defaultdict(list)
    for declaration in ops.all().values():
        family = declaration.module.removeprefix(f"{ops.__name__}.")
        if family != declaration.module:  # else it is declared by a plug-in or a test
            families[family].append(declaration)
    rows, texts = [], {}
    for family, declarations in sorted(families.items()):
        title = _title(declarations[0].module)
        rows.append(f"| [{title}]({family}.md) | {len(declarations)} |\n")
        parts = [f"# {title}\n", *map(operator_text, declarations)]
        texts[f"{family}.md"] = "\n".join(parts)
    return {"README.md": _INTRODUCTION + "".join(rows), **texts}


def operator_text(declaration: Declaration) -> str:
    """The part of a page that is about one operator."""
    blobs = f"{_names(declaration.inputs)} → {_names(declaration.outputs)}"
    lines = [f"## {declaration.name}", "", f"`{declaration.name}`: {blobs}", ""]
    lines += ["```text", declaration.doc, "```", ""]
    if declaration.args:
        lines += ["| Argument | Kind | Default | Allowed |", "|---|---|---|---|"]
        lines += [_argument_row(name, arg) for name, arg in declaration.args.items()]
        lines.append("")
    lines += [f"- {fact}" for fact in _facts(declaration)]
    return "\n".join(lines) + "\n"


def _title(module: str) -> str:
    first = (importlib.import_module(module).__doc__ or module).strip().partition("\n\n")[0]
    return " ".join(first.split()).rstrip(".").replace("|", "\\|")


def _names(names: BlobNames) -> str:
    shown = [
        f"`{name}{'*' * names.repeats(index)}{'?' * (index >= names.least)}`"
        for index, name in enumerate(names.names)
    ]
    return ", ".join(shown) or "nothing"


def _argument_row(name: str, argument: Argument) -> str:
    allowed = ", ".join(f"`{choice}`" for choice in argument.choices)
    bounds = [
        f"{sign} {bound:g}"
        for sign, bound in (("≥", argument.min), ("≤", argument.max))
        if bound is not None and bound not in _LIMITS
    ]
    default = "required" if argument.required else _value(argument.default)
    return f"| `{name}` | {argument.kind} | {default} | {allowed or ', '.join(bounds)} |"


def _value(default: object) -> str:
    if default is None:
        return "none"
    if isinstance(default, tuple):
        return f"`{list(default)}`"
    return f"`{default!r}`".replace("'", '"')


def _facts(declaration: Declaration) -> list[str]:
    facts = []
    if declaration.types:
        types = (f"`{name}` {type_names(allowed)}" for name, allowed in declaration.types.items())
        facts.append(f"Types: {'; '.join(types)}.")
    pairs = {*declaration.inplace, *declaration.enforced_inplace}
    if declaration.inplace_any:
        facts.append("In place: any output.")
    elif pairs:
        must = declaration.enforced_inplace
        named = (
            f"`{declaration.outputs.name(target)}` {'must' if (source, target) in must else 'may'} "
            f"be `{declaration.inputs.name(source)}`"
            for source, target in sorted(pairs)
        )
        facts.append(f"In place: {', '.join(named)}.")
    facts.append(f"Gradient: {_gradient(declaration)}.")
    runs = "C++ kernel" if declaration.native else "NumPy body"
    if isinstance(declaration.reference, NativeOnly):
        runs += f"; no NumPy body: {declaration.reference.reason.rstrip('.')}"
    facts.append(f"Runs on: {runs}.")
    notes: Mapping[str, bool] = {
        "draws random numbers": declaration.kind == "random",
        "keeps a state": declaration.kind == "stateful",
        "runs nets": declaration.kind == "control",
        "may wait for another operator": declaration.blocks,
        **{f"touches {what}": True for what in declaration.touches},
    }
    if any(notes.values()):
        facts.append(f"It {', '.join(note for note, holds in notes.items() if holds)}.")
    return facts


def _gradient(declaration: Declaration) -> str:
    if callable(declaration.gradient) or declaration.name in GradientRegistry.gradient_registry_:
        return "yes"
    return declaration.gradient.value


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    wanted = pages()
    for page in FOLDER.glob("*.md"):
        if page.name not in wanted:
            page.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
