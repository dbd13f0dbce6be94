"""Feed damaged workspaces and files of edges to the package, and see that it never answers wrongly or falls over.

python tools/fuzz.py [--seconds 60] [--seed 0] [--cases nearness,table] [--keep DIRECTORY]

Every mutation, see `mutate`, is opened, reported, verified, resumed and verified again, in a process of its own with a
time limit. So are files of edges, and runs that begin with a mutated one. Each step must end well or with one of the
package's errors. A run that goes on must come to the bits of the undisturbed run, or to an answer that `verify`
accepts; if it does not, `verify` must have refused it from the start. Prints what became of the mutations and exits
with 1 if there was a failure; a seed and a number repeat it.
"""

import argparse
import contextlib
import multiprocessing
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mutate import mutate_edges, mutate_workspace
from small import CASES, bits

import ooc_pf as pf
from ooc_pf.commands.explain import explain
from ooc_pf.commands.status import follow, read_status

OURS = (pf.InputError, pf.WorkspaceError, pf.BudgetError)
SECONDS = 100  # that a mutation may take
STOPS = (2, None)  # iterations after which a workspace is mutated; None: at the end


# -- in the process that may die --------------------------------------------------------------------------------------


def _attempt(steps: dict[str, Any], name: str, call: Any) -> Any:
    """Do one step and note how it ended."""
    try:
        result = call()
    except OURS as error:
        steps[name] = f"refused: {type(error).__name__}: {error}"
    except Exception:
        steps[name] = "fault: " + traceback.format_exc()
    else:
        steps[name] = "fine"
        return result


def try_workspace(name: str, folder: Path) -> dict[str, Any]:
    """Every step on a workspace; ``bits`` are those of the answer it went on to."""
    run, steps = folder / "run.pf", {}
    _attempt(steps, "open", lambda: pf.open(run).duals)
    _attempt(steps, "explain", lambda: explain(pf.open(run)))
    _attempt(steps, "status", lambda: read_status(run))
    _attempt(steps, "watch", lambda: list(follow(run, 0.0)))
    _attempt(steps, "report", lambda: pf.report(run))
    _attempt(steps, "page", lambda: pf.report(run, format="html"))
    _attempt(steps, "verify", lambda: pf.verify(run, oracle="numba", workers=1))
    case = CASES[name]
    again = case.solve if case.own else pf.resume
    result = _attempt(steps, "resume", lambda: again(run, workers=1, max_iter=100, max_time=SECONDS / 10))
    if result is not None:
        steps["bits"] = _attempt(steps, "answer", lambda: bits(result))
        _attempt(steps, "after", lambda: pf.verify(run, oracle="numba", workers=1))
    return steps


def try_edges(name: str, folder: Path) -> dict[str, Any]:
    """Convert a file of edges and solve what comes of it."""
    run, steps = folder / "run.pf", {}
    kind = CASES[name].kind
    options = {"kind": kind, "duplicates": "sum" if kind == "signed" else "mean"}
    skip = random.Random(str(folder)).choice(["error", "skip"])
    if _attempt(steps, "convert", lambda: pf.convert(folder / "edges.txt", run, bad_lines=skip, **options)):
        _attempt(steps, "resume", lambda: CASES[name].solve(run, workers=1, max_iter=5))
        _attempt(steps, "after", lambda: pf.verify(run, oracle="numba", workers=1))
    return steps


def try_past(name: str, folder: Path) -> dict[str, Any]:
    """Begin a run with what the mutated workspace of another one holds."""
    run, steps = folder / "run.pf", {}
    past = folder / "past" / "run.pf"
    _attempt(steps, "resume", lambda: CASES[name].solve(run, warm_start=past, workers=1, max_iter=100))
    if steps["resume"] == "fine":
        _attempt(steps, "after", lambda: pf.verify(run, oracle="numba", workers=1))
    return steps


TRIES = {"workspace": try_workspace, "edges": try_edges, "past": try_past}


def work(pipe: Any) -> None:
    """Do what comes through the pipe."""
    with contextlib.suppress(EOFError):
        while True:
            kind, name, folder = pipe.recv()
            pipe.send(TRIES[kind](name, folder))


# -- in the process that watches --------------------------------------------------------------------------------------


class Worker:
    """A process for one mutation after the other; a new one when it died or took too long."""

    def __init__(self) -> None:
        self._process: Any = None

    def ask(self, *what: Any) -> dict[str, Any]:
        """The steps, or how the process ended."""
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, other = context.Pipe()
            self._process = context.Process(target=work, args=(other,), daemon=True)
            self._process.start()
            other.close()
        self._pipe.send(what)
        try:
            if self._pipe.poll(SECONDS):
                return self._pipe.recv()
            found = {"process": f"fault: no answer within {SECONDS} seconds"}
        except EOFError:
            self._process.join()
            found = {"process": f"fault: it ended with code {self._process.exitcode}"}
        self.close()
        return found

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None


