"""A problem of every family, as small as it can be and still take several iterations: for campaigns of many runs."""

import atexit
import functools
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import ooc_pf as pf
from ooc_pf.engine.limits import Limits
from ooc_pf.itml.inputs import all_pairs_task
from ooc_pf.itml.solve import solve_task
from ooc_pf.problems.svm import fit_newton
from ooc_pf.problems.svm_files import fit_files
from ooc_pf.svm.files import Files
from ooc_pf.svm.inputs import read_table
from ooc_pf.svm.program import Program
from ooc_pf.transport.family import TransportData
from ooc_pf.transport.inputs import read_task
from ooc_pf.transport.solve import solve_data


@dataclass(frozen=True)
class Case:
    """A run in a folder, from a file of edges or from arrays to an exported answer.

    Attributes
    ----------
    name : str
    solve : (workspace path, **limits) -> Result
        Starts the run, or goes on with it.
    edges : function or None
        Writes the file of edges that `convert` reads, of a case that has one.
    kind : str
        Of that file.
    own : bool
        Whether the problem is the caller's, so that a workspace does not hold all of it.
    past : function or None
        Returns the path of the workspace that a case begins with, of one that has a warm start.
    """

    name: str
    solve: Callable[..., Any]
    edges: Callable[[Path], None] | None = None
    kind: str = "distance"
    own: bool = False
    past: Callable[[], Path] | None = None

    @property
    def exports(self) -> bool:
        """Whether there is a graph, or a model from files, to export."""
        return not self.own

    def start(self, folder: Path) -> Path:
        """Make the workspace in ``folder``, unless it is there; returns its path."""
        run = folder / "run.pf"
        if self.edges is not None and not run.exists():
            self.edges(folder / "edges.txt")
            pf.convert(folder / "edges.txt", run, kind=self.kind)
        return run

    def run(self, folder: Path, **limits: Any) -> Any:
        """Go on to the end, or to the limits, from whatever there is in ``folder``."""
        run = self.start(folder)
        return self.solve(run, workers=1, **limits)

    def export(self, folder: Path) -> None:
        """Write the answer to a file."""
        if self.exports:
            pf.export(folder / "run.pf", folder / "answer.csv")


def bits(result: Any) -> tuple[Any, ...]:
    """All that an answer is."""
    x = np.asarray(result.x)
    if x.ndim == 2:  # a table, which a workspace has by pair
        x = x[np.triu_indices(len(x), 1)]
    duals = result.duals
    held = sorted((int(key), np.asarray(value).tobytes()) for key, value in duals.items()) if isinstance(duals, dict) \
        else (duals.rows.edges.tobytes(), duals.values.tobytes())  # fmt: skip
    labels = getattr(result, "labels", None)
    made = None if labels is None else (labels.tobytes(), result.cost)
    return x.tobytes(), held, made, result.objective, result.lower_bound, result.n_iter, result.status


# -- edges ------------------------------------------------------------------------------------------------------------


