"""Every exception of the package; each refines a builtin, so callers may catch either."""

import difflib
from collections.abc import Iterable
from typing import Any


def nearest(name: str, known: Iterable[str]) -> str:
    """Words for the end of a message about a mistyped name: the known one that is most like it, or nothing."""
    found = difflib.get_close_matches(name.casefold(), by_fold := {each.casefold(): each for each in known}, n=1)
    return f" (did you mean {by_fold[found[0]]!r}?)" if found else ""


class InputError(ValueError):
    """The data or an option cannot be used; the message names what was found and where."""


class WorkspaceError(RuntimeError):
    """A workspace is missing, damaged, foreign, or does not fit the request."""


class WorkspaceBusyError(WorkspaceError):
    """Another process is working on this workspace."""


class ClusterError(RuntimeError):
    """The cluster that was to do the work failed."""


class BudgetError(MemoryError):
    """The memory budget cannot hold the work; the message names the smallest one that can."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, or SIGTERM, stopped a run; ``result`` is what it had found, and a workspace holds it."""

    def __init__(self, message: str, result: Any):
        super().__init__(message)
        self.result = result


class SearchStopped(Exception):
    """A stop was asked for while blocks were still to be searched."""


class BadLine(Exception):
    """What is wrong with one line."""