def judge(steps: dict[str, Any], expected: tuple[Any, ...] | None) -> tuple[str, str]:
    """(what became of it, why that is a failure or nothing)."""
    for name, how in steps.items():
        if isinstance(how, str) and how.startswith("fault"):
            return "failure", f"{name}: {how}"
    if steps.get("resume", steps.get("convert", "")).startswith("refused"):
        return "refused", ""
    if expected is not None and steps.get("bits") == expected and steps["after"] == "fine":
        return "same bits", ""
    if steps["after"] == "fine":
        return "another answer that verifies", ""
    if steps.get("verify", "fine") == "fine":
        return "failure", f"verify accepted it, and after resume: {steps['after']}"
    return "refused by verify alone", ""


def pipes(folder: str, names: list[str]) -> list[str]:
    """Those of the names that are named pipes, which cannot be copied."""
    return [name for name in names if (Path(folder) / name).is_fifo()]


class Campaign:
    """Undisturbed workspaces, and what became of their mutations."""

    def __init__(self, folder: Path, seed: int, cases: Sequence[str], keep: Path | None = None):
        self._folder, self._seed, self._cases, self._keep = folder, seed, cases, keep
        self._worker, self.counts, self.failures = Worker(), Counter(), []
        self._expected: dict[str, tuple[Any, ...]] = {}
        for name in cases:
            for stop in STOPS:
                place = folder / f"{name}-{stop}"
                place.mkdir()
                result = CASES[name].run(place, **({} if stop is None else {"max_iter": stop}))
            self._expected[name] = bits(result)

    def mutation(self, number: int) -> None:
        """Make one, and see."""
        dice, place = random.Random(f"{self._seed} {number}"), self._folder / "mutated"
        name = dice.choice(self._cases)
        if CASES[name].edges is not None and dice.random() < 0.15:
            kind, expected, what = "edges", None, "edges"
            place.mkdir()
            CASES[name].edges(place / "edges.txt")
            (place / "edges.txt").write_bytes(mutate_edges((place / "edges.txt").read_bytes(), dice))
        elif CASES[name].past is not None and dice.random() < 0.5:
            kind, expected = "past", None
            place.mkdir()
            CASES[name].start(place)
            shutil.copytree(CASES[name].past(), place / "past" / "run.pf")
            what = "past " + mutate_workspace(place / "past" / "run.pf", dice)
        else:
            kind, expected = "workspace", self._expected[name]
            shutil.copytree(self._folder / f"{name}-{dice.choice(STOPS)}", place)
            what = mutate_workspace(place / "run.pf", dice)
        if self._keep is not None:
            kept = self._keep / f"{self._seed}-{number}"
            shutil.rmtree(kept, ignore_errors=True)  # of an earlier campaign
            shutil.copytree(place, kept, symlinks=True, ignore=pipes)
        steps = self._worker.ask(kind, name, place)
        became, why = judge(steps, expected)
        self.counts[what, became] += 1
        if why:
            self.failures.append(f"seed {self._seed}, number {number}, {name}, {what}: {why}")
            print(self.failures[-1], file=sys.stderr, flush=True)
        shutil.rmtree(place)

    def close(self) -> None:
        self._worker.close()

    def table(self) -> str:
        """What became of the mutations, by what was changed."""
        kinds, ends = ({key[at] for key in self.counts} for at in (0, 1))
        lines = []
        for kind in sorted(kinds):
            found = [f"{self.counts[kind, end]} {end}" for end in sorted(ends) if self.counts[kind, end]]
            lines.append(f"{kind}: {', '.join(found)}")
        return "\n".join([*lines, f"{sum(self.counts.values())} mutations, {len(self.failures)} failures"])


def fuzz(
    folder: Path,
    *,
    seconds: float,
    seed: int,
    cases: Sequence[str] = tuple(CASES),
    first: int = 0,
    most: int | None = None,
    keep: Path | None = None,
) -> Campaign:
    """Mutations until the time is over, from number ``first`` on; returns the campaign."""
    campaign, number, end = Campaign(folder, seed, cases, keep), first, time.monotonic() + seconds
    try:
        while time.monotonic() < end and (most is None or number < first + most):
            campaign.mutation(number)
            number += 1
    finally:
        campaign.close()
    return campaign


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", default=",".join(CASES), help="(default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first mutation")
    parser.add_argument("--most", type=int, help="how many at most")
    parser.add_argument("--keep", type=Path, help="where the mutated workspaces are kept")
    args = parser.parse_args()
    if args.keep is not None:
        args.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        limits = {"seconds": args.seconds, "first": args.first, "most": args.most}
        campaign = fuzz(Path(folder), seed=args.seed, cases=args.cases.split(","), keep=args.keep, **limits)
    print(campaign.table())
    return 1 if campaign.failures else 0


if __name__ == "__main__":
    sys.exit(main())
