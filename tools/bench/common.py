"""What the benchmarks share: graphs, clocks, counts of a history, tables, and where a figure was measured.

Only public names of ooc_pf are used outside of functions, so that scripts built on this run with older checkouts too.
"""

import argparse
import contextlib
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import ooc_pf as pf

HERE = Path(__file__).parent
SEED = 0  # of generated data
PHASES = ("oracle", "sweep", "disk")
PACKAGES = (
    "ooc_pf",
    "numpy",
    "scipy",
    "numba",
    "igraph",
    "duckdb",
    "pyarrow",
    "scikit-learn",
    "clarabel",
    "pot",
    "regot",
    "bioimage-cpp",
    "highspy",
    "ortools",
    "osqp",
)

Graph = tuple[np.ndarray, np.ndarray, np.ndarray]


# -- graphs -----------------------------------------------------------------------------------------------------------


def read_edges(path: str | Path, *, kind: str = "signed", **options: Any) -> Graph:
    """Ends and values of a list of edges; the options are those of `pf.convert`."""
    from ooc_pf.storage.arrays import read_array
    from ooc_pf.storage.workspace import Workspace

    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run.pf"
        pf.convert(path, run, kind=kind, **options)
        edges = Workspace(run).edges
        u, v, value = (read_array(edges, name) for name in ("u", "v", "value"))
    return u, v, value


def signed_graph(args: argparse.Namespace) -> Graph:
    """The graph of a command line with `add_graph`."""
    if args.grid:
        return random_grid(args.grid)
    return read_edges(args.edges, duplicates=args.duplicates, columns=args.columns)


def add_graph(parser: argparse.ArgumentParser) -> None:
    """Options that name a signed graph."""
    parser.add_argument("edges", nargs="?")
    parser.add_argument("--duplicates", default="sign")
    parser.add_argument("--columns")
    parser.add_argument("--grid", type=int, help="no file: a grid of so many nodes a side with random signs")


def read_pairs(path: str | Path) -> tuple[np.ndarray, np.ndarray, int]:
    """Ends of a list of edges without weights, and how many nodes there are."""
    pairs = np.unique(np.sort(np.loadtxt(path, dtype=np.int64, comments="#")[:, :2], axis=1), axis=0)
    names, pairs = np.unique(pairs[pairs[:, 0] < pairs[:, 1]], return_inverse=True)
    u, v = pairs.reshape(-1, 2).T
    return u, v, len(names)


def random_grid(side: int) -> Graph:
    """A square grid with random signs and weights 1 to 5."""
    rng, node = np.random.default_rng(SEED), np.arange(side * side).reshape(side, side)
    u = np.concatenate((node[:, :-1].ravel(), node[:-1].ravel()))
    v = np.concatenate((node[:, 1:].ravel(), node[1:].ravel()))
    return u, v, np.where(rng.random(len(u)) < 0.35, -1.0, 1.0) * rng.integers(1, 6, len(u))


def signed_network(draws: int, nodes: int, *, camps: int = 3, wrong: float = 0.1, seed: int = SEED) -> Graph:
    """Camps of nodes, a few of which have many edges; some signs are wrong.

    Edges that were drawn twice count once, so there are fewer of them than ``draws``.
    """
    rng = np.random.default_rng(seed)
    ends = (nodes * rng.random((2, draws)) ** 2).astype(np.int64)
    low, high = np.minimum(*ends), np.maximum(*ends)
    u, v = np.divmod(np.unique((low * nodes + high)[low < high]), nodes)
    sign = np.where((u % camps == v % camps) ^ (rng.random(len(u)) < wrong), 1.0, -1.0)
    return u, v, sign


def collaboration(nodes: int, seed: int = SEED) -> tuple[np.ndarray, np.ndarray, int]:
    """Pairs of authors who wrote a paper together: teams of two to eight, of new authors and of neighbours of one.

    Like networks of collaboration it has cliques that overlap.
    """
    rng, count, pairs = np.random.default_rng(seed), 2, []
    while count < nodes:
        size, lead, new = min(1 + int(rng.geometric(0.5)), 8), int(rng.integers(count)), int(rng.integers(0, 3))
        old = np.clip(lead + rng.integers(-20, 21, max(0, size - new - 1)), 0, count - 1)
        team = np.unique(np.concatenate((old, [lead], np.arange(count, count + new))))
        count = max(count, int(team[-1]) + 1)
        pairs += [(a, b) for k, a in enumerate(team) for b in team[k + 1 :]]
    u, v = np.unique(np.array(pairs), axis=0).T
    return u, v, count


