"""Two checkouts of the package beside each other: the same runs in turn, each in a process of its own.

python tools/bench/compare.py --before FOLDER --after FOLDER --data FOLDER [--only slashdot,wiki] [--rounds 1]
                              [--output FILE.json]

git worktree add /tmp/before 0be806c       makes a checkout of an earlier commit

Clustering is of the quadratic program with gamma = 1, on disk; nearness is of a full table, in memory. The scripts are
those of this folder, the package is that of the checkout. So that compiling is not counted, small problems are solved
first, once with each checkout and then at the start of every process. With several rounds the medians are shown.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import PHASES, commit_of, run_script, save, table, write_network

SPARSE = "clustering.py DATA/signed/{} --gamma 1 --tol 1e-2 --json"
COMPLETE = "clustering.py DATA/collab/{}.txt.gz --wang --gamma 1 --tol 1e-3 --json"
DENSE = "dense.py --alone --kinds I --sizes {}"
CASES = {
    "bitcoinalpha": SPARSE.format("soc-sign-bitcoinalpha.csv.gz --columns from,to,feature --duplicates sum"),
    "wiki": SPARSE.format("WikiElec.txt.gz"),
    "slashdot": SPARSE.format("soc-sign-Slashdot090221.txt.gz"),
    "power": COMPLETE.format("power"),
    "CA-GrQc": COMPLETE.format("CA-GrQc"),
    "CA-HepTh": COMPLETE.format("CA-HepTh"),
    "dense 1000": DENSE.format(1000),
    "dense 300": DENSE.format(300),
    "small": "clustering.py SMALL --gamma 1 --tol 1e-2 --json",
    "small complete": "clustering.py SMALL --wang --gamma 1 --tol 1e-3 --json",
    "dense 100": DENSE.format(100),
}
WARM_UP = ("small", "small complete", "dense 100")
USUAL = [name for name in CASES if name not in (*WARM_UP, "dense 300")]
SHOWN = {
    "processor time, s": "processor_seconds",
    "clock, s": "seconds",
    **{f"{phase}, s": f"{phase}_seconds" for phase in PHASES},
    "peak, MB": "peak_mb",
    "gap": "gap",
    "cost": "cost",
    "certified ratio": "certified_ratio",
}


def check_package(checkout: Path) -> None:
    """Make sure that the package of a checkout is the one that its runs import."""
    code = "import ooc_pf; print(ooc_pf.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True).stdout.strip()
    if Path(found) != checkout / "ooc_pf" / "__init__.py":
        raise SystemExit(f"with {checkout} the package is {found or 'not found'}")


def measure(command: str, checkout: Path) -> dict[str, Any]:
    """What a run says of itself."""
    found = run_script(command, checkout=checkout)
    if found["error"]:
        raise SystemExit(f"{command} with {checkout}: {found['error']}")
    return found["printed"]


def medians(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The figures that are shown, over rounds."""
    known = {label: [run[name] for run in runs if run.get(name) is not None] for label, name in SHOWN.items()}
    return {label: statistics.median(values) if values else None for label, values in known.items()}


def rows(name: str, before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Three lines of the table: before, after, and the one over the other."""
    old, new = medians(before), medians(after)
    over = {label: round(new[label] / old[label], 3) if new[label] and old[label] else None for label in SHOWN}
    lines = (("before", old), ("after", new), ("after / before", over | {"gap": None}))
    return [{"benchmark": name, "": label, **figures} for label, figures in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True)
    parser.add_argument("--after", type=Path, required=True)
    parser.add_argument("--data", type=Path, help="folder of public edge lists, with signed/ and collab/ in it")
    parser.add_argument("--only", default=",".join(USUAL), help=f"of {', '.join(CASES)}; by commas")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    checkouts = {"before": args.before.resolve(), "after": args.after.resolve()}
    for checkout in checkouts.values():
        check_package(checkout)
    commits = {label: commit_of(checkout) for label, checkout in checkouts.items()}
    lines, raw = [], {}
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small.txt"
        write_network(small, 4000, 600)
        places = {"DATA": str(args.data), "SMALL": str(small)}
        commands = {name: re.sub("DATA|SMALL", lambda word: places[word[0]], case) for name, case in CASES.items()}
        for name in WARM_UP:
            for checkout in checkouts.values():
                measure(commands[name], checkout)
        for name in args.only.split(","):
            runs: dict[str, list[dict[str, Any]]] = {label: [] for label in checkouts}
            for _ in range(args.rounds):
                for label, checkout in checkouts.items():
                    runs[label].append(measure(commands[name], checkout))
            lines += rows(name, runs["before"], runs["after"])
            raw[name] = runs
            print(json.dumps(lines[-1]), flush=True)
    print(f"\nbefore: {commits['before']}, after: {commits['after']}\n\n{table(lines)}")
    if args.output:
        save(args.output, commits=commits, rows=lines, runs=raw)


if __name__ == "__main__":
    main()
