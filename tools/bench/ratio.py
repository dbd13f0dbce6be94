"""Clusters with a proven ratio over time, beside Leiden, GAEC and Kernighan-Lin, which prove nothing, in one run.

python tools/bench/ratio.py EDGES [--duplicates sign] [--columns A,B,VALUE] [--ratio 1.0015] [--max-time 120]
                                  [--opponents Leiden,GAEC] [--limit 600] [--output FOLDER] [--disk] [--memory 1GB]
python tools/bench/ratio.py --grid N

Prints seconds, cost, bound and ratio each time the ratio has become clearly better, then a table: each opponent with
its cost and time from arrays to labels, beside the cost and bound that ours had by then (ours uses all cores, so also
after as much processor time), when ours was as good, and the end of ours. With --grid there is no file: a square grid
of N x N nodes with random signs and weights 1 to 5. With --disk ours is laid out for disk, in a workspace, and
--memory limits what it may use; opponents have no limit. With --output table and curves are saved, as JSON and a
picture.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import opponents
from common import Graph, Stopwatch, add_graph, peak_from_here, peak_mb, random_grid, save, signed_graph, table, total

import ooc_pf as pf

KNOWN = {"cost": "cost", "bound_of_clusterings": "bound", "ratio": "ratio"}


def solve(graph: Graph | Path, **options: Any) -> tuple[pf.Result, dict[str, Any], list[dict[str, Any]]]:
    """Our clusters, what they took, and what was known of them on the way."""
    peak_from_here()
    watch, known = Stopwatch(), []
    shown = float("inf")

    def see(record: dict[str, Any]) -> None:
        nonlocal shown
        if "ratio" not in record:
            return
        known.append({**watch.facts(), **{name: record[field] for field, name in KNOWN.items()}})
        if record["ratio"] - 1.0 <= 0.7 * (shown - 1.0):
            shown = record["ratio"]
            values = "  ".join(f"{name} {record[field]:.8g}" for field, name in KNOWN.items())
            print(f"{watch.clock():8.1f} s  iteration {record['iteration']:4d}  {values}", flush=True)

    result = pf.correlation_clustering(graph, callback=see, **options)
    facts = watch.facts()
    end = {"cost": result.cost, "bound": result.lp_lower_bound, "ratio": result.certified_ratio}
    return result, {**facts, "peak_mb": peak_mb()}, [*known, {**facts, **end}]


def solve_on_disk(
    args: argparse.Namespace, options: dict[str, Any]
) -> tuple[pf.Result, dict[str, Any], list[dict[str, Any]]]:
    """The same from a workspace; with bytes read and written, and the size of the state."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run.pf"
        pf.convert(args.edges, run, kind="signed", duplicates=args.duplicates, columns=args.columns)
        result, facts, known = solve(run, external=True, memory=args.memory, **options)
        facts["state_mb"] = round(sum(file.stat().st_size for file in run.rglob("*") if file.is_file()) / 1e6)
        facts |= {name: total(result.history, name) for name in ("read_bytes", "written_bytes")}
        print(", ".join(f"{name} {value:,}" for name, value in facts.items()))
        return result, facts, known


def compile_kernels(disk: bool) -> None:
    """Solve a small problem of the kind, before the clock starts."""
    with tempfile.TemporaryDirectory() as folder:
        options = {"external": True, "workspace": Path(folder) / "run.pf"} if disk else {}
        pf.correlation_clustering(random_grid(8), tol=1e-6, max_iter=40, **options)


def by_then(known: list[dict[str, Any]], facts: dict[str, Any], clock: str) -> str:
    """The cost and the bound that ours had when another one was done, by one of the two clocks."""
    if facts[clock] is None:
        return ""
    found = [record for record in known if record[clock] <= facts[clock]]
    return f"{found[-1]['cost']:,.9g}, {found[-1]['bound']:,.9g}" if found else "none yet"


def row(name: str, facts: dict[str, Any], known: list[dict[str, Any]], proven: str) -> dict[str, Any]:
    """A line of the table."""
    end = {"cost": facts["cost"] or "not done", "time, s": facts["seconds"]}
    end |= {"processor time, s": facts["processor_seconds"], "peak, MB": facts["peak_mb"], "proven": proven}
    ours = {"our cost and bound by then": by_then(known, facts, "seconds")}
    ours |= {"after as much processor time": by_then(known, facts, "processor_seconds")}
    as_good = [record["seconds"] for record in known if facts["cost"] and record["cost"] <= facts["cost"]]
    return {"solver": name, **end, **ours, "ours was as good after, s": as_good[0] if as_good else None}


def draw_curves(path: Path, title: str, rows: list[dict[str, Any]], known: list[dict[str, Any]]) -> None:
    """The curves of ours, and a point for each opponent."""
    from plots import Panel, draw

    times = [record["seconds"] for record in known]
    lines = {f"our {name}": (times, [record[name] for record in known]) for name in ("cost", "bound")}
    points = {line["solver"]: (line["time, s"], line["cost"]) for line in rows[:-1] if isinstance(line["cost"], float)}
    panel = Panel("seconds", "cost of clusters", lines, points, log_x=True)
    draw(path, title, [panel])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_graph(parser)
    parser.add_argument("--ratio", type=float)
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--max-time", type=float)
    parser.add_argument("--opponents", default=",".join(opponents.OPPONENTS), help="by commas; 'none' for ours alone")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one opponent")
    parser.add_argument("--disk", action="store_true", help="laid out for disk, in a workspace")
    parser.add_argument("--memory", help="with --disk: how much ours may use")
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    if args.disk and args.grid:
        parser.error("--disk is for a file of edges")
    compile_kernels(args.disk)
    options = {"tol": args.tol, "ratio": args.ratio, "max_time": args.max_time}
    result, facts, known = solve_on_disk(args, options) if args.disk else solve(signed_graph(args), **options)
    graph, rows = signed_graph(args), []
    print(f"{len(graph[0]):,} edges")
    for name in args.opponents.split(",") if args.opponents != "none" else ():
        more = {"processor_seconds": facts["processor_seconds"]} if name == "repeated Leiden" else {}
        rows.append(row(name, opponents.measure(name, graph, args.limit, **more), known, "nothing"))
    proven = "optimal" if result.optimal else f"ratio {result.certified_ratio:.6f}"
    rows.append(row("ooc_pf", {"cost": result.cost, **facts}, known, proven))
    print(f"\n{table(rows)}\n\n{result.status}, {result.n_iter} iterations, bound {result.lp_lower_bound:.9g}")
    if args.output:
        args.output.mkdir(parents=True, exist_ok=True)
        name = Path(args.edges).name.split(".")[0] if args.edges else "grid"
        save(args.output / f"ratio-{name}.json", options={**vars(args), "output": None}, rows=rows, curve=known)
        draw_curves(args.output / f"ratio-{name}.svg", f"{name}, {len(graph[0]):,} edges", rows, known)


if __name__ == "__main__":
    main()
