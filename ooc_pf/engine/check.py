"""What every check of a workspace against itself uses, and the claims that every run makes."""

import math
from typing import Any

from ..errors import WorkspaceError
from ..storage.workspace import Workspace
from .certificate import relative_gap

TOLERANCE = 1e-9  # relative; rounding in a long run stays far below
ROUNDING = 1e-13  # of the size of the terms of a sum


def require(workspace: Workspace, holds: bool, problem: str) -> None:
    """Raise a WorkspaceError that names the problem unless ``holds``."""
    if not holds:
        raise WorkspaceError(
            f"{workspace.name}: {problem}; the workspace is damaged, `ooc-pf solve --restart` starts again"
        )


def agree(workspace: Workspace, found: float | None, claimed: float | None, what: str, size: float = 0.0) -> None:
    """Refuse a claim that the arrays do not bear out; ``size`` is that of the terms it is a sum of."""
    near = found == claimed
    if found is not None and claimed is not None and not near:
        near = abs(found - claimed) <= TOLERANCE * abs(claimed) + ROUNDING * size
    require(workspace, near, f"the manifest claims {what} {claimed!r}, the arrays give {found!r}")


STATUSES = (
    "running",
    "converged",
    "ratio_reached",
    "iteration_limit",
    "time_limit",
    "interrupted",
    "callback",
    "infeasible",
    "stalled",
)


def check_history(workspace: Workspace, *, answers: bool) -> None:
    """The history must be the one that was committed, and end where the manifest says."""
    manifest, history = workspace.manifest, workspace.history()
    require(workspace, workspace.sealed, "manifest.json or history.jsonl is not as it was committed")
    require(workspace, manifest["status"] in STATUSES, f"no run has the status {manifest['status']!r}")
    require(workspace, manifest["problem"]["answers"] == answers, "the manifest is wrong about what the problem makes")
    if not history:
        return
    counted, last = [record.get("iteration") for record in history], manifest["iteration"]
    first = last - len(counted) + 1  # after 1 where an older history was removed, as is allowed
    whole = first >= 1 and counted == list(range(first, last + 1))
    require(workspace, whole, f"history.jsonl has not one record for each iteration up to {last}")
    agree(workspace, history[-1].get("kept"), manifest["n_active"], "rows remembered")
    certified = [record for record in history if "violation" in record]
    claimed = manifest["certificate"]
    same = bool(certified) == (claimed is not None) or (first > 1 and not certified)
    require(workspace, same, "the certificate is not that of the history")
    if claimed is not None and certified:
        _check_recorded(workspace, claimed, certified[-1])


def _check_recorded(workspace: Workspace, claimed: dict[str, Any], record: dict[str, Any]) -> None:
    """The certificate that a run goes on with must be the one in its history."""
    for name in ("objective", "violation", "scale", "feasible", "worth"):
        said, was = claimed.get(name), record.get(name)
        same = said == was or (said is None and was == math.inf)  # which JSON does not know
        require(workspace, same, f"the {name} of the certificate is not that of the history")
    if "worth" in claimed and None not in claimed.values():  # else of a release that judged by other sizes
        gap = relative_gap(claimed["objective"], claimed["lower_bound"], claimed["worth"])
        same = math.isclose(gap, record.get("gap", math.nan), rel_tol=TOLERANCE)
        require(workspace, same, "the gap of the certificate is not that of the history")


def claimed_now(manifest: dict[str, Any]) -> dict[str, Any] | None:
    """The certificate of the committed iterate, where the manifest has one: an earlier one cannot be looked at."""
    return manifest["closing"] or (manifest["certificate"] if manifest["status"] == "converged" else None)


def check_certificate(
    workspace: Workspace, *, violation: float | None, scale: float, worth: float, excess: float = 0.0
) -> None:
    """The last certificate must follow from bounds that were checked before, and from the violation of the iterate.

    ``violation`` is what a complete look at the iterate found, None if nobody looked. The run may have taken it for
    larger by this ``excess``, but not for smaller.
    """
    manifest = workspace.manifest
    claimed = claimed_now(manifest)
    if claimed is not None and "worth" not in claimed:
        return  # of a release that judged by other sizes
    if claimed is not None:
        agree(workspace, scale, claimed.get("scale"), "size of the numbers")
        agree(workspace, worth, claimed["worth"], "size of the objective")
        if claimed["violation"] is not None and violation is not None:
            rounding = TOLERANCE * max(scale, claimed["violation"])
            near = -rounding <= claimed["violation"] - violation <= rounding + excess
            found = f"the manifest claims a violation of {claimed['violation']!r}, the arrays give {violation!r}"
            require(workspace, near, found)
    if manifest["status"] != "converged":
        return
    require(workspace, claimed is not None, "the manifest claims convergence without a certificate")
    assert claimed is not None
    tol = manifest["problem"]["options"]["tol"]
    gap = relative_gap(manifest["objective"], manifest["lower_bound"], worth)
    met = gap <= tol * (1.0 + TOLERANCE) and (violation or 0.0) <= (tol + TOLERANCE) * scale
    require(workspace, met and math.isfinite(gap), f"the manifest claims convergence to {tol}, the gap is {gap:.3e}")
    for name in ("objective", "lower_bound"):
        agree(workspace, manifest[name], claimed[name], f"{name.replace('_', ' ')} of the certificate", worth)
