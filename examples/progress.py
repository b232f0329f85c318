"""A progress bar with figures: rich's where it is installed, plain lines otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Update = Callable[[int, str], None]


@contextmanager
def progress(title: str, total: int) -> Iterator[Update]:
    """Gives a function to call with the number of steps done and a text of figures.

    Goes to stderr, so that stdout stays free for results.
    """
    try:
        from rich.console import Console
    except ImportError:
        console = None
    else:
        console = Console(stderr=True)
    if console is None or not console.is_terminal:
        yield _lines(title, total)
        return

    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TextColumn("{task.completed}/{task.total}  {task.fields[figures]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(title, total=total, figures="")
        yield lambda done, figures: bar.update(task, completed=done, figures=figures)


def _lines(title: str, total: int) -> Update:
    """One line at each tenth of the way."""
    start = time.perf_counter()
    shown = 0

    def update(done: int, figures: str) -> None:
        nonlocal shown
        tenth = 10 * done // total
        if tenth > shown:
            shown = tenth
            seconds = time.perf_counter() - start
            print(f"{title} {done}/{total}  {figures}  {seconds:.1f} s", file=sys.stderr)

    return update
