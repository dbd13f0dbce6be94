"""Says so when kernels are compiled: it takes a while, once, and looks as if nothing happened.

Numba tells of each kernel that it really compiles; one that comes from its cache on disk is no event.
"""

import logging
import sys
import time

from numba.core import event

LONG = 0.5  # seconds of compiling before anything is said
INTERVAL = 0.2  # seconds between two drawings
TEXT = "compiling kernels, once on this machine: about 15 s"

# Whether to say it on stderr; None: where somebody is looking, at a terminal or in a notebook.
shown: bool | None = None


class Announcement(event.Listener):
    """Tells that kernels are being compiled, and at a terminal how far that is."""

    def __init__(self) -> None:
        self._depth, self._kernels, self._spent, self._began, self._drawn = 0, 0, 0.0, 0.0, 0.0
        self._said = False

    def on_start(self, event: event.Event) -> None:
        """A kernel begins; those it calls begin within."""
        if not self._depth:
            self._began = time.monotonic()
        self._depth += 1
        spent = self._spent + time.monotonic() - self._began
        if spent > LONG:
            self._say(spent, event.data["dispatcher"].py_func.__name__)

    def on_end(self, event: event.Event) -> None:
        """A kernel is done; the line about it goes when no other is under way."""
        self._depth -= 1
        self._kernels += 1
        if self._depth:
            return
        self._spent += time.monotonic() - self._began
        if self._drawn:
            self._write("\r\x1b[K")
            self._drawn = 0.0

    def _say(self, spent: float, name: str) -> None:
        if not self._said:
            self._said = True
            logging.getLogger("ooc_pf").info(TEXT)
            if _is_watched():
                self._write(f"{TEXT}\n")
        now = time.monotonic()
        if _is_watched() and sys.stderr.isatty() and now - self._drawn > INTERVAL:
            self._write(f"\r\x1b[K  {self._kernels} done in {spent:.0f} s, now {name}"[:79])
            self._drawn = now

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def _is_watched() -> bool:
    if shown is not None or sys.stderr is None:
        return bool(shown) and sys.stderr is not None
    return sys.stderr.isatty() or "ipykernel" in sys.modules


event.register("numba:compile", Announcement())
