"""The objective of a run as its workspace holds it, so that `verify` can recompute what it claims."""

from pathlib import Path

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..errors import WorkspaceError
from ..kernels import bregman
from ..objectives import Objective
from ..storage.arrays import read_array, write_array

VECTORS = ("start", "weight", "shift", "ridge")
NUMBERS = ("code", "power", "peak", "offset")


def write_objective(group: Path, objective: Objective) -> None:
    """Write all numbers of an objective; of a function of the caller only where it starts."""
    write_array(group, "start", objective.start)
    if objective.own is not None:
        return
    for name in VECTORS[1:]:
        write_array(group, name, getattr(objective, name))
    numbers = [float(getattr(objective, name)) for name in NUMBERS]
    write_array(group, "numbers", np.array([*numbers, *objective.domain]))
    if objective.matrix is not None:
        write_array(group, "matrix", objective.matrix.ravel())


def stored_objective(group: Path) -> Objective | None:
    """What `write_objective` wrote; None for a function of the caller, and for workspaces of earlier releases."""
    if not (group / "numbers").exists():
        return None
    vectors = [np.array(read_array(group, name, dtype=np.float64)) for name in VECTORS]
    numbers, size = read_array(group, "numbers", dtype=np.float64), len(vectors[0])
    sound = len(numbers) == len(NUMBERS) + 2 and all(len(vector) == size for vector in vectors)
    sound = sound and all(np.isfinite(vector).all() for vector in vectors) and numbers[0] in range(bregman.ABSOLUTE + 1)
    matrix = inverse = None
    if sound and (group / "matrix").exists():
        flat = np.array(read_array(group, "matrix", dtype=np.float64))
        sound = flat.size == size * size and bool(np.isfinite(flat).all())
        matrix = flat.reshape(size, size) if sound else None
    if not sound:
        raise WorkspaceError(f"{group}: the objective is damaged; `ooc-pf solve --restart` starts again")
    if matrix is not None:
        try:
            inverse = cho_solve(cho_factor(matrix), np.eye(size))
        except LinAlgError as error:
            raise WorkspaceError(f"{group}: the matrix of the objective is damaged ({error})") from error
        inverse = np.ascontiguousarray(0.5 * (inverse + inverse.T))
    code, power, peak, offset, low, high = numbers.tolist()
    parts = {"matrix": matrix, "inverse": inverse, "peak": peak, "offset": offset}
    return Objective("stored", int(code), *vectors, power=power, domain=(low, high), **parts)
