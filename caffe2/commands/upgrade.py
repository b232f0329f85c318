"""An old net brought up to date."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

from caffe2.commands.common import add_json, show, show_json
from caffe2.graph.files import load_net, save_net
from caffe2.graph.model import some
from caffe2.graph.upgrade import upgrade_net


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("net", help="the file of a net, binary or text")
    parser.add_argument(
        "--output",
        "-o",
        help="where it is written, as text when the name ends in .pbtxt; "
        "without it, what would change is only said",
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    net, notes = upgrade_net(load_net(options.net))
    if options.output:
        save_net(net, options.output)
    if options.json:
        show_json({"changes": notes})
    else:
        show(*(_grouped(notes) or ["nothing to change"]))
    return 0


def _grouped(notes: Sequence[str]) -> list[str]:
    """One line for all operators in which the same was changed."""
    places: dict[tuple[str, str], list[str]] = {}
    for note in notes:
        found = re.fullmatch(r"(.*#\d+) (\w+): (.*)", note)
        place, kind, change = found.groups() if found else ("", "", note)
        places.setdefault((kind, change), []).append(place)
    return [
        f"{listed[0]} {kind}: {change}".removeprefix(" : ")
        if len(listed) == 1
        else f"{len(listed)} {kind} ({some(listed)}): {change}"
        for (kind, change), listed in places.items()
    ]
