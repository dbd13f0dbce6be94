"""The built-in example: towns with roads between neighbours, whose surveyed lengths contradict each other."""

from pathlib import Path

import numpy as np

from .. import workspaces
from ..edgelist.convert import convert
from ..engine.result import Result
from .explain import explain

# These shape the example's answer.
TOWNS = 400
NEIGHBOURS = 8  # roads from each town, to the nearest others
ERROR = 0.5  # a surveyed length is wrong by at most this part of it
SEED = 7
TOL = 1e-8


def run_example(folder: Path) -> tuple[Result, str]:
    """Make the edge list ``roads.txt`` in a folder, and the workspace ``roads.pf``; solve, check and explain it."""
    write_roads(folder / "roads.txt")
    report = convert(folder / "roads.txt", folder / "roads.pf")
    result = workspaces.solve(folder / "roads.pf", tol=TOL)
    checked = workspaces.verify(folder / "roads.pf", oracle="numba")
    text = (
        f"{report['nodes']} towns, {report['edges']} roads with surveyed lengths, many longer than a detour.\n"
        "The nearest lengths without such contradictions:\n"
        f"{explain(result)}\n"
        f"checked again from the files: largest violation of the answer {checked['violation_of_x']:.1e}"
    )
    return result, text


def write_roads(file: Path) -> None:
    """Write an edge list of roads between random towns, with lengths that are off at random."""
    rng = np.random.default_rng(SEED)
    towns = rng.random((TOWNS, 2))
    between = np.linalg.norm(towns[:, None] - towns[None], axis=2)
    near = np.argsort(between, axis=1)[:, 1 : NEIGHBOURS + 1]
    pairs = {(min(a, b), max(a, b)) for a, row in enumerate(near) for b in row}
    with open(file, "w", encoding="utf-8") as roads:
        roads.write("# town town surveyed-length\n")
        for a, b in sorted(pairs):
            surveyed = between[a, b] * rng.uniform(1.0 - ERROR, 1.0 + ERROR)
            roads.write(f"town{a} town{b} {surveyed:.6f}\n")
