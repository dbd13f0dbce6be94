"""The command ``ooc-pf``. Answers go to stdout, progress and errors to stderr.

Each command imports what it needs when it runs, so that ``--help`` answers at once.

Exit codes: 0 done and converged, 1 failed, 2 wrong usage, 3 stopped at a limit and resumable, 130 interrupted after a
commit.
"""

import argparse
import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..edgelist.choices import BAD_LINES, KINDS, POLICIES
from ..errors import InputError
from ..workspaces import problems
from . import svm
from .formats import FORMATS
from .parser import Parser, examples

if TYPE_CHECKING:
    from ..engine.result import Result

EXIT = {
    "converged": 0,
    "ratio_reached": 0,
    "iteration_limit": 3,
    "time_limit": 3,
    "callback": 3,
    "interrupted": 130,
    "finished": 0,
}
FAILED, INTERRUPTED = 1, EXIT["interrupted"]

NAMED = ("tol", "gamma", "base", "ratio", "warm_start")  # options of solve that are left to the problem if not given

AS_WRITTEN = argparse.RawDescriptionHelpFormatter  # examples keep their lines
Args = argparse.Namespace
AddCommand = Callable[..., Parser]


def main(argv: list[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : list of str, optional
        The arguments; by default those of the process.

    Returns
    -------
    int
        The exit code.
    """
    try:
        args = _parser().parse_args(argv)
        with warnings.catch_warnings():
            warnings.showwarning = _note
            return args.run(args)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return FAILED
    except (ValueError, RuntimeError, MemoryError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED


def _note(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning as a line for people."""
    print(f"note: {message}", file=sys.stderr)


def _say(args: Args, facts: dict[str, Any], text: str) -> None:
    print(json.dumps(facts, allow_nan=False) if args.json else text)


# -- arguments ------------------------------------------------------------------------------------------------------


def _parser() -> Parser:
    text = "Solve convex problems with more constraints than anyone can list, on disk."
    parser = Parser(prog="ooc-pf", description=text, epilog=examples("ooc-pf"), formatter_class=AS_WRITTEN)
    package = sys.modules["ooc_pf"]  # above this room, and loaded whenever this runs
    parser.add_argument("--version", action="version", version=f"%(prog)s {package.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, run: Callable[[Args], int], text: str, *, workspace: bool = True) -> Parser:
        sub = commands.add_parser(name, help=text, description=text, epilog=examples(name), formatter_class=AS_WRITTEN)
        sub.set_defaults(run=run)
        if workspace:
            sub.add_argument("workspace", metavar="WORKSPACE", help="directory of the workspace")
        sub.add_argument("--json", action="store_true", help="print one JSON object instead of text")
        return sub

    _add_convert(add)
    _add_solve(add)
    _add_resume(add)
    sub = add("status", _status, "say what a workspace holds and how far it is")
    sub.add_argument("--watch", action="store_true", help="follow a solve that is running, a line an iteration")
    _add_verify(add)
    sub = add("report", _report, "describe a run: certificate, stages, iterations; as a page with curves, too")
    text = "write it here instead of to stdout; a name that ends in .html makes a page, one in .md Markdown"
    sub.add_argument("-o", "--output", metavar="FILE", help=text)
    _add_export(add)
    _add_transport(add)
    _add_svm(add)
    text = "find groups in a small network, with proof"
    sub = add("example", _example, text, workspace=False)
    sub.add_argument("--keep", metavar="DIR", help="keep the edge list and the workspace in this new directory")
    sub = add("completion", _completion, "print a script that completes this command in a shell", workspace=False)
    sub.add_argument("shell", choices=("bash", "zsh"))
    return parser


def _add_convert(add: AddCommand) -> None:
    sub = add("convert", _convert, "make a workspace from an edge list", workspace=False)
    text = "edge list: text, CSV, Matrix Market, MULTICUT (also .gz), or Parquet; - is standard input"
    sub.add_argument("source", metavar="SOURCE", help=text)
    sub.add_argument("workspace", metavar="WORKSPACE", help="directory to make; must not exist")
    sub.add_argument("--columns", metavar="A,B[,VALUE]", help="names in the header, or positions from 1")
    text = r"what separates fields: space, tab (\t), comma (,), semicolon (;) or pipe (|) (default: found in the file)"
    sub.add_argument("--delimiter", metavar="SIGN", help=text)
    text = "the first data line does, or does not, hold the names of the columns (default: found in the file)"
    sub.add_argument("--header", action=argparse.BooleanOptionalAction, default=None, help=text)
    text = "what the value is (default: signed in a MULTICUT file, else distance)"
    sub.add_argument("--kind", choices=KINDS, help=text)
    sub.add_argument("--duplicates", choices=POLICIES, help="rule for repeated pairs (default: mean; sum if signed)")
    sub.add_argument("--bad-lines", choices=BAD_LINES, default="error", help="stop at a bad line, or skip it")
    sub.add_argument("--memory", default="1GB", metavar="SIZE", help="most memory to use (default: %(default)s)")
    sub.add_argument("--quiet", action="store_true", help="no progress bar")


def _add_solve(add: AddCommand) -> None:
    sub = add("solve", _solve, "solve a problem on a workspace, continuing what is there")
    text = "what to solve (default: nearness of distances, clustering of signed weights)"
    sub.add_argument("--problem", choices=problems(), help=text)
    sub.add_argument("--oracle", choices=("numba", "igraph"), default="numba", help="engine that finds violated cycles")
    sub.add_argument("--seed", type=int, default=0, help="of what is drawn at random (default: %(default)s)")
    text = "lay the graph out for disk, not memory (default: above four million edges)"
    sub.add_argument("--external", action=argparse.BooleanOptionalAction, default=None, help=text)
    sub.add_argument("--restart", action="store_true", help="discard the progress in the workspace")
    # Without a default, so that what is not named is left to the problem.
    text = "relative gap and violation to reach (nearness 1e-6, on complete graphs 1e-10; clustering 1e-2)"
    sub.add_argument("--tol", type=float, default=argparse.SUPPRESS, help=text)
    text = "clustering: the linear program (none, the default), or the strength of its term in the quadratic one"
    sub.add_argument("--gamma", type=_gamma, default=argparse.SUPPRESS, metavar="NUMBER|none", help=text)
    text = "clustering: stop when the clusters cost at most this many times the least (1 + tol for the linear program)"
    sub.add_argument("--ratio", type=float, default=argparse.SUPPRESS, help=text)
    text = "clustering: weight of every pair not listed, not positive (they do not count)"
    sub.add_argument("--base", type=float, default=argparse.SUPPRESS, metavar="WEIGHT", help=text)
    text = "begin with the rows and multipliers of another run, on nearly the same graph"
    sub.add_argument("--warm-start", metavar="OTHER", default=argparse.SUPPRESS, help=text)
    _add_limits(sub)


def _add_resume(add: AddCommand) -> None:
    sub = add("resume", _resume, "go on with the run a workspace holds")
    sub.add_argument("--tol", type=float, help="go on to another tolerance")
    sub.add_argument("--ratio", type=float, help="clustering: go on to another ratio of cost and bound")
    _add_limits(sub)


def _add_verify(add: AddCommand) -> None:
    sub = add("verify", _verify, "recompute everything a workspace claims")
    sub.add_argument("--oracle", choices=("igraph", "numba"), default="igraph", help="engine of the complete search")
    sub.add_argument("--workers", type=int, help="threads or processes (one a core)")
    sub.add_argument("--memory", metavar="SIZE", help="budget, like 500MB or 2GiB")


def _add_export(add: AddCommand) -> None:
    sub = add("export", _export, "write the answer to a csv, parquet or npz file")
    sub.add_argument("target", metavar="FILE", help="what to write: its ending says the format")
    sub.add_argument("--format", choices=FORMATS, help="the format, whatever the name says")
    sub.add_argument("--clusters", action="store_true", help="write the cluster of each node instead of the edges")
    sub.add_argument("--duals", action="store_true", help="of rows of your own: write the multiplier of each")
    text = "fail, and write nothing, if the run has not converged"
    sub.add_argument("--require-converged", action="store_true", help=text)
    sub.add_argument("--memory", metavar="SIZE", help="budget, like 500MB or 2GiB")


def _add_transport(add: AddCommand) -> None:
    sub = add("transport", _transport, "move masses at least cost, from files to a plan", workspace=False)
    text = "masses: .npy, .zarr or .parquet"
    sub.add_argument("a", metavar="A", help=text)
    sub.add_argument("b", metavar="B", help=text)
    sub.add_argument("target", metavar="PLAN", help="the plan: .npz (scipy.sparse), .csv or .parquet")
    costs = sub.add_mutually_exclusive_group(required=True)
    costs.add_argument("--points", nargs=2, metavar=("X", "Y"), help="the points of A and of B")
    costs.add_argument("--cost", metavar="FILE", help="a matrix of costs, read by blocks")
    text = "cost of a pair of points (default: %(default)s)"
    sub.add_argument("--metric", choices=("sqeuclidean", "euclidean"), default="sqeuclidean", help=text)
    weights = sub.add_mutually_exclusive_group(required=True)
    weights.add_argument("--gamma", type=float, help="soft marginals, and how dear what is missing of them is")
    weights.add_argument("--reg", type=float, help="exact marginals, and the weight of the regulariser")
    text = "relative gap and violation to reach (default: %(default)s)"
    sub.add_argument("--tol", type=float, default=1e-10, help=text)
    sub.add_argument("--workspace", metavar="DIR", help="keep the run here, and go on with it when called again")
    sub.add_argument("--restart", action="store_true", help="discard the progress in the workspace")
    _add_limits(sub, scheduler=False)


def _add_svm(add: AddCommand) -> None:
    sub = add("svm", _svm, "fit a linear support vector machine to rows in files", workspace=False)
    svm.add_arguments(sub)
    _add_limits(sub, scheduler=False)


def _add_limits(sub: Parser, *, scheduler: bool = True) -> None:
    sub.add_argument("--max-iter", type=int, help="stop after so many iterations of this call")
    sub.add_argument("--max-time", metavar="TIME", help="stop after so long, like 90s, 30min or 6h")
    sub.add_argument("--memory", metavar="SIZE", help="budget, like 500MB, 2GiB or auto")
    sub.add_argument("--workers", type=int, help="threads or processes (one a core)")
    if scheduler:
        sub.add_argument("--scheduler", metavar="ADDRESS", help="dask scheduler whose workers see the workspace")
    sub.add_argument("--quiet", action="store_true", help="no progress on stderr")


def _gamma(text: str) -> float | None:
    try:
        return None if text.lower() == "none" else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor 'none'") from None


def _limits(args: Args) -> dict[str, Any]:
    _quieten(args)
    given = {name: getattr(args, name) for name in ("max_iter", "max_time", "memory", "workers")}
    return {**given, "progress": not args.quiet, "client": args.scheduler}


def _quieten(args: Args) -> None:
    """Who wants no progress is not told of compiling either."""
    if args.quiet:
        from ..kernels import compiling

        compiling.shown = False


# -- commands -------------------------------------------------------------------------------------------------------


def _convert(args: Args) -> int:
    from ..edgelist.convert import convert
    from ..edgelist.describe import describe

    names = ("columns", "delimiter", "header", "kind", "duplicates", "bad_lines", "memory")
    options = {name: getattr(args, name) for name in names}
    report = convert(args.source, args.workspace, **options, progress=not args.quiet)
    _say(args, report, describe(report))
    return 0


def _solve(args: Args) -> int:
    from .. import workspaces

    options = {name: getattr(args, name) for name in ("problem", "oracle", "seed", "restart", "external")}
    options |= {name: value for name, value in vars(args).items() if name in NAMED}
    return _finish(args, lambda: workspaces.solve(args.workspace, **options, **_limits(args)))


def _resume(args: Args) -> int:
    from .. import workspaces

    goals = {"tol": args.tol, "ratio": args.ratio}
    return _finish(args, lambda: workspaces.resume(args.workspace, **goals, **_limits(args)))


def _finish(args: Args, solve: Callable[[], "Result"]) -> int:
    from ..engine.run import interrupts_return
    from .explain import explain_with_next_step

    with interrupts_return():
        result = solve()
    _say(args, result.summary(), explain_with_next_step(result))
    return EXIT.get(result.status, FAILED)


def _status(args: Args) -> int:
    from .status import follow, read_status

    if args.watch and args.json:
        raise InputError("--watch tells lines for people; leave out --json, or ask for the status again and again")
    facts, text = read_status(args.workspace)
    _say(args, facts, text)
    if args.watch and facts["running"]:
        for line in follow(args.workspace):
            print(line, flush=True)
        print(read_status(args.workspace)[1])
    return 0


def _completion(args: Args) -> int:
    try:
        import shtab
    except ImportError:
        raise RuntimeError("completion needs shtab: pip install 'ooc_pf[completion]'") from None
    script = shtab.complete(_parser(), args.shell)
    _say(args, {"script": script}, script)
    return 0


def _verify(args: Args) -> int:
    from .. import workspaces
    from ..engine.parallel import count_workers

    workers = count_workers(args.workers)
    report = workspaces.verify(args.workspace, oracle=args.oracle, workers=workers, memory=args.memory)
    facts = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in report.items())
    _say(args, {"verified": True, **report}, f"verified: {facts}")
    return 0


def _report(args: Args) -> int:
    from .report import report

    kind = "" if args.output is None else Path(args.output).suffix.lower()
    if kind not in ("", ".md", ".txt", ".html", ".htm"):
        raise InputError(f"cannot write a report as {kind[1:]!r}; name a file that ends in .html or .md")
    is_page = kind in (".html", ".htm")
    text = report(args.workspace, format="html" if is_page else "markdown")
    if args.output is None:
        _say(args, {"report": text}, text.rstrip())
        return 0
    Path(args.output).write_text(text, encoding="utf-8")
    _say(args, {"file": args.output}, f"wrote {args.output}")
    return 0


def _export(args: Args) -> int:
    from .export import write_answer

    options = (args.format, args.clusters, args.duals, args.memory, args.require_converged)
    done = write_answer(args.workspace, args.target, *options)
    if done.note:
        print(f"note: {done.note}", file=sys.stderr)
    facts = {"file": args.target, done.what: done.rows, "status": done.status}
    _say(args, facts, f"wrote {done.rows} {done.what} to {args.target}")
    return 0


def _transport(args: Args) -> int:
    from ..engine.run import interrupts_return
    from .formats import format_of
    from .handed import write_plan
    from .transport import solve_files

    _quieten(args)
    kind = format_of(Path(args.target), None)  # refused before the work, not after it
    names = ("metric", "gamma", "reg", "tol", "workspace", "restart", "max_iter", "max_time", "memory", "workers")
    options = {name: getattr(args, name) for name in names}
    options |= {"marginals": "exact" if args.gamma is None else "soft", "progress": not args.quiet}
    with interrupts_return():
        result = solve_files(args.a, args.b, args.points, args.cost, **options)
    write_plan(result.plan, args.target, kind)
    _say(args, {**result.summary(), "file": args.target}, f"{result!r}\nwrote {result.plan.nnz} pairs to {args.target}")
    return EXIT.get(result.status, FAILED)


def _svm(args: Args) -> int:
    from ..engine.run import interrupts_return

    with interrupts_return():
        facts, text, status = svm.fit(args)
    _say(args, facts, text)
    return EXIT.get(status, FAILED)


def _example(args: Args) -> int:
    from .example import run_example

    if args.keep is None:
        with tempfile.TemporaryDirectory() as folder:
            result, text = run_example(Path(folder))
    else:
        if Path(args.keep).exists():
            raise InputError(f"{args.keep} is there already; name a directory that is not, and it will be made")
        Path(args.keep).mkdir(parents=True)
        result, text = run_example(Path(args.keep))
    _say(args, result.summary(), text)
    return EXIT[result.status]
