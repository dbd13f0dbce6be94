"""What can be asked of a workspace, whatever problem it holds."""

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .errors import InputError, WorkspaceError, nearest

if TYPE_CHECKING:
    from .engine.family import Family
    from .engine.result import Result
    from .storage.workspace import Workspace


class Entry(NamedTuple):
    """Where a built-in problem is found, as "module:name"; ``solve`` is None if no workspace can be handed to it.

    ``files`` is a module of a problem whose input a workspace may hold, or name the files of, with
    ``knows_input(workspace)``, ``resume_files(workspace, options, **limits)`` and, where they make sense,
    ``why_not(workspace)``, what to do if it does not, and ``dress(workspace, result)``, for `open_workspace`.
    """

    family: str
    solve: str | None = None
    files: str | None = None


# Every built-in problem, by what manifests call it. Nearness on a table of all pairs goes by its engine, "dense".
FAMILIES: dict[str, Entry] = {
    "nearness": Entry("ooc_pf.problems.nearness:NEARNESS", "ooc_pf.problems.nearness:metric_nearness"),
    "dense": Entry("ooc_pf.problems.nearness:TABLE"),
    "clustering": Entry("ooc_pf.problems.clustering:CLUSTERING", "ooc_pf.problems.clustering:correlation_clustering"),
    "rows": Entry("ooc_pf.general.family:ROWS"),
    "sets": Entry("ooc_pf.general.family:SETS"),
    "svm": Entry("ooc_pf.svm.family:SVM", files="ooc_pf.problems.svm_files"),
    "itml": Entry("ooc_pf.itml.family:ITML", files="ooc_pf.itml.solve"),
    "transport": Entry("ooc_pf.transport.family:TRANSPORT", files="ooc_pf.transport.solve"),
}
LIMITS = ("memory", "workers", "max_iter", "max_time", "callback", "progress", "client")


def problems() -> list[str]:
    """The problems that can be solved on a workspace."""
    return sorted(name for name, entry in FAMILIES.items() if entry.solve)


def _found(address: str) -> Any:
    module, name = address.split(":")
    return getattr(import_module(module), name)


def family_of(workspace: "Workspace") -> "Family":
    """The family of the run that a workspace holds."""
    from .engine.family import check_family, engine_of

    held = workspace.manifest["problem"]
    if held is None:
        raise WorkspaceError(f"{workspace.name} holds no run yet; start one with `ooc-pf solve {workspace.name}`")
    name = engine_of(held) or held["name"]
    if not isinstance(name, str) or name not in FAMILIES:
        raise WorkspaceError(f"{workspace.name} holds a run of {name!r}, which this release does not know")
    family = _found(FAMILIES[name].family)
    check_family(family, workspace)
    return family


# The problem of a workspace if none is named, by what its values are.
USUAL = {"distance": "nearness", "signed": "clustering"}


def solve(workspace: str | Path, *, problem: str | None = None, **options: Any) -> "Result":
    """Solve the problem named on a workspace made by `convert`; continues where an earlier run stopped.

    Parameters
    ----------
    workspace : path
        Made by `convert`, or by an earlier solve.
    problem : str, optional
        "nearness" or "clustering"; by default the former of distances, the latter of signed weights.
    **options
        Those of the problem's own function, `metric_nearness` or `correlation_clustering`.

    Returns
    -------
    Result
    """
    if problem is None:
        from .storage.workspace import Workspace

        place = Workspace(workspace)
        kind = place.manifest["graph"]["kind"]
        if kind in FAMILIES:  # a workspace that a problem of this name made for itself
            raise InputError(
                f"{place.name} holds a run of {kind}, not a graph; `ooc-pf resume {place.name}` goes on with it"
            )
        problem = USUAL.get(kind, "nearness")
    if problem not in problems():
        near = nearest(str(problem), problems())
        raise InputError(f"problem must be one of {', '.join(problems())}, found {problem!r}{near}")
    for name in options:
        if not _takes(problem, name):
            owners = [other for other in problems() if _takes(other, name)]
            near = nearest(name, inspect.signature(_solver(problem)).parameters)
            known = f"it belongs to {' and '.join(owners)}" if owners else f"no problem has such an option{near}"
            raise InputError(f"{name} is not an option of {problem}: {known}")
    return _solver(problem)(workspace, **options)


def _solver(problem: str) -> Callable[..., "Result"]:
    return _found(FAMILIES[problem].solve or "")


def _takes(problem: str, option: str) -> bool:
    parameters = inspect.signature(_solver(problem)).parameters
    return option in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())


