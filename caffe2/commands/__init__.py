"""The commands of the program `caffe2`, one module each.

A module has `add(parser)`, which declares its arguments, and `run(options)`, which gives the exit
code: 0 for all well, 1 for something found wrong.  Errors of files and values end in 2.
"""


def printable(text: str) -> str:
    """One line as it may be printed.  Names in nets are anything, also what moves a terminal's
    cursor, or ends the line and begins one that looks like ours."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