def ring_of_neighbours(nodes: int, seed: int = SEED) -> tuple[np.ndarray, np.ndarray, int]:
    """A ring in which a node has about 2.7 neighbours, most of them near: like a power grid (Watts and Strogatz)."""
    rng, u = np.random.default_rng(seed), np.arange(nodes)
    away = np.minimum(rng.geometric(0.3, nodes), nodes // 2)
    away[rng.random(nodes) < 0.02] = nodes // 3
    more = rng.random(nodes) < 0.35
    a, b = np.concatenate((u, u[more])), np.concatenate(((u + 1) % nodes, (u + 1 + away)[more] % nodes))
    pairs = np.unique(np.sort(np.column_stack((a, b))[a != b], axis=1), axis=0)
    return pairs[:, 0], pairs[:, 1], nodes


def write_network(path: Path, draws: int, nodes: int) -> None:
    """Write a `signed_network` as text."""
    np.savetxt(path, np.column_stack(signed_network(draws, nodes)), fmt="%d")


# -- clocks and counts ------------------------------------------------------------------------------------------------


class Stopwatch:
    """Seconds of the clock and of the processor since it was made."""

    def __init__(self) -> None:
        self._clock, self._processor = time.perf_counter(), time.process_time()

    def clock(self) -> float:
        return time.perf_counter() - self._clock

    def processor(self) -> float:
        return time.process_time() - self._processor

    def facts(self) -> dict[str, float]:
        return {"seconds": round(self.clock(), 3), "processor_seconds": round(self.processor(), 3)}


def peak_mb() -> int:
    """The largest resident memory of this process so far; unlike ru_maxrss it does not begin with the parent's."""
    found = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) >> 10


def peak_from_here() -> int:
    """Let `peak_mb` begin anew, after compiling; returns what is resident now."""
    with contextlib.suppress(OSError):  # not every container allows it; the peak then includes compiling
        Path("/proc/self/clear_refs").write_text("5")
    return peak_mb()


def total(history: Iterable[dict[str, Any]], name: str) -> int:
    """A count, summed over the records of a run."""
    return sum(record.get(name, 0) for record in history)


def seconds_by_phase(history: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Seconds of a run by kind of work."""
    return {
        f"{phase}_seconds": round(sum(record["seconds"].get(phase, 0.0) for record in history), 2) for phase in PHASES
    }


# -- scripts in processes of their own --------------------------------------------------------------------------------


def run_script(command: str, longest: float | None = None, checkout: Path | None = None) -> dict[str, Any]:
    """Run a script of this folder, with the package of a checkout if given; returns what it printed and took."""
    script, *arguments = command.split()
    environment = {**os.environ, "PYTHONPATH": str(checkout)} if checkout else None
    began, before = time.perf_counter(), os.times()
    try:
        done = subprocess.run(
            [sys.executable, str(HERE / script), *arguments],
            capture_output=True,
            text=True,
            timeout=longest,
            env=environment,
        )
        text, error = done.stdout, done.stderr.strip().splitlines()[-1:] if done.returncode else []
    except subprocess.TimeoutExpired:
        text, error = "", [f"not done after {longest} s"]
    after = os.times()
    worked = after.children_user + after.children_system - before.children_user - before.children_system
    took = {"seconds": round(time.perf_counter() - began, 1), "processor_seconds": round(worked, 1)}
    return {"command": command, **took, "error": error[0] if error else None, "printed": _parsed(text)}


def _parsed(text: str) -> Any:
    """What a script printed: an object if that is what it is, else lines."""
    try:
        return json.loads(text)
    except ValueError:
        return text.splitlines()


# -- what is printed and saved ----------------------------------------------------------------------------------------


def show(facts: dict[str, Any], as_json: bool) -> None:
    """Print facts, one a line, or as one object."""
    print(json.dumps(facts) if as_json else "\n".join(f"{name:22s} {value}" for name, value in facts.items()))


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Rows with the same names as a table of Markdown."""
    lines = ["| " + " | ".join(rows[0]) + " |", "|" + "---|" * len(rows[0])]
    lines += ["| " + " | ".join(_cell(value) for value in row.values()) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() and 1e3 <= abs(value) < 1e9 else f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def commit_of(checkout: Path = HERE) -> str | None:
    """The commit of a checkout, with a note if it was changed since."""
    found = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=checkout, capture_output=True, text=True)
    return found.stdout.strip() or None


def circumstances() -> dict[str, Any]:
    """Where and with what this runs."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "commit": commit_of(),
        "date": time.strftime("%Y-%m-%d"),
        "machine": {
            "system": platform.platform(),
            "cores": os.cpu_count(),
            "processor": _processor(),
            "load": os.getloadavg()[0],
        },
        "python": platform.python_version(),
        "versions": versions,
        "seed": SEED,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())


def save(path: Path, **found: Any) -> None:
    """Write what was found, with its circumstances, as JSON."""
    path.write_text(json.dumps({**circumstances(), **found}, indent=1) + "\n")
    print(f"written to {path}")
