#!/usr/bin/env python3
"""Checks that a shared library exports the functions that a C header declares, and nothing else.

usage: check_exports.py --header caffe2.h [--nm nm] library
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path


def declared_functions(header: str) -> set[str]:
    """The names in `CAFFE2_API <type> name(...)`."""
    code = re.sub(r"//.*", "", header)
    return set(re.findall(r"^CAFFE2_API [^;(]*?(\w+)\(", code, re.MULTILINE))


def exported_symbols(listing: str) -> set[str]:
    """The names of an `nm --format=posix` listing, without the version of a symbol and without the
    entry for the version itself (an absolute symbol)."""
    rows = [line.split() for line in listing.splitlines()]
    return {row[0].partition("@")[0] for row in rows if len(row) > 1 and row[1] != "A"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--header", required=True, type=Path)
    parser.add_argument("--nm", default="nm")
    parser.add_argument("library")
    options = parser.parse_args()
    listing = subprocess.run(
        [options.nm, "--dynamic", "--defined-only", "--format=posix", options.library],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    declared = declared_functions(options.header.read_text(encoding="utf-8"))
    exported = exported_symbols(listing)
    for name in sorted(exported - declared):
        print(f"exported but not declared: {name}", file=sys.stderr)
    for name in sorted(declared - exported):
        print(f"declared but not exported: {name}", file=sys.stderr)
    return 0 if declared and exported == declared else 1


if __name__ == "__main__":
    sys.exit(main())
