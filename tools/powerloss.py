"""Cut the power at every file operation of small runs, as far as that can be simulated, and see that nothing is lost.

python tools/powerloss.py [--cases nearness,table] [--every 1] [--depth 3] [--seed 0]

The operations of convert, solve and export are recorded. At each of them the files are rebuilt as a disk could have
them after a power cut, see `disk`. Each rebuilt workspace must be absent, if its making had not ended, or verify; it
must have every commit that had ended; and it must go on to the bits of the undisturbed run. Disks with the same
committed files go on to the end once. What else is on them, which nothing may depend on, counts by the first few parts
of its names: for each such difference the run goes on for one iteration, to the same bits and the same names as without
it. Prints what was done and exits with 1 at the first thing that is not so.
"""

import argparse
import hashlib
import json
import random
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from disk import Cut, Disk, build, real_tree, recording
from small import CASES, Case, bits

import ooc_pf as pf
from ooc_pf.storage.manifest import NUMBERED
from ooc_pf.storage.workspace import Workspace

DEPTH = 3  # run.pf/gen/000004.zarr
STATES = ("synced", "names", "data", "all", "random")


Tree = dict[str, bytes | None]


def committed_part(tree: Tree) -> Tree:
    """The files that a manifest leads to; everything else is what nobody may depend on."""
    held = tree.get("run.pf/manifest.json")
    if not held:
        return {name: content for name, content in tree.items() if name in ("edges.txt", "answer.csv")}
    manifest = json.loads(held)
    groups = [f"run.pf/{folder}/{manifest[entry]:06d}.zarr" for entry, folder in NUMBERED.items() if manifest[entry]]
    groups += ["run.pf/edges.zarr"] + (["run.pf/graph.zarr"] if manifest["problem"] else [])
    whole = {"edges.txt", "answer.csv", "run.pf", "run.pf/manifest.json", "run.pf/rows.npy"}
    whole |= {each for group in groups for each in (group, group.rpartition("/")[0])}
    found = {
        name: content
        for name, content in tree.items()
        if name in whole or name.startswith(tuple(f"{group}/" for group in groups))
    }
    history = tree.get("run.pf/history.jsonl")
    if history:
        found["run.pf/history.jsonl"] = history[: manifest["history_bytes"]]
    return found


def fingerprint(tree: Tree, part: Tree, depth: int) -> tuple[str, str]:
    """(Of the committed files with their content, of the others by the first parts of their names)."""
    others = (name for name, content in tree.items() if part.get(name, ...) != content)
    names = sorted({("/".join(name.split("/")[:depth]), name.count("/") >= depth) for name in others})
    committed, rest = (hashlib.sha256(repr(each).encode()).hexdigest() for each in (sorted(part.items()), names))
    return committed, rest


