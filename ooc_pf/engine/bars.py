"""The bar of a long pass: a line that is written over at a terminal, one output of a cell in a notebook."""

import html
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TextIO

INTERVAL = 0.2  # seconds between two drawings, and before the first one
WIDTH = 30  # characters of the bar


def describe_bar(what: str, done: int, total: int) -> str:
    """The bar as a line of text; a total of 0 is not known."""
    if not total:
        return f"{what} {done} blocks"
    full = min(WIDTH * done // total, WIDTH)
    return f"{what} [{'#' * full}{'.' * (WIDTH - full)}] {done}/{total} blocks"


class TerminalBar:
    """A line of a terminal; in a log, which is none, nothing is drawn."""

    def __init__(self, stream: TextIO):
        self._stream, self._seen = stream, stream.isatty()
        self._drawn = 0.0

    def show(self, what: str, done: int, total: int) -> None:
        """Draw it, if the last drawing is long enough ago."""
        now = time.monotonic()
        if self._seen and now - self._drawn > INTERVAL:
            self._stream.write(f"\r  {describe_bar(what, done, total)} ")
            self._stream.flush()
            self._drawn = now

    def clear(self) -> None:
        """Make room for a line of text."""
        if self._seen:
            self._stream.write("\r\x1b[K")

    def close(self) -> None:
        """Nothing is left of it."""
        self.clear()


class NotebookBar:
    """One output of a cell for all passes of a run, which is empty when the run ends.

    Parameters
    ----------
    display : callable
        That of IPython.
    """

    def __init__(self, display: Callable[..., Any]):
        self._display, self._handle, self._closed = display, None, False
        self._drawn = time.monotonic()
        self._lock = threading.Lock()  # searches call from their threads

    def show(self, what: str, done: int, total: int) -> None:
        """Draw it, if the last drawing is long enough ago."""
        with self._lock:
            now = time.monotonic()
            if self._closed or now - self._drawn <= INTERVAL:
                return
            share = f' max="{total}" value="{done}"' if total else ""
            name, count = html.escape(what), f"{done}/{total}" if total else f"{done}"
            self._draw(describe_bar(what, done, total), f"<progress{share}></progress> {name} {count} blocks")
            self._drawn = now

    def clear(self) -> None:
        """Lines of text have an output of their own."""

    def close(self) -> None:
        """Leave nothing to be seen, also of searches that are still under way."""
        with self._lock:
            if self._handle is not None:
                self._draw("", "")
            self._closed = True

    def _draw(self, text: str, page: str) -> None:
        shown = {"text/plain": text, "text/html": page}
        if self._handle is None:
            self._handle = self._display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)


def new_bar(stream: TextIO) -> TerminalBar | NotebookBar:
    """The bar of the place where this runs."""
    if "ipykernel" in sys.modules and stream is sys.stderr:
        from IPython import get_ipython
        from IPython.display import display

        if hasattr(get_ipython(), "kernel"):  # else some other program only imports it
            return NotebookBar(display)
    return TerminalBar(stream)
