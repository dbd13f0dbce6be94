"""A campaign of faults against small workspaces: kills at random moments, and failures of each write in turn.

python tools/faults.py [--kills 300] [--every 1] [--cases nearness,table] [--seed 0]

After every fault the files must be absent, or complete and valid; what is resumed must end with the bits of a run that
was left alone. Prints what was done and exits with 1 at the first thing that is not so.
"""

import argparse
import contextlib
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import small
from small import Case

import ooc_pf as pf
from ooc_pf.engine import place
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
        home = folder / f"chain{through}"
        edges, run = home / "edges.txt", home / "run.pf"
        if not home.exists():
            home.mkdir()
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


def _undisturbed(home: Path, seed: int) -> tuple[Any, ...]:
    home.mkdir()
    write_edges(home / "edges.txt", seed)
    run_all(home / "edges.txt", home / "run.pf")
    return bits(home / "run.pf")


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
    alone = threading.Lock()  # workers write side by side, and none may be passed over

    def wrapped(function: Callable) -> Callable:
        def call(*args: Any, **more: Any) -> Any:
            nonlocal count
            with alone:
                mine, count = count, count + 1
            if mine == number:
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


def write_campaign(folder: Path, every: int, case: Case) -> dict[str, int]:
    """Let every so manieth write of the chain of a case fail once, each in a chain of its own.

    Every iteration is committed, so that the number of writes does not depend on the clock.
    """
    if case.past is not None:
        case.past()  # what it begins with is there before
    worth, place.WORTH = place.WORTH, 0.0
    try:
        expected = _through(case, _new(folder / "undisturbed"))  # what is compiled on the way is written, too
        with failing(None) as counted:
            _require(_through(case, _new(folder / "counted")) == expected, f"{case.name}: other bits the second time")
            writes = counted()
        for number in range(0, writes, every):
            home = _new(folder / f"write{number}")
            try:
                with failing(number):
                    _through(case, home)
            except OSError:
                check_remains(home / "run.pf")
            else:
                raise AssertionError(f"{case.name}: nobody heard that write {number} failed")
            _require(_through(case, home) == expected, f"{case.name}: other bits after write {number} failed")
            shutil.rmtree(home)
    finally:
        place.WORTH = worth
    return {"writes": writes, "failed": len(range(0, writes, every))}


def _new(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _through(case: Case, folder: Path) -> tuple[Any, ...]:
    """Go through the chain of a case, from whatever there is; the bits of its answer."""
    result = case.run(folder)
    case.export(folder)
    return small.bits(result)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--cases", default=",".join(small.CASES), help="whose writes fail (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.kills:
            _tell("chain", kill_campaign(_new(Path(folder) / "kills"), args.kills, args.seed))
        for name in args.cases.split(","):
            _tell(name, write_campaign(_new(Path(folder) / name), args.every, small.CASES[name]))
    return 0


def _tell(name: str, facts: dict[str, int]) -> None:
    print(f"{name}: " + ", ".join(f"{what.replace('_', ' ')} {count}" for what, count in facts.items()), flush=True)


if __name__ == "__main__":
    sys.exit(main())