@dataclass
class Walk:
    """One case, recorded, and what every power cut has to lead to."""

    case: Case
    disk: Disk
    expected: tuple[Any, ...]
    answer: bytes | None
    depth: int
    known: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    seen: set[tuple[str, str]] = field(default_factory=set)
    cuts: int = 0

    @classmethod
    def record(cls, case: Case, folder: Path, depth: int = DEPTH) -> "Walk":
        """Run a case in ``folder`` and record it."""
        folder.mkdir()
        if case.edges is not None:
            case.edges(folder / "edges.txt")
        if case.past is not None:
            case.past()  # what it begins with is there before
        disk = Disk(folder)
        with recording(disk):
            case.start(folder)
            result = case.run(folder)
            if case.exports:
                case.export(folder)
                disk.mark({"exported": True})
        found, there = Cut(disk.operations, "all").tree(disk.root), real_tree(folder)
        differ = sorted(name for name in found.keys() | there.keys() if found.get(name) != there.get(name))
        _require(not differ, f"{case.name}: the record is not complete, {differ[:3]} differ")
        return cls(case, disk, bits(result), there.get("answer.csv"), depth)

    def check(self, cut: Cut, folder: Path) -> None:
        """Rebuild the files after a power cut and go on from there."""
        tree, what = cut.tree(self.disk.root), f"{self.case.name}, power cut at {cut.at}, {cut.state}"
        self.cuts += 1
        self._check_kept(tree, cut, what)
        part = committed_part(tree)
        key = fingerprint(tree, part, self.depth)
        if key in self.seen:
            return
        self.seen.add(key)
        place = folder / f"{self.case.name}{len(self.seen)}"
        try:
            if key[0] not in self.known:
                self.known[key[0]] = self._go_on(part, place)
            _require(self._step(tree, place) == self.known[key[0]], "it went on to other bits, or left other files")
        except Exception as error:
            raise AssertionError(f"{what}: {type(error).__name__}: {error}; see {place}") from error

    def _go_on(self, part: Tree, place: Path) -> tuple[Any, ...]:
        """Go on from the committed files alone: to the end, and then again for one iteration, which is returned."""
        build(part, place)
        if (place / "run.pf").exists() and Workspace(place / "run.pf").manifest["problem"] is not None:
            pf.verify(place / "run.pf", oracle="numba", workers=1)
        result = self.case.run(place)
        pf.verify(place / "run.pf", oracle="numba", workers=1)
        self.case.export(place)
        _require(bits(result) == self.expected, "it went on to other bits")
        _remove(place)
        return self._step(part, place)

    def _step(self, tree: Tree, place: Path) -> tuple[Any, ...]:
        """Go on for one iteration; the bits, and the names of all files unless nothing was committed."""
        build(tree, place)
        result = self.case.run(place, max_iter=1)
        self.case.export(place)
        there = real_tree(place)
        same = there["run.pf/manifest.json"] == tree.get("run.pf/manifest.json")
        found = bits(result), None if same else sorted(there)
        strays = {entry.name for entry in place.iterdir()} - {"edges.txt", "run.pf", "answer.csv"}
        _require(not strays, f"there is {strays}")
        _remove(place)
        return found

    def _check_kept(self, tree: Tree, cut: Cut, what: str) -> None:
        """What had ended must be there, and an answer complete or not at all."""
        held, manifest = tree.get("run.pf/manifest.json"), {}
        if "run.pf" in tree:
            manifest = json.loads(held or "null") or {}
            _require("generation" in manifest, f"{what}: a workspace without a manifest")
        for operation, mark in self.disk.marks:
            if operation > cut.at:
                break
            if "exported" in mark:
                _require("answer.csv" in tree, f"{what}: the export is lost")
            else:
                kept = [manifest.get(name, -1) >= mark[name] for name in ("generation", "iteration")]
                _require(all(kept), f"{what}: iteration {mark['iteration']} had been committed and is lost")
        if "answer.csv" in tree:
            _require(tree["answer.csv"] == self.answer, f"{what}: the export is not complete")


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise AssertionError(problem)


def _remove(place: Path) -> None:
    for entry in place.iterdir():
        if entry.is_dir():
            _remove(entry)
        else:
            entry.unlink()
    place.rmdir()


def walk(
    case: Case,
    folder: Path,
    *,
    every: int = 1,
    depth: int = DEPTH,
    most: int | None = None,
    seed: int = 0,
    states: tuple[str, ...] = STATES,
) -> dict[str, int]:
    """Cut the power at every so manieth operation of a case, in each of the states.

    With ``most``, at so many of them that are drawn, each in one of the states.
    """
    found, dice = Walk.record(case, folder / case.name, depth), random.Random(f"{seed} {case.name}")
    points: Sequence[int] = range(1, found.disk.operations + 1, every)
    if most is not None:
        points = sorted(dice.sample(points, min(most, len(points))))
    for at in points:
        for state in states if most is None else dice.sample(states, 1):
            found.check(Cut(at, state, seed), folder)
    return {
        "operations": found.disk.operations,
        "points": len(points),
        "cuts": found.cuts,
        "disks": len(found.seen),
        "commits": len(found.known),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--depth", type=int, default=DEPTH, help="parts of the names of what is left over that count")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    for name in args.cases.split(","):
        with tempfile.TemporaryDirectory() as folder:
            facts = walk(CASES[name], Path(folder), every=args.every, depth=args.depth, seed=args.seed)
        print(f"{name}: " + ", ".join(f"{what} {count}" for what, count in facts.items()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
