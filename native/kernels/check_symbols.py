#!/usr/bin/env python3
"""Checks object files that were compiled for one instruction set.

The linker keeps one copy of an inline function that several files define. Were it the copy made
for the widest instruction set, older processors would crash in it. So everything these files
define must lie in the instruction set's own namespace, and they may call nothing but each other and
a few functions of the C library.

usage: check_symbols.py --isa avx2 [--nm nm] object...
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys

# Calls that compilers insert (the last one: atomic addition on arm64), and addresses that the
# linker defines.
ALLOWED = {
    *("memcpy", "memset", "memmove", "memcmp", "__stack_chk_fail", "_GLOBAL_OFFSET_TABLE_"),
    *("__stack_pointer", "__indirect_function_table"),  # WebAssembly
    "__aarch64_ldadd8_relax",
}


def wrong_symbols(listing: str, isa: str) -> list[str]:
    """The lines of an `nm --format=posix` listing that break the rule."""
    namespace = "".join(f"{len(part)}{part}" for part in ("caffe2", "kernels", isa))
    # Function or variable, static local (Z), guard (G) or table (T) of one.
    ours = re.compile(rf"_?_Z+(?:G[VR]|T[VTISC])?N[KVrRO]*{namespace}")
    wrong = []
    for line in listing.splitlines():
        fields = line.split()
        if len(fields) < 2 or line.endswith(":"):
            continue
        name, kind = fields[0], fields[1]
        local = kind.islower() and kind not in "uvw"  # such symbols are never merged
        if not local and name not in ALLOWED and not ours.match(name):
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
