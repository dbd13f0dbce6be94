"""The command ``ooc-pf``. Answers go to stdout, progress and errors to stderr.

Each command imports what it needs when it runs, so that ``--help`` answers at once.

Exit codes: 0 done and converged, 1 failed, 2 wrong usage, 3 stopped at a limit and resumable, 130 interrupted after a
commit.
"""

import argparse
import json
import shlex
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..edgelist.choices import BAD_LINES, KINDS, POLICIES
from .formats import FORMATS

if TYPE_CHECKING:
    from ..engine.result import Result

# To be replaced by `sorted(workspaces.FAMILIES)` as soon as that table can be read without loading the solvers; until
# then a test compares the two.
PROBLEMS = ("clustering", "nearness")
EXIT = {"converged": 0, "iteration_limit": 3, "time_limit": 3, "callback": 3, "interrupted": 130}


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    try:
        args = _parser().parse_args(argv)
        return args.run(args)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except (ValueError, RuntimeError, MemoryError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ooc-pf", description="Solve convex problems with more constraints than anyone can list, on disk."
    )
    package = sys.modules["ooc_pf"]  # above this room, and loaded whenever this runs
    parser.add_argument("--version", action="version", version=f"%(prog)s {package.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Any, text: str, *, workspace: bool = True) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(run=run)
        if workspace:
            sub.add_argument("workspace", metavar="WORKSPACE", help="directory of the workspace")
        sub.add_argument("--json", action="store_true", help="print one JSON object instead of text")
        return sub

    sub = command("convert", _convert, "make a workspace from an edge list", workspace=False)
    sub.add_argument("source", metavar="SOURCE", help="edge list: text, CSV, Matrix Market (also .gz), or Parquet")
    sub.add_argument("workspace", metavar="WORKSPACE", help="directory to make; must not exist")
    sub.add_argument("--columns", metavar="A,B[,VALUE]", help="names in the header, or positions from 1")
    sub.add_argument("--kind", choices=KINDS, default="distance", help="what the value is (default: %(default)s)")
    sub.add_argument("--duplicates", choices=POLICIES, help="rule for repeated pairs (default: mean; sum if signed)")
    sub.add_argument("--bad-lines", choices=BAD_LINES, default="error", help="stop at a bad line, or skip it")
    sub.add_argument("--memory", default="1GB", metavar="SIZE", help="most memory to use (default: %(default)s)")
    sub.add_argument("--quiet", action="store_true", help="no progress bar")

    sub = command("solve", _solve, "solve a problem on a workspace, continuing what is there")
    sub.add_argument("--problem", choices=PROBLEMS, default="nearness")
    sub.add_argument("--oracle", choices=("numba", "igraph"), default="numba", help="engine that finds violated cycles")
    sub.add_argument("--seed", type=int, default=0)
    sub.add_argument("--external", action=argparse.BooleanOptionalAction, default=None,
                     help="lay the graph out for disk, not memory (default: above four million edges)")  # fmt: skip
    sub.add_argument("--restart", action="store_true", help="discard the progress in the workspace")
    sub.add_argument("--tol", type=float, default=argparse.SUPPRESS,
                     help="relative gap and violation to reach (nearness 1e-6, on complete graphs 1e-10; clustering "
                          "1e-2)")  # fmt: skip
    sub.add_argument("--gamma", type=_gamma, default=argparse.SUPPRESS, metavar="NUMBER|none",
                     help="clustering: linear against quadratic term (1); none: the linear program")  # fmt: skip
    sub.add_argument("--base", type=float, default=argparse.SUPPRESS, metavar="WEIGHT",
                     help="clustering: weight of every pair not listed, not positive (they do not count)")  # fmt: skip
    _add_limits(sub)

    sub = command("resume", _resume, "go on with the run a workspace holds")
    sub.add_argument("--tol", type=float, help="go on to another tolerance")
    _add_limits(sub)

    command("status", _status, "say what a workspace holds and how far it is")

    sub = command("verify", _verify, "recompute everything a workspace claims")
    sub.add_argument("--oracle", choices=("igraph", "numba"), default="igraph", help="engine of the complete search")
    sub.add_argument("--workers", type=int)
    sub.add_argument("--memory", help="budget, like 500MB or 2GiB")

    sub = command("report", _report, "describe a run in Markdown: certificate, stages, iterations")
    sub.add_argument("--output", metavar="FILE", help="write it here instead of to stdout")

    sub = command("export", _export, "write the answer to a csv, parquet or npz file")
    sub.add_argument("target", metavar="FILE")
    sub.add_argument("--format", choices=FORMATS)
    sub.add_argument("--clusters", action="store_true", help="write the cluster of each node instead of the edges")
    sub.add_argument("--memory", help="budget, like 500MB or 2GiB")

    sub = command("example", _example, "make a small graph, solve it and explain the answer", workspace=False)
    sub.add_argument("--keep", metavar="DIR", help="keep the edge list and the workspace in this new directory")
    return parser


def _gamma(text: str) -> float | None:
    return None if text.lower() == "none" else float(text)


def _add_limits(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--max-iter", type=int, help="stop after so many iterations of this call")
    sub.add_argument("--max-time", type=float, help="stop after so many seconds")
    sub.add_argument("--memory", help="budget, like 500MB or 2GiB")
    sub.add_argument("--workers", type=int, help="threads or processes (one a core)")
    sub.add_argument("--scheduler", metavar="ADDRESS", help="dask scheduler whose workers see the workspace")
    sub.add_argument("--quiet", action="store_true", help="no progress on stderr")


def _limits(args: argparse.Namespace) -> dict[str, Any]:
    names = ("max_iter", "max_time", "memory", "workers")
    return {**{name: getattr(args, name) for name in names}, "progress": not args.quiet,
            "client": args.scheduler}  # fmt: skip


def _say(args: argparse.Namespace, facts: dict[str, Any], text: str) -> None:
    print(json.dumps(facts, allow_nan=False) if args.json else text)


# -- commands -------------------------------------------------------------------------------------------------------


def _convert(args: argparse.Namespace) -> int:
    from ..edgelist.convert import convert, describe

    report = convert(
        args.source, args.workspace, columns=args.columns, kind=args.kind, duplicates=args.duplicates,
        bad_lines=args.bad_lines, memory=args.memory, progress=not args.quiet,
    )  # fmt: skip
    _say(args, report, describe(report))
    return 0


def _solve(args: argparse.Namespace) -> int:
    from .. import workspaces

    options = {name: getattr(args, name) for name in ("problem", "oracle", "seed", "restart", "external")}
    options |= {name: value for name, value in vars(args).items() if name in ("tol", "gamma", "base")}
    return _finish(args, workspaces.solve(args.workspace, **options, **_limits(args)))


def _resume(args: argparse.Namespace) -> int:
    from .. import workspaces

    return _finish(args, workspaces.resume(args.workspace, tol=args.tol, **_limits(args)))


def _finish(args: argparse.Namespace, result: "Result") -> int:
    text = explain(result)
    if not result.converged:
        text += f"\ncontinue with: ooc-pf resume {shlex.quote(str(result.workspace))}"
    _say(args, result.summary(), text)
    return EXIT[result.status]


def explain(result: "Result") -> str:
    """The certificate in words."""
    import numpy as np

    state = "solved to the tolerance asked for" if result.converged else f"stopped ({result.status.replace('_', ' ')})"
    violation = f"{result.violation:.2e}" if np.isfinite(result.violation) else "not checked yet"
    clusters = []
    if getattr(result, "labels", None) is not None:
        ratio = "none yet" if result.certified_ratio is None else f"{result.certified_ratio:.4f}"
        clusters = [
            f"  clusters     {len(np.unique(result.labels))}   of cost {result.cost:.10g}; none can cost less than "
            f"{result.lp_lower_bound:.10g}",
            f"  ratio        {ratio}   certified: cost of the clusters over that bound",
        ]
    return "\n".join(
        [
            f"{state} after {result.n_iter} iterations",
            f"  objective    {result.objective:.10g}   of an answer that satisfies every constraint",
            f"  lower bound  {result.lower_bound:.10g}   proven: no answer can do better",
            f"  gap          {result.gap:.2e}   so the answer is within {100 * max(result.gap, 0):.2g} % of the best",
            f"  violation    {violation}   largest at the iterate before it was repaired",
            f"  constraints  {result.n_active} remembered at the end, all others implied",
            *clusters,
        ]
    )


def _status(args: argparse.Namespace) -> int:
    from ..engine.result import KEYED
    from ..storage.workspace import Workspace
    from .report import size_of

    place = Workspace(args.workspace)
    manifest = place.manifest
    graph, problem = manifest["graph"], manifest["problem"]
    facts = {
        "workspace": str(place.name),
        "kind": graph["kind"],
        "nodes": graph["nodes"],
        "edges": graph["edges"],
        "problem": problem and problem["name"],
        "options": problem and problem["options"],
        **{
            name: manifest.get(name) for name in ("status", "iteration", "objective", "lower_bound", "n_active", "plan")
        },
    }
    keyed = graph["kind"] in KEYED
    lines = [f"{place.name}: {size_of(graph)}, kind {graph['kind']}"]
    if problem is None:
        lines.append(f"not solved yet; start with: {'Python' if keyed else f'ooc-pf solve {place.name}'}")
    else:
        running = manifest["status"] == "running"
        status = "running, or stopped without notice" if running else manifest["status"]
        lines.append(
            f"{problem['name']}: {status}, iteration {manifest['iteration']}, stage {manifest['plan']['stage']}"
        )
        lines.append(f"lower bound {manifest['lower_bound']:.10g}, {manifest['n_active']} constraints remembered")
        if manifest["objective"] is not None:
            point = "the last point" if keyed else "the best feasible point"
            lines.append(f"objective of {point} {manifest['objective']:.10g}")
    _say(args, facts, "\n".join(lines))
    return 0


def _verify(args: argparse.Namespace) -> int:
    from .. import workspaces
    from ..engine.parallel import count_workers

    workers = count_workers(args.workers)
    report = workspaces.verify(args.workspace, oracle=args.oracle, workers=workers, memory=args.memory)
    facts = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in report.items())
    _say(args, {"verified": True, **report}, f"verified: {facts}")
    return 0


def _report(args: argparse.Namespace) -> int:
    from .report import report

    text = report(args.workspace)
    if args.output is None:
        _say(args, {"report": text}, text.rstrip())
        return 0
    Path(args.output).write_text(text, encoding="utf-8")
    _say(args, {"file": args.output}, f"wrote {args.output}")
    return 0


def _export(args: argparse.Namespace) -> int:
    from .export import export

    rows = export(args.workspace, args.target, format=args.format, clusters=args.clusters, memory=args.memory)
    what = "nodes" if args.clusters else "edges"
    _say(args, {"file": args.target, what: rows}, f"wrote {rows} {what} to {args.target}")
    return 0


def _example(args: argparse.Namespace) -> int:
    if args.keep is None:
        with tempfile.TemporaryDirectory() as folder:
            return _run_example(args, Path(folder))
    folder = Path(args.keep)
    folder.mkdir(parents=True)
    return _run_example(args, folder)


def _run_example(args: argparse.Namespace, folder: Path) -> int:
    """Towns with roads between neighbours, whose surveyed lengths contradict each other."""
    import numpy as np

    from .. import workspaces
    from ..edgelist.convert import convert

    rng = np.random.default_rng(7)
    towns = rng.random((400, 2))
    between = np.linalg.norm(towns[:, None] - towns[None], axis=2)
    near = np.argsort(between, axis=1)[:, 1:9]
    pairs = {(min(a, b), max(a, b)) for a, row in enumerate(near) for b in row}
    roads = folder / "roads.txt"
    with open(roads, "w", encoding="utf-8") as file:
        file.write("# town town surveyed-length\n")
        for a, b in sorted(pairs):
            file.write(f"town{a} town{b} {between[a, b] * rng.uniform(0.5, 1.5):.6f}\n")
    report = convert(roads, folder / "roads.pf")
    result = workspaces.solve(folder / "roads.pf", tol=1e-8)
    checked = workspaces.verify(folder / "roads.pf", oracle="numba")
    text = (
        f"{report['nodes']} towns, {report['edges']} roads with surveyed lengths, many longer than a detour.\n"
        "The nearest lengths without such contradictions:\n"
        f"{explain(result)}\n"
        f"checked again from the files: largest violation of the answer {checked['violation_of_x']:.1e}"
    )
    _say(args, result.summary(), text)
    return EXIT[result.status]
