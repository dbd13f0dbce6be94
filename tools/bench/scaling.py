"""Time and memory against edges, against the budget, and against workers, as tables and pictures.

python tools/bench/scaling.py edges [--nodes 3000,10000,30000] [--memory none,100MB] [--iterations 4]
python tools/bench/scaling.py budget [--nodes 30000] [--memory none,400MB,200MB,100MB]
python tools/bench/scaling.py workers [EDGES] [--workers 1,2] [--tol 1e-2] [--gamma none] [--cluster] [--external]

edges and budget cluster a generated graph in groups of 64, laid out for disk, for a few iterations, each in a process
of its own (`tests/measure.py`). The peak is what the solve adds to the process. workers runs one list of signed edges,
or a generated one, on one, two, ... threads, with --cluster also on as many processes of a dask cluster on loopback,
and with --external laid out for disk. Neither budgets nor workers may change the answer, which is checked. With
--output FOLDER table and picture are saved.
"""

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common import HERE, Stopwatch, peak_from_here, peak_mb, save, seconds_by_phase, table, write_network
from plots import Panel, draw

import ooc_pf as pf
from ooc_pf.storage.memory import parse_memory

ROOT = HERE.parents[1]


def measure_graph(nodes: int, memory: str, args: argparse.Namespace) -> dict[str, Any]:
    """A few iterations on a generated graph, under a budget."""
    words = ["clustering", nodes, args.degree, memory, args.iterations]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.measure", *map(str, words), folder]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip().splitlines()[-1]}")
    facts = json.loads(done.stdout)
    return {
        "edges": facts["edges"],
        "memory allowed": "no limit" if memory == "none" else memory,
        "time, s": round(facts["seconds"], 2),
        "peak, MB": round(facts["peak"] / 1e6, 1),
        "state on disk, MB": round(facts["state"] / 1e6, 1),
        "read, MB": round(facts["read_bytes"] / 1e6, 1),
        "written, MB": round(facts["written_bytes"] / 1e6, 1),
        "rows": facts["rows"],
        "lower bound": repr(facts["lower_bound"]),
    }


def against_edges(args: argparse.Namespace) -> tuple[list[dict[str, Any]], list[Panel]]:
    """Larger and larger graphs, each with every budget; returns rows and panels."""
    sizes, budgets = [int(nodes) for nodes in args.nodes.split(",")], args.memory.split(",")
    rows = []
    for nodes in sizes:
        found = [_shown(measure_graph(nodes, memory, args)) for memory in budgets]
        _same(found, ("lower bound", "rows"))
        rows += found
    lines: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        lines.setdefault(f"memory: {row['memory allowed']}", []).append(row)
    return rows, _panels("edges", lines, "edges", log=True)


def against_budget(args: argparse.Namespace) -> tuple[list[dict[str, Any]], list[Panel]]:
    """One graph with smaller and smaller budgets; returns rows and panels."""
    rows = [_shown(measure_graph(int(args.nodes), memory, args)) for memory in args.memory.split(",")]
    _same(rows, ("lower bound", "rows"))
    limited = [row | {"MB": parse_memory(row["memory allowed"]) / 1e6} for row in rows if "B" in row["memory allowed"]]
    return rows, _panels("MB allowed", {f"{rows[0]['edges']:,} edges": limited}, "MB")


@contextlib.contextmanager
def cluster_of(workers: int) -> Iterator[Any]:
    """A client of so many worker processes, of one thread each."""
    from dask.distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as made,
        Client(made) as client,
    ):
        yield client


def measure_run(source: Path, **limits: Any) -> dict[str, Any]:
    """A run from the start, with seconds by kind of work."""
    peak_from_here()
    watch = Stopwatch()
    result = pf.correlation_clustering(source, restart=True, **limits)
    facts = {"time, s": round(watch.clock(), 2), "processor s": round(watch.processor(), 2)}
    phases = {name.replace("_seconds", ", s"): value for name, value in seconds_by_phase(result.history).items()}
    answer = {"lower bound": repr(result.lower_bound), "checksum of x": f"{zlib.crc32(result.x.tobytes()):08x}"}
    return {**facts, **phases, "peak, MB": peak_mb(), **answer}


def against_workers(args: argparse.Namespace) -> tuple[list[dict[str, Any]], list[Panel]]:
    """The same run on one, two, ... workers; returns rows and panels."""

    def stop(record: dict[str, Any]) -> bool:
        return args.iterations is not None and record["iteration"] >= args.iterations

    gamma = None if args.gamma == "none" else float(args.gamma)
    options = {"tol": args.tol, "gamma": gamma, "external": args.external or None, "callback": stop}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path, edges = Path(folder) / "run.pf", args.edges
        if edges is None:
            edges = Path(folder) / "graph.txt"
            write_network(edges, 100_000, 12_000)
        pf.convert(edges, path, kind="signed", duplicates="sign")
        measure_run(path, **options)  # compiles what there is to compile
        for workers in map(int, args.workers.split(",")):
            kinds = {"threads": contextlib.nullcontext()} | ({"cluster": cluster_of(workers)} if args.cluster else {})
            for kind, place in kinds.items():
                with place as client:
                    facts = measure_run(path, workers=workers, client=client, **options)
                rows.append(_shown({"workers": workers, "as": kind, **facts}))
    _same(rows, ("lower bound", "checksum of x"))
    return rows, _panels("workers", {"threads": [row for row in rows if row["as"] == "threads"]}, "workers")


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    print(row, flush=True)
    return row


def _same(rows: list[dict[str, Any]], names: tuple[str, ...]) -> None:
    for name in names:
        if len({row[name] for row in rows}) > 1:
            raise SystemExit(f"the answers differ: {name} {[row[name] for row in rows]}")


def _panels(label: str, lines: dict[str, list[dict[str, Any]]], across: str, log: bool = False) -> list[Panel]:
    """Time and memory over one column, a line for each group of rows."""
    return [
        Panel(
            label,
            name,
            {key: ([row[across] for row in rows], [row[name] for row in rows]) for key, rows in lines.items()},
            log_x=log,
            log_y=log,
        )
        for name in ("time, s", "peak, MB")
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, dest="kind")
    one = commands.add_parser("edges")
    one.add_argument("--nodes", default="3000,10000,30000", help="by commas")
    one.add_argument("--memory", default="none,100MB", help="budgets, by commas")
    one.set_defaults(run=against_edges)
    one = commands.add_parser("budget")
    one.add_argument("--nodes", default="30000")
    one.add_argument("--memory", default="none,400MB,200MB,100MB", help="by commas")
    one.set_defaults(run=against_budget)
    for one in commands.choices.values():
        one.add_argument("--degree", type=int, default=40)
        one.add_argument("--iterations", type=int, default=4)
    one = commands.add_parser("workers")
    one.add_argument("edges", nargs="?")
    one.add_argument("--workers", default="1,2")
    one.add_argument("--tol", type=float, default=1e-2)
    one.add_argument("--gamma", default="none")
    one.add_argument("--cluster", action="store_true")
    one.add_argument("--external", action="store_true")
    one.add_argument("--iterations", type=int, help="stop after so many")
    one.set_defaults(run=against_workers)
    for one in commands.choices.values():
        one.add_argument("--output", type=Path)
    args = parser.parse_args()
    rows, panels = args.run(args)
    print(f"\n{table(rows)}")
    if args.output:
        args.output.mkdir(parents=True, exist_ok=True)
        save(args.output / f"scaling-{args.kind}.json", rows=rows)
        draw(args.output / f"scaling-{args.kind}.svg", f"Time and memory against {args.kind}", panels)


if __name__ == "__main__":
    main()
