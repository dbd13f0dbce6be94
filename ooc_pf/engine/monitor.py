"""Watching a run: progress, time spent, and requests to stop."""

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TextIO

import numpy as np


class Monitor:
    """Counts time, shows progress on stderr, and tells the run when to stop.

    Parameters
    ----------
    progress : bool
        One line an iteration, and a bar inside long passes.
    callback : callable or None
        Called with the record of each committed iteration; a true answer ends the run.
    max_time : float or None
        Seconds after which the run stops.
    """

    def __init__(
        self,
        *,
        progress: bool = False,
        callback: Callable[[dict[str, Any]], Any] | None = None,
        max_time: float | None = None,
        stream: TextIO | None = None,
    ):
        self._stream = (stream or sys.stderr) if progress else None
        self._callback = callback
        self._began = time.monotonic()
        self._deadline = None if max_time is None else self._began + max_time
        self._spent: dict[str, float] = {}
        self._interrupted = self._asked = False
        self.stop = np.zeros(1, np.uint8)  # what kernels look at
        self._bar: tuple[str, int, int] | None = None
        self._drawn = 0.0

    @property
    def stop_reason(self) -> str | None:
        """Why the run should stop: "interrupted", "time_limit", "callback", or None."""
        if self._interrupted:
            return "interrupted"
        if self._deadline is not None and (self.stop[0] or time.monotonic() >= self._deadline):
            return "time_limit"
        return "callback" if self._asked else None

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """Let Ctrl-C and SIGTERM ask for a stop; a second Ctrl-C acts at once. Only the main thread can do this."""
        if threading.current_thread() is not threading.main_thread():
            with self._timer():
                yield
            return
        with self._timer():
            yield from self._handled()

    @contextlib.contextmanager
    def _timer(self) -> Iterator[None]:
        """Sets ``stop`` when the time is up, so that a long search need not come back to be told."""
        if self._deadline is None:
            yield
            return
        timer = threading.Timer(max(0.0, self._deadline - time.monotonic()), self._halt)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _halt(self) -> None:
        self.stop[0] = 1

    def _handled(self) -> Iterator[None]:
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

        def ask(number: int, frame: Any) -> None:
            if self._interrupted and number == signal.SIGINT:
                raise KeyboardInterrupt
            self._interrupted = True
            self._halt()
            self.note("stopping after the block under way (Ctrl-C again to stop at once)")

        for number in before:
            signal.signal(number, ask)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextlib.contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Add the time inside to ``what``."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self._spent[what] = self._spent.get(what, 0.0) + time.perf_counter() - began

    def take_times(self) -> dict[str, float]:
        """Seconds by kind of work since the last call."""
        spent, self._spent = self._spent, {}
        return {what: round(seconds, 4) for what, seconds in spent.items()}

    # -- showing -----------------------------------------------------------------------------------------------------

    def note(self, text: str) -> None:
        """Say something to the person watching."""
        if self._stream:
            self._clear_bar()
            print(text, file=self._stream, flush=True)

    @contextlib.contextmanager
    def bar(self, what: str, total: int) -> Iterator[Callable[[], bool]]:
        """A bar over ``total`` blocks. The tick it gives counts one, and says whether to go on."""
        self._bar = (what, 0, total)

        def tick() -> bool:
            if self._bar is not None:
                self._bar = (what, self._bar[1] + 1, total)
                self._draw_bar()
            return self.stop_reason is None

        try:
            yield tick
        finally:
            self._clear_bar()
            self._bar = None

    def _draw_bar(self) -> None:
        now = time.monotonic()
        if self._stream and self._bar and self._stream.isatty() and now - self._drawn > 0.2:
            what, done, total = self._bar
            full = 30 * done // max(total, 1)
            self._stream.write(f"\r  {what} [{'#' * full}{'.' * (30 - full)}] {done}/{total} blocks ")
            self._stream.flush()
            self._drawn = now

    def _clear_bar(self) -> None:
        if self._stream and self._stream.isatty():
            self._stream.write("\r\x1b[K")

    def iteration(self, record: dict[str, Any]) -> None:
        """Show a committed iteration and let the callback see it."""
        line = (
            f"{time.monotonic() - self._began:8.1f}s  iteration {record['iteration']:4d}  {record['stage']:9s}"
            f"  bound {record['lower_bound']:.8g}  found {record['found']:7d}  kept {record['kept']:8d}"
            f"  worst {record['worst']:.1e}"
        )
        if "gap" in record:
            line += f"  objective {record['objective']:.8g}  gap {record['gap']:.1e}"
        self.note(line)
        if self._callback is not None and self._callback(record):
            self._asked = True
