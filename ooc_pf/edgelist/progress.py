"""The progress bar of a conversion."""

import sys
import time
from typing import Any

INTERVAL = 0.2  # seconds between two drawings
WIDTH = 30  # characters of the bar


class Progress:
    """A line on stderr that is written over.

    Parameters
    ----------
    enabled : bool
        Show anything at all, if stderr is a terminal.
    """

    def __init__(self, enabled: bool):
        # A log is no place for a line that is written over.
        self._enabled, self._start, self._last, self._width = enabled and sys.stderr.isatty(), time.monotonic(), 0.0, 0

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: Any) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()

    def show(self, stage: str, done: float) -> None:
        """Show how much of a stage is done; a negative fraction is not known."""
        now = time.monotonic()
        if not self._enabled or now - self._last < INTERVAL:
            return
        filled = round(WIDTH * min(max(done, 0.0), 1.0))
        share = f"{done:4.0%}" if done >= 0 else "   ?"
        text = f"{stage:<17}[{'#' * filled}{'.' * (WIDTH - filled)}] {share} {now - self._start:6.0f} s"
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._last, self._width = now, max(self._width, len(text))
