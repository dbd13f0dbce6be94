"""Recompute what a workspace of metric learning claims; where it has its pairs, by a look at all of them."""

from typing import Any

import numpy as np

from ..engine.check import ROUNDING, TOLERANCE, agree, check_certificate, claimed_now
from ..engine.check import require as demand
from ..storage.arrays import read_array
from ..storage.workspace import Workspace
from .data import ItmlData, check_pairs, holds_input, read_held, why_not_held
from .newton import Place, log_determinant
from .pairs import Source
from .schedule import PairPoint, PairStore
from .steps import NEWTON, StepPoint


def verify_itml(workspace: Workspace) -> dict[str, Any]:
    """Check every array, that the claims agree with each other and, where they are held, with the pairs."""
    manifest, d = workspace.manifest, round(workspace.manifest["graph"]["edges"] ** 0.5)
    check = _check_steps if manifest["problem"]["options"]["method"] == NEWTON else _check_projections
    check(workspace, d)
    report = {"rows": manifest["n_active"], "lower_bound": manifest["lower_bound"]}
    if workspace.feasible:
        root = _held_root(workspace, d)
        least = float(np.sum(root * root)) - log_determinant(root) - d
        above = manifest["objective"] >= max(least, manifest["lower_bound"]) * (1.0 - 1e-9)
        demand(workspace, above, "the objective is below what it cannot be below")
        report |= _look_at_pairs(workspace, root)
    worth = (claimed_now(manifest) or {}).get("worth") or float(d)
    check_certificate(workspace, violation=None, scale=1.0, worth=worth)
    return report


def _check_steps(workspace: Workspace, d: int) -> None:
    now = StepPoint.read(workspace.generation, d).now
    if now is not None:
        best = now.bound
        found = _log_of(workspace, best.matrix) - log_determinant(now.place.root) - best.conjugate
        agree(workspace, best.value if best.value == 0.0 else found, best.value, "lower bound", size=float(d))
        bound = min(best.value, now.place.value)
        agree(workspace, bound, workspace.manifest["lower_bound"], "lower bound", size=float(d))


def _check_projections(workspace: Workspace, d: int) -> None:
    store = PairStore(d)
    store.read(workspace.generation / "rows")
    many = len(store) == workspace.manifest["n_active"]
    demand(workspace, many, "the pairs are not as many as the manifest says")
    matrix = PairPoint.read(workspace.generation, d).matrix
    demand(workspace, store.has_made(matrix), "the stored matrix does not follow from the multipliers")


def _held_root(workspace: Workspace, d: int) -> np.ndarray:
    assert workspace.feasible is not None
    x = read_array(workspace.feasible, "x", dtype=np.float64)
    root = x.reshape(d, d) if len(x) == d * d else np.zeros((1, 1))
    held = np.isfinite(root).all() and (np.diag(root) > 0.0).all() and (np.triu(root, 1) == 0.0).all()
    demand(workspace, bool(held), "the stored x is not the root of a matrix")
    return root


def _log_of(workspace: Workspace, matrix: np.ndarray) -> float:
    """The logarithm of the determinant of a stored matrix, which must be positive definite."""
    try:
        return log_determinant(np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:
        demand(workspace, False, "the stored bound is not positive definite")
        raise


# -- the pairs --------------------------------------------------------------------------------------------------------


def _look_at_pairs(workspace: Workspace, root: np.ndarray) -> dict[str, Any]:
    """The objective at the stored matrix, and the bound that its own multipliers prove."""
    if not holds_input(workspace):
        return {"pairs_read": 0, "why": why_not_held(workspace)}
    task, method = read_held(workspace), workspace.manifest["problem"]["options"]["method"]
    source, known = task.source, workspace.manifest["graph"]["source"].get("digest")
    same = known == ItmlData(task, method).fingerprint and check_pairs(workspace, source)
    demand(workspace, same, "the pairs are not those that it was made with")
    if method == NEWTON:
        _check_place(workspace, source)
    value, bound = plain_bounds(source, root)
    agree(workspace, value, workspace.manifest["objective"], "objective", size=float(len(root)))
    # The stored bound is of a mixture of the multipliers of all looks, which may be better than those of this one.
    below = workspace.manifest["lower_bound"] <= value * (1.0 + 1e-9)
    demand(workspace, below, "the lower bound is above the objective")
    return {"objective": value, "lower_bound_of_x": bound, "pairs_read": source.size}


def _check_place(workspace: Workspace, source: Source) -> None:
    """The place that steps go on from must be what the pairs say there, or the steps would end somewhere else."""
    now = StepPoint.read(workspace.generation, source.dimension).now
    if now is None:
        return
    seen, place = plain_look(source, now.place.root), now.place
    # Near the end large terms cancel: each pair brings the rounding of its weight.
    size = float(source.dimension) + max(source.terms.near, source.terms.far) * source.size
    agree(workspace, seen.value, place.value, "objective to go on with", size=size)
    rounding = TOLERANCE * float(np.abs(seen.dual).max()) + ROUNDING * size
    near = np.allclose(seen.dual, place.dual, rtol=0.0, atol=rounding)
    demand(workspace, near, "the stored dual is not that of its root")


def plain_bounds(source: Source, root: np.ndarray) -> tuple[float, float]:
    """Objective and dual value at the matrix ``root @ root.T``; zero where the dual has none."""
    seen = plain_look(source, root)
    try:
        logs = log_determinant(np.linalg.cholesky(seen.dual)) - log_determinant(root)
    except np.linalg.LinAlgError:
        return seen.value, 0.0
    return seen.value, max(logs - seen.conjugate, 0.0)


def plain_look(source: Source, root: np.ndarray) -> Place:
    """A look at all pairs from the matrix ``root @ root.T``, in plain numpy."""
    d, (upper, lower, near, far) = len(root), source.terms
    loss, logs, dual = 0.0, 0.0, root.T @ root
    for _, (difference, sign) in source.blocks():
        along = difference @ root
        p = np.sum(along**2, axis=1)
        similar = sign > 0
        t = np.where(similar, np.maximum(1.0, p / upper), np.minimum(1.0, p / lower))
        weight = np.where(similar, near, far)
        loss += float(np.sum(weight * (t - np.log(t) - 1.0)))
        logs += float(np.sum(weight * np.log(t)))
        slope = np.where(similar, near / upper * (1.0 - 1.0 / t), far / lower * (1.0 - 1.0 / t))
        dual += (along * slope[:, None]).T @ along
    value = float(np.sum(root * root)) - log_determinant(root) - d + loss
    return Place(root, value, dual, logs)
