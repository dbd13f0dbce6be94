"""All benchmarks in one go, with what is needed to judge them: machine, versions, seed and commit.

    python tools/bench/run.py --quick                 small versions, about five minutes, nothing to download
    python tools/bench/run.py --full --data FOLDER    those of README.md, with public edge lists and KEEL files
    python tools/bench/run.py --quick --only dense,svm

FOLDER has signed/, collab/, cc_lp/ and itml/ in it. With --before FOLDER, a checkout of an earlier commit, the full
version also compares with that. Each script runs in a process of its own, one after the other. What it printed, and its
seconds of the clock and of the processor, are written to a JSON file (--output), pictures to a folder of the same name,
and a table is printed. A script that fails, such as for want of an opponent (pip install 'ooc_pf[bench]'), is noted
with the reason. All scripts have fixed seeds.
"""

import argparse
import gzip
import json
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
from common import HERE, SEED, circumstances, run_script, write_network

LONGEST = 600  # seconds of a script in the quick version; the full one has as long as it takes

# GRAPH, SMALL and POINTS are made for the occasion; pictures go to OUTPUT.
QUICK = {
    "convert": "convert.py --rows 500000 --json",
    "nearness": "nearness.py GRAPH --tol 1e-4 --json",
    "clustering": "clustering.py GRAPH --gamma none --tol 1e-3 --json",
    "ratio": "ratio.py --grid 60 --tol 1e-4 --output OUTPUT",
    "cuts": "cuts.py SMALL --limit 20",
    "warm": "warm.py --grid 60",
    "compare": "compare.py --before ROOT --after ROOT --only small",
    "dense": "dense.py --sizes 100,200 --limit 10 --general 20",
    "paper nearness": "paper.py nearness --sizes 100,200 --curve 100 --output OUTPUT",
    "linear": "linear.py --rows 100000 --variables 100 --json",
    "svm": "svm.py --rows 50000 --noise 10",
    "itml": "itml.py POINTS --names blobs --splits 2",
    "transport line": "transport.py line --sizes 501,1001",
    "transport exact": "transport.py exact --sizes 512 --regs 10",
    "paper, transport": "paper_applications.py transport --sizes 501,1001 --as-paper 501",
    "paper, colours": "paper_applications.py colours --sizes 512",
    "commits": "commits.py 10000",
    "budget": "budget.py GRAPH --rounds 1",
    "scaling edges": "scaling.py edges --nodes 3000,10000 --output OUTPUT",
    "scaling budget": "scaling.py budget --nodes 10000 --memory none,120MB,90MB --output OUTPUT",
    "scaling workers": "scaling.py workers GRAPH --workers 1,2 --iterations 6 --output OUTPUT",
}
# As README.md has them.
ALPHA = "DATA/signed/soc-sign-bitcoinalpha.csv.gz"
WIKI = "DATA/signed/WikiElec.txt.gz"
SLASHDOT = "DATA/signed/soc-sign-Slashdot090221.txt.gz"
SMALL = " ".join(f"DATA/cc_lp/{name}A.txt" for name in ("Karate", "dolphins", "lesmis", "football", "jazz"))
FULL = {
    "convert": "convert.py --rows 20000000 --json",
    "nearness": f"nearness.py {WIKI} --tol 1e-4 --json",
    "ratio bitcoinalpha": f"ratio.py {ALPHA} --columns 1,2,3 --duplicates sum --output OUTPUT",
    "ratio WikiElec": f"ratio.py {WIKI} --output OUTPUT",
    "ratio Slashdot": f"ratio.py {SLASHDOT} --ratio 1.0015 --output OUTPUT",
    "ratio grid": "ratio.py --grid 200 --tol 1e-4 --output OUTPUT",
    "cuts": f"cuts.py {SMALL} --output OUTPUT",
    "linear program of CA-HepTh": "clustering.py DATA/collab/CA-HepTh.txt.gz --complete --gamma none --tol 1e-6 --json",
    "paper nearness": "paper.py nearness --instances 5 --output OUTPUT",
    "paper clustering": "paper.py clustering --data DATA --output OUTPUT",
    "warm": f"warm.py {WIKI}",
    "warm nearness": f"warm.py {WIKI} --problem nearness --tol 1e-6",
    "passes": f"passes.py {WIKI} --memory 200MB",
    "dense": "dense.py --sizes 100,200,300,500,1000 --limit 45 --general 100",
    "dense on disk": "dense.py --large 5000 --kinds I --memory 1GB --tol 1e-6",
    "linear": "linear.py --json",
    "svm": "svm.py",
    "itml": "itml.py DATA/itml --gammas 10,300 --ablation",
    "transport line": "transport.py line",
    "transport clouds": "transport.py clouds",
    "transport exact": "transport.py exact",
    "paper, transport": "paper_applications.py transport --as-paper 1001",
    "paper, colours": "paper_applications.py colours",
    "paper, itml": "paper_applications.py itml DATA",
    "paper, svm": "paper_applications.py svm",
    "commits": "commits.py 100000",
    "budget": f"budget.py {WIKI} --gamma 1",
    "scaling edges": "scaling.py edges --nodes 10000,30000,100000,300000 --output OUTPUT",
    "scaling budget": "scaling.py budget --nodes 100000 --memory none,800MB,400MB,200MB,100MB --output OUTPUT",
    "scaling workers": f"scaling.py workers {WIKI} --gamma 1 --tol 3e-2 --output OUTPUT",
}
BEFORE = "compare.py --before BEFORE --after ROOT --data DATA --output OUTPUT/compare.json"  # with --before


