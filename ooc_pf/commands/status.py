"""What a workspace holds and how far its run is, from its manifest alone: no array is opened, no solver loaded."""

from pathlib import Path
from typing import Any

from ..storage.workspace import Workspace

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
    }


def _contents(place: Workspace) -> str:
    graph = place.manifest["graph"]
    return f"{place.name}: {size_of(graph)}, kind {graph['kind']}"


def _progress(place: Workspace) -> list[str]:
    manifest = place.manifest
    functions = manifest["graph"]["nodes"] == 0  # of the caller: general rows and sets
    if manifest["problem"] is None:
        return [f"not solved yet; start with: {'Python' if functions else f'ooc-pf solve {place.name}'}"]
    status = manifest["status"]
    if status == "running":
        status = "running, or stopped without notice"
    name, stage = manifest["problem"]["name"], manifest["plan"]["stage"]
    lines = [
        f"{name}: {status}, iteration {manifest['iteration']}, stage {stage}",
        f"lower bound {manifest['lower_bound']:.10g}, {manifest['n_active']} constraints remembered",
    ]
    known = next((record for record in reversed(place.history()) if "ratio" in record), None)
    if known is not None:
        lines.append(
            f"clusters so far: cost {known['cost']:.10g}, at most {known['ratio']:.6g} times the least there is"
        )
    if manifest["objective"] is not None:
        point = "the last point" if functions else "the best feasible point"
        lines.append(f"objective of {point} {manifest['objective']:.10g}")
    return lines
