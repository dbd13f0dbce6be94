"""What can be asked of a workspace, whatever problem it holds."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .cycles.check import verify_cycles
from .cycles.family import Limits, check_tol
from .cycles.persist import MakeProgram, load_edges, open_result
from .engine.result import KEYED, Result
from .errors import InputError, WorkspaceError
from .general.check import verify_general
from .problems.clustering import clustering_program, correlation_clustering
from .problems.nearness import metric_nearness, nearness_program
from .storage.arrays import read_array
from .storage.vectors import Pool
from .storage.workspace import Workspace, read_steadily
from .triangles.check import verify_dense
from .triangles.family import holds_dense, open_dense, resume_dense

SOLVERS: dict[str, Callable[..., Result]] = {"nearness": metric_nearness, "clustering": correlation_clustering}
PROGRAMS: dict[str, Callable[[dict[str, Any]], MakeProgram]] = {
    "nearness": lambda options: nearness_program,
    "clustering": lambda options: clustering_program(options["gamma"], options.get("base")),
}


def _held_problem(workspace: Workspace) -> dict[str, Any]:
    held = workspace.manifest["problem"]
    if held is None:
        raise WorkspaceError(f"{workspace.name} holds no run yet; start one with `ooc-pf solve {workspace.name}`")
    if held.get("name") in KEYED:
        raise WorkspaceError(
            f"{workspace.name} holds a run whose objective and constraints are Python objects; call project_and_forget "
            "or project_onto_sets again, with workspace= and the same arguments, to go on with it"
        )
    if held.get("name") not in SOLVERS:
        raise WorkspaceError(f"{workspace.name} holds a run of {held.get('name')!r}, which this release does not know")
    return held


def solve(workspace: str | Path, *, problem: str = "nearness", **options: Any) -> Result:
    """Solve the problem named on a workspace made by `convert`; continues where an earlier run stopped.

    ``options`` are those of the problem's own function, such as `metric_nearness`.
    """
    if problem not in SOLVERS:
        raise InputError(f"problem must be one of {', '.join(SOLVERS)}, found {problem!r}")
    for name in ("gamma", "base"):
        if problem != "clustering" and name in options:
            raise InputError(f"{name} belongs to clustering, not to {problem}")
    return SOLVERS[problem](workspace, **options)


def resume(workspace: str | Path, *, tol: float | None = None, **limits: Any) -> Result:
    """Go on with the run a workspace holds, with the options it was started with.

    ``tol`` may be changed; ``limits`` are memory, workers, max_iter, max_time, callback and progress.
    """
    place = Workspace(workspace)
    held = _held_problem(place)
    if tol is not None and tol != held["options"]["tol"]:
        check_tol(tol)
        with place.locked():
            held = _held_problem(place)
            place.commit(problem={**held, "options": {**held["options"], "tol": float(tol)}})
    if holds_dense(place):
        return resume_dense(place, Limits(**limits))
    stored = {**_held_problem(place)["options"]}
    stored.pop("settings")
    if stored.pop("weights") is not None:
        stored["weights"] = read_array(place.graph, "weight")
    return SOLVERS[held["name"]](workspace, **stored, **limits)


def open_workspace(workspace: str | Path) -> Result:
    """What the run in a workspace has found so far; changes nothing."""
    return read_steadily(workspace, lambda place: (open_dense if holds_dense(place) else open_result)(place))


def verify(workspace: str | Path, *, oracle: str = "igraph", workers: int | None = None,
           memory: int | str | None = None) -> dict[str, Any]:  # fmt: skip
    """Recompute what a workspace claims, from its edges and duals alone; raises WorkspaceError where it does not hold.

    ``oracle`` is the engine for the complete search: "igraph" is independent of the one that usually solves, but takes
    the whole graph in; "numba" is faster and keeps within ``memory``. Of general rows and sets only the arrays and the
    invariant can be checked, as their functions are not in the workspace. With ``workers`` above one igraph works in
    processes, and a script needs the usual ``if __name__ == "__main__":`` guard.
    """

    def check(place: Workspace) -> dict[str, Any]:
        if place.manifest["graph"]["kind"] in KEYED:
            return {"status": place.manifest["status"], **verify_general(place)}
        if place.manifest["problem"] is None:
            load_edges(place, Pool())
            return {"status": place.manifest["status"]}
        held = _held_problem(place)
        if holds_dense(place):
            report = verify_dense(place, oracle=oracle, workers=workers, memory=memory)
        else:
            make = PROGRAMS[held["name"]](held["options"])
            report = verify_cycles(place, make, oracle=oracle, workers=workers, memory=memory)
        return {"status": place.manifest["status"], **report}

    return read_steadily(workspace, check)
