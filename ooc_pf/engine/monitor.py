"""Watching a run: progress, time spent, and requests to stop."""

import contextlib
import logging
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TextIO

import numpy as np

from .bars import new_bar

COLUMNS = 79  # of a line about an iteration, at most

LOG = logging.getLogger("ooc_pf")  # gets all that progress shows, whether it is shown or not


class Monitor:
    """Measures time, shows progress on stderr, logs it, and tells the run when to stop.

    Parameters
    ----------
    progress : bool
        Show a line for each iteration, and a bar during long passes.
    callback : callable or None
        Called with the record of each iteration; a true answer ends the run.
    max_time : float or None
        Seconds after which the run stops.
    stream : file or None
        Where progress is shown; by default stderr.

    Attributes
    ----------
    stop : uint8[1]
        Set to 1 by Ctrl-C, SIGTERM and the time limit. Kernels look at it, so that a long search ends soon.
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
        self._counted = 0.0  # within the timed part under way, for parts of it
        self._interrupted = self._asked = False
        self.stop = np.zeros(1, np.uint8)
        self._bar = None if self._stream is None else new_bar(self._stream)
        self._tol: float | None = None
        self._ratio: float | None = None

    @property
    def stop_reason(self) -> str | None:
        """Why the run should stop: "interrupted", "time_limit", "callback", or None."""
        if self._interrupted:
            return "interrupted"
        if self._deadline is not None and (self.stop[0] or time.monotonic() >= self._deadline):
            return "time_limit"
        return "callback" if self._asked else None

    def aim(self, tol: float | None, ratio: float | None) -> None:
        """Know when the run will have converged, to show how far that is."""
        self._tol, self._ratio = tol, ratio

    @property
    def time_left(self) -> float:
        """Seconds until the run should stop; infinite without a limit."""
        return math.inf if self._deadline is None else self._deadline - time.monotonic()

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """Inside, Ctrl-C and SIGTERM ask for a stop, and a second Ctrl-C raises KeyboardInterrupt.

        Signals can be handled in the main thread only; in other threads they are left alone.
        """
        main = threading.current_thread() is threading.main_thread()
        with self._timer(), self._handlers() if main else contextlib.nullcontext():
            try:
                yield
            finally:
                if self._bar is not None:
                    self._bar.close()

    @contextlib.contextmanager
    def _timer(self) -> Iterator[None]:
        """Inside, ``stop`` is set when the time is up, also while a kernel is running."""
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

    @contextlib.contextmanager
    def _handlers(self) -> Iterator[None]:
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
        """Count the time spent inside as time for ``what``, less what is counted for something else inside of it."""
        began, before, self._counted = time.perf_counter(), self._counted, 0.0
        try:
            yield
        finally:
            spent = time.perf_counter() - began
            self._spent[what] = self._spent.get(what, 0.0) + spent - self._counted
            self._counted = before + spent

    def take_times(self) -> dict[str, float]:
        """Seconds spent on each kind of work since the last call."""
        spent, self._spent = self._spent, {}
        return {what: round(seconds, 4) for what, seconds in spent.items()}

    @contextlib.contextmanager
    def at_most(self, seconds: float) -> Iterator[None]:
        """Inside, work is stopped after ``seconds``, or after as long as the run has taken so far if that is more.

        Searches then raise SearchStopped, as if someone had asked for a stop. A stop that was asked for before stays.
        """
        before = int(self.stop[0])
        timer = threading.Timer(max(seconds, time.monotonic() - self._began), self._halt)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            self.stop[0] = before or self._interrupted

    # -- showing -----------------------------------------------------------------------------------------------------

    def note(self, text: str) -> None:
        """Show a line of text."""
        LOG.info(text)
        if self._bar is not None:
            self._bar.clear()
            print(text, file=self._stream, flush=True)

    @contextlib.contextmanager
    def bar(self, what: str, total: int) -> Iterator[Callable[[], bool]]:
        """Show a bar over ``total`` blocks, 0 if nobody knows how many.

        Yields a function to call after each block. It returns whether to go on.
        """
        done = 0

        def tick() -> bool:
            nonlocal done
            done += 1
            if self._bar is not None:
                self._bar.show(what, done, total)
            return self.stop_reason is None and not self.stop[0]

        try:
            yield tick
        finally:
            if self._bar is not None:
                self._bar.clear()

    def iteration(self, record: dict[str, Any]) -> None:
        """Show an iteration and pass its record to the callback."""
        elapsed = f"{time.monotonic() - self._began:7.1f}s  "
        self.note(elapsed + describe_iteration(record, self._tol, self._ratio, COLUMNS - len(elapsed)))
        if self._callback is not None and self._callback(record):
            self._asked = True


def describe_iteration(
    record: dict[str, Any], tol: float | None = None, ratio: float | None = None, columns: int = COLUMNS
) -> str:
    """One line about an iteration, and how far it is from what was asked for.

    The violation is the largest one that the search of this iteration met; a gap is known after a complete search only.
    What does not fit into so many columns is left out, least important first.
    """
    parts = [f"it {record['iteration']:4d}", f"{record['stage']:9s}", f"bound {record['lower_bound']:.8g}"]
    if "ratio" in record:
        parts.append(f"ratio {record['ratio']:.5f}" + (f" (goal {ratio:.6g})" if ratio else ""))
    if "gap" in record:
        parts.append(f"gap {record['gap']:.1e}" + (f" (goal {tol:.0e})" if tol else ""))
    parts += [f"violation {record['worst']:.1e}", f"rows {record['kept']}"]
    parts += [f"found {record['found']}"] if "found" in record else []
    line = parts[0]
    for part in parts[1:]:
        if len(line) + 2 + len(part) > columns:
            break
        line = f"{line}  {part}"
    return line