def make_points(folder: Path) -> None:
    """Two classes of points, as a KEEL file."""
    rng = np.random.default_rng(SEED)
    lines = [f"{x[0]:.4f},{x[1]:.4f},{x[2]:.4f},{k % 2}" for k, x in enumerate(rng.normal(size=(400, 3)))]
    with gzip.open(folder / "blobs.dat.gz", "wt") as file:
        file.write("@data\n" + "\n".join(lines) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--quick", action="store_true")
    size.add_argument("--full", action="store_true")
    parser.add_argument("--data", help="folder of public edge lists and KEEL files, for --full")
    parser.add_argument("--before", help="checkout of an earlier commit, for --full")
    parser.add_argument("--only", help="names of benchmarks, by commas")
    parser.add_argument("--output", type=Path, help="the JSON file (bench-quick.json, bench-full.json)")
    args = parser.parse_args()
    cases = QUICK if args.quick else FULL | ({"compare": BEFORE} if args.before else {})
    if args.full and args.data is None:
        parser.error("--full needs --data FOLDER")
    if args.only:
        cases = {name: cases[name] for name in args.only.split(",")}
    output = args.output or Path(f"bench-{'quick' if args.quick else 'full'}.json")
    output.with_suffix("").mkdir(parents=True, exist_ok=True)
    report = {**circumstances(), "results": {}}
    print(f"| benchmark | command | time | processor time | |\n|{'---|' * 5}")
    with tempfile.TemporaryDirectory() as folder:
        graph, small = Path(folder, "graph.txt"), Path(folder, "small.txt")
        write_network(graph, 12_000, 1500)
        write_network(small, 300, 60)
        make_points(Path(folder))
        places = {"GRAPH": graph, "SMALL": small, "POINTS": folder, "DATA": args.data, "OUTPUT": output.with_suffix("")}
        places |= {"ROOT": HERE.parents[1], "BEFORE": args.before}
        for name, command in cases.items():
            full = re.sub(r"\b[A-Z]{4,}\b", lambda word: str(places[word[0]]), command)
            found = {**run_script(full, LONGEST if args.quick else None), "command": command}
            report["results"][name] = found
            output.write_text(json.dumps(report, indent=1) + "\n")  # what there is, should the next one not end
            times = f"{found['seconds']} s | {found['processor_seconds']} s"
            print(f"| {name} | `{command}` | {times} | {found['error'] or 'done'} |", flush=True)
    print(f"\nwritten to {output}")
    return int(any(found["error"] for found in report["results"].values()))


if __name__ == "__main__":
    sys.exit(main())
