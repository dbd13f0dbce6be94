"""A run in words and tables: what was asked, what is proven, how it went, where the time and the bytes went.

The columns have the names that people know from the progress of a run, see `engine.monitor.describe_iteration`.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..engine.place import open_result
from ..engine.result import Result
from ..errors import InputError, nearest
from ..storage.workspace import Workspace, read_steadily
from ..workspaces import family_of
from .status import size_of

STAGE_HEAD = ("stage", "iterations", "rows found", "looked at", "projections", "seconds")
LINE_HEAD = ("iteration", "stage", "lower bound", "gap", "violation", "rows kept")
FORMATS = ("markdown", "html")
LINES = 40  # of the table of iterations; longer runs are thinned out


def report(workspace: str | Path, *, format: str = "markdown") -> str:
    """Describe the run in a workspace; changes nothing.

    Parameters
    ----------
    workspace : path or address
    format : {"markdown", "html"}
        "html": one page with curves, which needs no other file and no network.

    Returns
    -------
    str
        What was asked, the certificate, the work by stage, and the iterations.
    """
    if format not in FORMATS:
        raise InputError(f"format must be one of {', '.join(FORMATS)}, found {format!r}{nearest(str(format), FORMATS)}")
    return read_steadily(workspace, _page if format == "html" else _written)


def _page(place: Workspace) -> str:
    from .page import write_page

    manifest, result = place.manifest, open_result(family_of(place), place)
    graph, options = manifest["graph"], manifest["problem"]["options"]
    tables = {
        "Work by stage": (STAGE_HEAD, _stages(result.history)),
        "Iterations": (LINE_HEAD, _lines(result.history)),
    }
    return write_page(result, f"{place.name}: {size_of(graph)}, kind {graph['kind']}", _chosen(options), tables)


def _written(place: Workspace) -> str:
    manifest, result = place.manifest, open_result(family_of(place), place)
    graph, problem = manifest["graph"], manifest["problem"]
    parts = [
        f"# {problem['name']}: {result.status.replace('_', ' ')} after {result.n_iter} iterations",
        f"{size_of(graph)}, kind {graph['kind']}; {_asked(problem['options'])}.",
        _table(("what", "value"), _facts(result)),
        "## Work by stage",
        _table(STAGE_HEAD, _stages(result.history)),
        "## Iterations",
        _table(LINE_HEAD, _lines(result.history)),
    ]
    return "\n\n".join(parts) + "\n"


def _asked(options: dict[str, Any]) -> str:
    """The options a user chose; the settings are the program's own."""
    return ", ".join(f"{name} {value}" for name, value in _chosen(options).items())


def _chosen(options: dict[str, Any]) -> dict[str, Any]:
    return {name: "none" if value is None else value for name, value in options.items() if name != "settings"}


def _facts(result: Result) -> Iterable[tuple[str, str]]:
    for name, value in result.summary().items():
        if isinstance(value, bool):
            yield name.replace("_", " "), "yes" if value else "no"
        elif name == "gap" and (value is None or result.lower_bound == 0.0 < value):
            yield name, "none yet"
        elif name not in ("status", "workspace", "n_iter") and value is not None:
            yield name.replace("_", " "), f"{value:.12g}" if isinstance(value, float) else f"{value:,}"
    for name in ("read_bytes", "written_bytes"):
        total = sum(record.get(name, 0) for record in result.history)
        if total:
            yield f"scratch {name.replace('_', ' ')}", f"{total:,}"


def _stages(history: list[dict[str, Any]]) -> Iterable[tuple[Any, ...]]:
    stages: dict[str, list[dict[str, Any]]] = {}
    for record in history:
        stages.setdefault(record["stage"], []).append(record)
    for stage, records in stages.items():
        sums = [sum(record.get(name, 0) for record in records) for name in ("found", "relaxed", "projections")]
        seconds = sum(sum(record["seconds"].values()) for record in records)
        yield stage, len(records), *(f"{total:,}" for total in sums), f"{seconds:.1f}"


def _lines(history: list[dict[str, Any]]) -> Iterable[tuple[Any, ...]]:
    step = -(-len(history) // LINES) or 1
    for record in history:
        if record["iteration"] % step == 0 or "gap" in record or record is history[-1]:
            gap = f"{record['gap']:.2e}" if "gap" in record else ""
            bound, worst = f"{record['lower_bound']:.10g}", f"{record['worst']:.2e}"
            yield record["iteration"], record["stage"], bound, gap, worst, f"{record['kept']:,}"


def _table(head: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