def resume(workspace: str | Path, *, tol: float | None = None, ratio: float | None = None, **limits: Any) -> "Result":
    """Go on with the run a workspace holds, with the options it was started with.

    Parameters
    ----------
    workspace : path
    tol : float, optional
        Go on to another tolerance.
    ratio : float, optional
        Of clusters: go on until they cost at most this many times the lower bound.
    **limits
        Any of memory, workers, max_iter, max_time, callback, progress and client, as for `metric_nearness`.

    Returns
    -------
    Result
    """
    from .engine.family import Given
    from .engine.limits import Limits
    from .engine.run import solve as run
    from .storage.workspace import Workspace

    unknown = [name for name in limits if name not in LIMITS]
    if unknown:
        known = ("tol", "ratio", *LIMITS)
        near = nearest(unknown[0], known)
        raise InputError(f"resume takes {', '.join(known)}, and not {unknown[0]}{near}; a run keeps its other options")
    place = Workspace(workspace)
    family = _resumable(place)
    wanted = _checked_goals(family, tol, ratio)
    if any(value != place.manifest["problem"]["options"].get(name) for name, value in wanted.items()):
        with place.locked():
            held = place.manifest["problem"]
            # What was reached may not be enough now.
            place.commit(problem={**held, "options": {**held["options"], **wanted}}, status="running")
    options = place.manifest["problem"]["options"]
    if not family.resumable:
        return _from_files(family).resume_files(place, options, **limits)
    return run(family, Given(workspace, None), options, Limits(**limits))


def _checked_goals(family: "Family", tol: float | None, ratio: float | None) -> dict[str, float]:
    """What a run is to go on to."""
    from .engine.limits import check_ratio, check_tol

    wanted = {}
    if tol is not None:
        check_tol(tol)
        wanted["tol"] = float(tol)
    if ratio is not None:
        if "ratio" not in family.free:
            raise InputError(f"ratio= is for clusters; the workspace holds a run of {family.name}")
        check_ratio(ratio)
        wanted["ratio"] = float(ratio)
    return wanted


def _from_files(family: "Family") -> Any:
    """The module that goes on with runs whose input is in files, if the problem has one."""
    address = FAMILIES[family.engine or family.name].files
    return None if address is None else import_module(address)


def _resumable(workspace: "Workspace") -> "Family":
    family = family_of(workspace)
    files = _from_files(family)
    if family.resumable or (files is not None and files.knows_input(workspace)):
        return family
    if hasattr(files, "why_not"):
        why = files.why_not(workspace)
        raise WorkspaceError(f"{workspace.name} cannot go on alone: {why}, with workspace= and the same arguments")
    raise WorkspaceError(
        f"{workspace.name} holds a run whose objective and constraints are Python objects; to go on with it call "
        "project_and_forget, project_onto_sets or LinearSVM.fit again, with workspace= and the same arguments"
    )


def open_workspace(workspace: str | Path) -> "Result":
    """What the run in a workspace has found so far; changes nothing.

    Parameters
    ----------
    workspace : path

    Returns
    -------
    Result
    """
    from .engine.place import open_result

    def look(place: "Workspace") -> "Result":
        family = family_of(place)
        result, files = open_result(family, place), _from_files(family)
        return files.dress(place, result) if hasattr(files, "dress") and files.knows_input(place) else result

    return _steadily(workspace, look)


def verify(
    workspace: str | Path, *, oracle: str = "igraph", workers: int | None = None, memory: int | str | None = None
) -> dict[str, Any]:
    """Recompute what a workspace claims, from its edges and duals alone; raises WorkspaceError where it does not hold.

    Parameters
    ----------
    workspace : path
    oracle : {"igraph", "numba"}
        The engine for the complete search: "igraph" is independent of the one that usually solves, but takes the whole
        graph in; "numba" is faster and keeps within ``memory``. Of general rows and sets only the arrays and the
        invariant can be checked, as their functions are not in the workspace.
    workers : int, optional
        With more than one, igraph works in processes, and a script needs the usual ``if __name__ == "__main__":``
        guard.
    memory : int or str, optional
        A budget, like "500MB".

    Returns
    -------
    dict
        What was recomputed.
    """
    from .cycles.inputs import load_edges
    from .engine.check import check_history
    from .storage.vectors import Pool

    def check(place: "Workspace") -> dict[str, Any]:
        if place.manifest["problem"] is None:
            if place.manifest["graph"]["nodes"]:
                load_edges(place, Pool())
                place.check_groups()
            raise WorkspaceError(f"{place.name} has not been solved, so there is nothing to verify")
        family = family_of(place)
        check_history(place, answers=family.finish is not None)
        family.load_plan(place)  # refuses one that no run could go on with
        found = family.verify(place, oracle=oracle, workers=workers, memory=memory)
        place.check_groups()
        return {"status": place.manifest["status"], **found}

    return _steadily(workspace, check)


def _steadily(workspace: str | Path, read: Callable[["Workspace"], Any]) -> Any:
    from .storage.workspace import read_steadily

    return read_steadily(workspace, read)
