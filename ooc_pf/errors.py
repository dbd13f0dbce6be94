"""Every exception of the package; each refines a builtin, so callers may catch either."""

import difflib
from collections.abc import Iterable
from typing import Any

BRIEF = 2  # a name of more letters, with something behind it, is taken for a longer way to say the same


def nearest(name: str, known: Iterable[str]) -> str:
    """Words for the end of a message about a mistyped name: the known one that is most like it, or nothing.

    >>> nearest("--tolerance", ["--oracle", "--tol"]), nearest("slove", ["solve", "svm"]), nearest("x", ["solve"])
    (" (did you mean '--tol'?)", " (did you mean 'solve'?)", '')
    """
    folded, by_fold = name.casefold(), {each.casefold(): each for each in known}
    begins = [each for each in by_fold if len(each.strip("-_")) > BRIEF and folded.startswith(each)]
    found = [max(begins, key=len)] if begins else difflib.get_close_matches(folded, by_fold, n=1)
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
