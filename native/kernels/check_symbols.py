#!/usr/bin/env python3
"""Checks object files that were compiled for one instruction set.

The linker keeps one copy of an inline function that several files define. Were it the copy made for
the widest instruction set, older processors would crash in it. So everything these files define must
lie in the instruction set's own namespace, and they may call nothing but each other and a few
functions of the C library.

usage: check_symbols.py --isa avx2 [--nm nm] object...
"""

from __future__ import annotations

import argparse
import subprocess
import sys

# Calls that compilers insert, and addresses that the linker defines.
ALLOWED = {"memcpy", "memset", "memmove", "memcmp", "__stack_chk_fail", "_GLOBAL_OFFSET_TABLE_"}


def mangled_namespace(isa: str) -> str:
    """How the namespace caffe2::kernels::<isa> appears in a mangled name."""
    return "".join(f"{len(part)}{part}" for part in ("caffe2", "kernels", isa))


def wrong_symbols(listing: str, isa: str) -> list[str]:
    """The lines of an `nm --format=posix` listing that break the rule."""
    namespace = mangled_namespace(isa)
    wrong = []
    for line in listing.splitlines():
        fields = line.split()
        if len(fields) < 2 or line.endswith(":"):
            continue
        name, kind = fields[0].removeprefix("_") if fields[0].startswith("__Z") else fields[0], fields[1]
        if kind in "Uw" and name in ALLOWED:
            continue
        if kind.islower() and kind not in "uvw":  # local to its file: never merged
            continue
        # _ZN, _ZNK, _ZTV...: the first namespace must be ours, not just any in the name.
        if not name.lstrip("_").lstrip("ZNKTVGRISrLSO").startswith(namespace):
            wrong.append(line)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--isa", required=True)
    parser.add_argument("--nm", default="nm")
    parser.add_argument("objects", nargs="+")
    options = parser.parse_args()
    listing = subprocess.run(
        [options.nm, "--format=posix", *options.objects], check=True, capture_output=True, text=True
    ).stdout
    wrong = wrong_symbols(listing, options.isa)
    for line in wrong:
        print(f"outside caffe2::kernels::{options.isa}: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
