"""What a workspace holds and how far its run is, from its manifest alone: no array is opened, no solver loaded."""

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..engine.certificate import relative_gap
from ..engine.monitor import describe_iteration
from ..storage.workspace import Workspace, read_steadily

RUN_FACTS = ("status", "iteration", "objective", "lower_bound", "n_active", "plan")


def read_status(workspace: str | Path) -> tuple[dict[str, Any], str]:
    """What a workspace holds.

    Parameters
    ----------
    workspace : path or address

    Returns
    -------
    facts : dict
        Entries of the manifest, fit for JSON.
    text : str
        The same in a few lines, without a line end after the last.
    """
    place = Workspace(workspace)
    return _facts(place), "\n".join([_contents(place), *_progress(place)])


def follow(workspace: str | Path, pause: float = 1.0) -> Iterator[str]:
    """A line for each iteration that a running solve makes, until nobody works on the workspace any more."""
    manifest = Workspace(workspace).manifest
    done, options = manifest["iteration"], (manifest["problem"] or {}).get("options", {})
    while True:
        running = Workspace(workspace).is_busy  # asked before the history is read, so that nothing is missed at the end
        for record in read_steadily(workspace, lambda place: place.history())[done:]:
            done = record["iteration"]
            yield describe_iteration(record, options.get("tol"), options.get("ratio"))
        if not running:
            return
        time.sleep(pause)


def size_of(graph: dict[str, Any]) -> str:
    """How large the problem in a manifest's ``graph`` is; general problems have variables, not edges."""
    if graph["nodes"] == 0:
        return f"{graph['edges']:,} variables"
    return f"{graph['nodes']:,} nodes, {graph['edges']:,} edges"


def _facts(place: Workspace) -> dict[str, Any]:
    manifest = place.manifest
    graph, problem = manifest["graph"], manifest["problem"]
    return {
        "workspace": str(place.name),
        "kind": graph["kind"],
        "nodes": graph["nodes"],
        "edges": graph["edges"],
        "problem": problem and problem["name"],
        "options": problem and problem["options"],
        **{name: manifest.get(name) for name in RUN_FACTS},
        **_made(manifest),
        "gap": _gap(manifest),
        "running": place.is_busy,
    }


def _made(manifest: dict[str, Any]) -> dict[str, float]:
    """The numbers that a problem made of its point."""
    facts = manifest.get("facts") if manifest.get("answer") else None
    return {name: value for name, value in (facts or {}).items() if isinstance(value, int | float)}


def _gap(manifest: dict[str, Any]) -> float | None:
    if manifest.get("objective") is None:
        return None
    worth = ((manifest["closing"] or manifest["certificate"]) or {}).get("worth") or 0.0
    gap = relative_gap(manifest["objective"], manifest["lower_bound"], worth)
    return gap if math.isfinite(gap) else None


def _contents(place: Workspace) -> str:
    graph = place.manifest["graph"]
    return f"{place.name}: {size_of(graph)}, kind {graph['kind']}"


def _progress(place: Workspace) -> list[str]:
    manifest = place.manifest
    functions = manifest["graph"]["nodes"] == 0  # of the caller: general rows and sets
    if manifest["problem"] is None:
        start = f"ooc-pf solve {place.name}"
        if functions:
            start = "Python" if manifest["graph"]["source"].get("file") is None else "the command that made it"
        return [f"not solved yet; start with: {start}"]
    status = _status(place)
    name, stage = manifest["problem"]["name"], manifest["plan"]["stage"]
    lines = [
        f"{name}: {status}, iteration {manifest['iteration']}, stage {stage}",
        f"lower bound {manifest['lower_bound']:.10g}, {manifest['n_active']} constraints remembered",
    ]
    known = next((record for record in reversed(place.history()) if "ratio" in record), None)
    made = _made(manifest)
    if known is not None and "cost" not in made:
        lines.append(
            f"clusters so far: cost {known['cost']:.10g}, at most {known['ratio']:.6g} times the least there is"
        )
    if manifest["objective"] is not None:
        point = "the last point" if functions else "the best feasible point"
        gap = _gap(manifest)
        told = "" if gap is None or manifest["lower_bound"] == 0.0 < gap else f", gap {gap:.1e}"
        lines.append(f"objective of {point} {manifest['objective']:.10g}{told}")
    if "cost" in made:
        ratio = f", certified ratio {made['certified_ratio']:.4f}" if "certified_ratio" in made else ""
        nodes = f"of {manifest['graph']['nodes']:,} nodes"
        proven = f", proven optimal: {made['proven_nodes']:,} {nodes}" if "proven_nodes" in made else ""
        lines.append(f"clusters of cost {made['cost']:.10g}{ratio}{proven}")
    return lines


def _status(place: Workspace) -> str:
    """How the run is; only the lock tells whether somebody works on it, and only on this machine."""
    if place.is_busy:
        return "running"
    if place.manifest["status"] != "running":
        return place.manifest["status"]
    elsewhere = "running elsewhere, or " if place.is_remote else ""
    return f"{elsewhere}stopped without notice; `ooc-pf resume {place.name}` goes on with it"