def _pairs(seed: int, nodes: int, edges: int) -> tuple[np.random.Generator, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    u, v = np.triu_indices(nodes, 1)
    pick = np.sort(rng.choice(len(u), edges, replace=False))
    return rng, u[pick], v[pick]


def _writer(seed: int, nodes: int, edges: int, draw: Callable[[np.random.Generator, int], np.ndarray]):
    rng, u, v = _pairs(seed, nodes, edges)
    lines = [f"n{a} n{b} {value:.6f}\n" for a, b, value in zip(u, v, draw(rng, edges), strict=True)]
    return lambda path: path.write_text("".join(lines)) and None


def _signs(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.choice([-1.0, 1.0], count, p=[0.4, 0.6]) * rng.uniform(0.1, 1.0, count)


def _on_graph(problem: str, **options: Any) -> Callable[..., Any]:
    return lambda run, **limits: pf.solve(run, problem=problem, **options, **limits)


def _machine(rng: np.random.Generator) -> Callable[..., Any]:
    X, noise = rng.normal(size=(300, 3)), 0.7 * rng.normal(size=300)
    y = (X[:, 0] + noise > 0).astype(np.int8)
    program = Program(read_table(np.array_split(X, 4)), y, np.empty(0), np.ones(2), (1,), 10.0, True)
    return lambda run, **limits: fit_newton(program, tol=1e-10, workspace=run, **limits)


def _machine_from_files(rng: np.random.Generator, kind: str) -> Callable[..., Any]:
    """Three classes; rows and labels in arrays, or in one table that is unpacked."""
    X, noise = rng.normal(size=(120, 3)), 0.7 * rng.normal(size=120)
    y = np.digitize(X[:, 0] + noise, (-0.5, 0.5))

    @functools.cache
    def files() -> Files:
        place = shelf() / f"svm-{kind}"
        place.mkdir()
        if kind == "npy":
            np.save(place / "rows.npy", X)
            np.save(place / "labels.npy", y)
            return Files(str(place / "rows.npy"), str(place / "labels.npy"))
        columns = [X[:, 0], X[:, 1], np.array(["low", "mid", "high"])[y], X[:, 2]]
        pq.write_table(pa.table(columns, names=["a", "b", "class", "c"]), place / "rows.parquet")
        return Files(str(place / "rows.parquet"), label="class")

    return lambda run, **limits: fit_files(files(), run, C=10.0, fit_intercept=True, tol=1e-10, **limits)


def _metric(rng: np.random.Generator, method: str, tol: float) -> Callable[..., Any]:
    classes = rng.integers(0, 3, 30)
    points = rng.normal(size=(30, 3)) * [1.0, 3.0, 0.3] + np.outer(classes, [1.0, 0.0, 0.2])
    task = all_pairs_task(points, classes, 50.0, "identity", True, None)
    return lambda run, **limits: solve_task(task, method, tol, Limits(workspace=run, **limits))


def _transport(rng: np.random.Generator, marginals: str, weight: float) -> Callable[..., Any]:
    x, y, a, b = *rng.random((2, 40, 2)), rng.random(40), rng.random(40)
    data = TransportData(read_task(a / a.sum(), b / b.sum(), (x, y), "sqeuclidean"), marginals, weight)
    return lambda run, **limits: solve_data(data, 1e-9, Limits(workspace=run, **limits))


# -- what cases read besides their folder ------------------------------------------------------------------------------


@functools.cache
def shelf() -> Path:
    """A folder as long as the process lives."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    return Path(folder.name)


def _warm(name: str, solve: Callable[..., Any], edges: Callable[[Path], None], before: Callable[[Path], None]) -> Case:
    """A run that begins with what another one left, on a graph that has changed since."""

    @functools.cache
    def past() -> Path:
        place = shelf() / name
        place.mkdir()
        case = Case("past", solve, before, "signed")
        case.run(place)
        return place / "run.pf"

    def begun(run: Path, warm_start: Path | None = None, **limits: Any) -> Any:
        return solve(run, warm_start=warm_start or past(), **limits)

    return Case(name, begun, edges, "signed", past=past)


# -- cases ------------------------------------------------------------------------------------------------------------


def _cases() -> list[Case]:
    distances = _writer(1, 16, 50, lambda rng, count: rng.random(count))
    signed = _writer(2, 16, 60, _signs)
    groups = _writer(3, 14, 30, lambda rng, count: rng.uniform(0.5, 1.5, count))
    rng = np.random.default_rng(4)
    upper = np.triu(rng.uniform(0.2, 3.0, (9, 9)), 1)
    A, inside = rng.normal(size=(60, 6)), rng.uniform(0.2, 0.8, 6)
    b, center = A @ inside + 0.3 * rng.random(60), rng.uniform(0.05, 0.95, 6)
    balls = [pf.sets.ball(0.3 * a, 1.5) for a in rng.normal(size=(20, 4))]
    near, far = pf.objectives.quadratic(center), pf.objectives.quadratic(3 * rng.normal(size=4))
    linear = _on_graph("clustering", gamma=None, tol=1e-2)
    exact = _on_graph("clustering", gamma=None, tol=1e-3, ratio=1.0)
    return [
        Case("nearness", _on_graph("nearness", tol=1e-6), distances),
        Case("external", _on_graph("nearness", tol=1e-6, external=True), distances),
        Case("clustering", _on_graph("clustering", gamma=1.0, tol=1e-4), signed, "signed"),
        Case("complete", _on_graph("clustering", gamma=1.0, base=-0.4, tol=1e-3), groups, "signed"),
        Case("linear", linear, signed, "signed"),
        Case(
            "linear-external",
            _on_graph("clustering", gamma=None, tol=1e-3, ratio=1.0, external=True),
            signed,
            "signed",
        ),
        Case(
            "clustering-external",
            _on_graph("clustering", gamma=1.0, tol=1e-2, external=True),
            signed,
            "signed",
        ),
        Case("complete-linear", _on_graph("clustering", gamma=None, base=-0.4, tol=1e-2, ratio=1.0), groups, "signed"),
        _warm("warm", exact, signed, _writer(2, 16, 60, lambda rng, count: 1.3 * _signs(rng, count) + 0.1)),
        Case("table", lambda run, **limits: pf.metric_nearness(upper + upper.T, tol=1e-8, workspace=run, **limits)),
        Case(
            "rows",
            lambda run, **limits: pf.project_and_forget(near, (A, b), tol=1e-12, workspace=run, **limits),
            own=True,
        ),
        Case(
            "sets",
            lambda run, **limits: pf.project_onto_sets(far, balls, tol=1e-8, workspace=run, **limits),
            own=True,
        ),
        Case("svm", _machine(rng), own=True),
        Case("svm-npy", _machine_from_files(rng, "npy")),
        Case("svm-parquet", _machine_from_files(rng, "parquet")),
        Case("itml", _metric(rng, "newton", 1e-12), own=True),
        Case("itml-projections", _metric(rng, "project_and_forget", 1e-4), own=True),
        Case("transport", _transport(rng, "soft", 100.0), own=True),
        Case("transport-exact", _transport(rng, "exact", 0.02), own=True),
    ]


CASES = {case.name: case for case in _cases()}
