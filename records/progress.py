"""A progress bar for work that lasts: on stderr, on a terminal, after two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

DELAY_S = 2.0

Tick = Callable[[int], None]


@contextmanager
def progress(description: str, total: float | None = None, *, delay_s: float = DELAY_S) -> Iterator[Tick]:
    """Show how far a piece of work is; nothing at all where stderr is no terminal or the work is short.

    Example:
        >>> with progress("Reading", total=3) as tick:
        ...     for _ in range(3):
        ...         tick(1)

    Args:
        description: what is being done, in a word or two.
        total: how many steps there are; the bar only counts where None.
        delay_s: seconds before the bar appears.

    Yields:
        A function to call with the number of steps done since the last call.
    """
    if not sys.stderr.isatty():
        yield lambda _steps: None
        return
    start = time.monotonic()
    done = 0
    bar: Progress | None = None

    def tick(steps: int) -> None:
        nonlocal done, bar
        done += steps
        if bar is None:
            if time.monotonic() - start < delay_s:
                return
            bar = _bar(total)
            bar.add_task(description, total=total)
            bar.start()
        bar.update(bar.task_ids[0], completed=done)

    try:
        yield tick
    finally:
        if bar is not None:
            bar.stop()


def _bar(total: float | None) -> Progress:
    from rich.console import Console  # noqa: PLC0415 - a tenth of a second, needed only for long work
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
    if total is not None:
        columns.append(TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
