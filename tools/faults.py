"""A campaign of faults against small workspaces: kills at random moments, and failures of each write in turn.

python tools/faults.py [--kills 300] [--every 1] [--seed 0]

After every fault the files must be absent, or complete and valid; what is resumed must end with the bits of a run that
was left alone. Prints what was done and exits with 1 at the first thing that is not so.
"""

import argparse
import contextlib
import multiprocessing
import os
import random
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import ooc_pf as pf
from ooc_pf.storage import arrays, files, vectors, workspace


def write_edges(path: Path, seed: int) -> None:
    """A signed graph as a text file."""
    rng = np.random.default_rng(seed)
    with open(path, "w") as file:
        for a in range(60):
            for b in sorted(set(rng.integers(a + 1, a + 12, 5).tolist())):
                file.write(f"n{a} n{b % 70} {rng.normal(0.2):.6f}\n")


def convert(edges: Path, run: Path) -> None:
    if not run.exists():
        pf.convert(edges, run, kind="signed", duplicates="sum")


def solve(edges: Path, run: Path) -> None:
    pf.solve(run, problem="clustering", tol=1e-5)


def export(edges: Path, run: Path) -> None:
    pf.export(run, run.with_name("answer.csv"))


STEPS = (convert, solve, export)
LIVES = (0.05, 2.5)  # seconds, least and most, after which a process is killed
# Imported once and not by every process that is killed: `import ooc_pf` alone loads none of it.
PRELOADED = ["ooc_pf.edgelist.convert", "ooc_pf.problems.clustering", "ooc_pf.workspaces", "ooc_pf.commands.export"]


def bits(run: Path) -> tuple[Any, ...]:
    """All that an answer is."""
    result = pf.open(run)
    return (result.x.tobytes(), result.objective, result.lower_bound, result.duals.values.tobytes(), result.n_iter)


def check_remains(run: Path) -> None:
    """What a fault left must be valid as far as it goes."""
    if run.exists() and workspace.Workspace(run).manifest["problem"] is not None:
        pf.verify(run, oracle="numba", workers=1)
    answer = run.with_name("answer.csv")
    if answer.exists() and answer.read_text().count("\n") < 2:
        raise AssertionError(f"{answer} is not complete")
    strays = {entry.name for entry in run.parent.iterdir()} - {"edges.txt", "run.pf", "answer.csv"}
    left_over = {name for name in strays if not name.endswith(".partial")}
    if left_over:
        raise AssertionError(f"files nobody asked for: {sorted(left_over)}")


# -- kills ----------------------------------------------------------------------------------------------------------


def run_all(edges: Path, run: Path) -> None:
    for step in STEPS:
        step(edges, run)


def kill_campaign(folder: Path, kills: int, seed: int) -> dict[str, int]:
    """Kill the chain of commands at random moments, so many times; start a new chain when one is through."""
    moments, done, through = random.Random(seed), 0, 0
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    expected = _undisturbed(folder / "undisturbed", seed)
    while done < kills:
        place = folder / f"chain{through}"
        edges, run = place / "edges.txt", place / "run.pf"
        if not place.exists():
            place.mkdir()
            write_edges(edges, seed)
        process = context.Process(target=run_all, args=(edges, run))
        process.start()
        process.join(moments.uniform(*LIVES))
        if process.exitcode is None:
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            done += 1
            check_remains(run)
        elif process.exitcode == 0:
            _require(bits(run) == expected, f"{run} ended with other bits")
            through += 1
        else:
            raise AssertionError(f"the chain failed by itself with code {process.exitcode}")
    return {"kills": done, "chains_completed": through}


def _undisturbed(place: Path, seed: int) -> tuple[Any, ...]:
    place.mkdir()
    write_edges(place / "edges.txt", seed)
    run_all(place / "edges.txt", place / "run.pf")
    return bits(place / "run.pf")


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise AssertionError(problem)


# -- writes that fail -----------------------------------------------------------------------------------------------

WRITES: list[tuple[Any, str]] = [
    (arrays.ArrayWriter, "append"),
    (arrays.ArrayWriter, "close"),
    (workspace, "flush"),
    (files, "flush_directory"),
    (workspace, "replace_file"),
    (workspace, "flush_directory"),
    (workspace.Workspace, "_append_history"),
    (vectors.Pool, "write"),
    (os, "replace"),
    (os, "rename"),
]


@contextlib.contextmanager
def failing(number: int | None) -> Iterator[Callable[[], int]]:
    """Let write ``number`` fail as on a full disk; gives the count of writes so far."""
    count, real = 0, [(owner, name, getattr(owner, name)) for owner, name in WRITES]

    def wrapped(function: Callable) -> Callable:
        def call(*args: Any, **more: Any) -> Any:
            nonlocal count
            count += 1
            if count - 1 == number:
                raise OSError(28, "No space left on device")
            return function(*args, **more)

        return call

    for owner, name, function in real:
        setattr(owner, name, wrapped(function))
    try:
        yield lambda: count
    finally:
        for owner, name, function in real:
            setattr(owner, name, function)


def write_campaign(folder: Path, every: int, seed: int) -> dict[str, int]:
    """Let every so manieth write of the whole chain fail once, each in a chain of its own."""
    with failing(None) as counted:
        expected = _undisturbed(folder / "undisturbed", seed)
        writes = counted()
    for number in range(0, writes, every):
        place = folder / f"write{number}"
        place.mkdir()
        edges, run = place / "edges.txt", place / "run.pf"
        write_edges(edges, seed)
        try:
            with failing(number):
                run_all(edges, run)
        except OSError:
            check_remains(run)
        run_all(edges, run)
        _require(bits(run) == expected, f"after write {number} failed the answer has other bits")
    return {"writes": writes, "failed": len(range(0, writes, every))}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        facts: dict[str, int] = {}
        for name, campaign, much in (("kill", kill_campaign, args.kills), ("write", write_campaign, args.every)):
            place = Path(folder) / name
            place.mkdir()
            facts |= campaign(place, much, args.seed)
    print(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in facts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
