"""The command ``ooc-pf svm``: a linear support vector machine from files of rows and labels."""

from pathlib import Path
from typing import Any

from ..errors import InputError
from .formats import format_of


def add_arguments(sub: Any) -> None:
    """The arguments of the command, but for the limits of a run."""
    sub.add_argument("rows", metavar="ROWS", help="features by row: .npy, .zarr or .parquet")
    text = "one label a row: whole numbers or text (default: --label is a column of ROWS)"
    sub.add_argument("labels", metavar="LABELS", nargs="?", help=text)
    text = "keep the fit in this directory, and go on with it when called again; needed, but for --method stochastic"
    sub.add_argument("-o", "--output", metavar="WORKSPACE", help=text)
    text = "write the weights here: .csv, .parquet or .npz (later: `ooc-pf export WORKSPACE FILE`)"
    sub.add_argument("--model", metavar="FILE", help=text)
    text = "the features, by names or positions from 1 (default: all but the label)"
    sub.add_argument("--columns", metavar="A,B...", help=text)
    sub.add_argument("--label", metavar="COLUMN", help="the column of the labels, by name or position from 1")
    sub.add_argument("--C", type=float, default=1.0, help="what a unit of loss costs (default: %(default)s)")
    text = "relative gap to prove, for every class (default: %(default)s)"
    sub.add_argument("--tol", type=float, default=1e-8, help=text)
    sub.add_argument("--intercept", action="store_true", help="add an intercept; it is not penalised")
    text = "newton: certified, in a few passes. stochastic: one pass, proves nothing (default: %(default)s)"
    sub.add_argument("--method", choices=("newton", "stochastic"), default="newton", help=text)
    sub.add_argument("--seed", type=int, default=0, help="of what is drawn at random (default: %(default)s)")
    sub.add_argument("--restart", action="store_true", help="discard the progress in the workspace")


def fit(args: Any) -> tuple[dict[str, Any], str, str]:
    """Fit; returns facts for JSON, text for people, and the status."""
    from ..svm.files import Files

    if args.model is not None:
        format_of(Path(args.model), None)  # refused before the work, not after it
    columns = None if args.columns is None else tuple(args.columns.split(","))
    files = Files(args.rows, args.labels, columns, args.label)
    return (_fit_newton if args.method == "newton" else _fit_stochastic)(args, files)


def _fit_newton(args: Any, files: Any) -> tuple[dict[str, Any], str, str]:
    from ..problems.svm_files import fit_files
    from ..storage.workspace import Workspace
    from .explain import explain_with_next_step
    from .weights import read_weights

    if args.output is None:
        raise InputError("name a workspace with -o: --method newton keeps its state there")
    options = {name: getattr(args, name) for name in ("C", "tol", "seed", "restart")}
    limits = {name: getattr(args, name) for name in ("max_iter", "max_time", "memory", "workers")}
    result = fit_files(files, args.output, fit_intercept=args.intercept, progress=not args.quiet, **options, **limits)
    facts, text = result.summary(), explain_with_next_step(result)
    written = {} if args.model is None else _write(args.model, read_weights(Workspace(args.output)))
    return {**facts, **written}, "\n".join([text, *_told(written)]), result.status


def _fit_stochastic(args: Any, files: Any) -> tuple[dict[str, Any], str, str]:
    from ..problems.svm_files import fit_stochastic
    from .weights import Weights

    if args.output is not None or args.restart:
        raise InputError("--method stochastic keeps no state: leave out -o and --restart, and name a --model")
    if args.model is None:
        raise InputError("name a file for the weights with --model: --method stochastic keeps no state")
    names = ("C", "seed", "max_iter", "max_time", "memory")
    options = {name: getattr(args, name) for name in names}
    points, classes, status = fit_stochastic(files, fit_intercept=args.intercept, progress=not args.quiet, **options)
    source, columns = files.opened()
    written = _write(args.model, Weights(points, classes, [source.names[at] for at in columns]))
    text = f"{status}: mean of the later iterates; nothing is proven about it"
    return {"status": status, **written}, "\n".join([text, *_told(written)]), status


def _write(target: str, weights: Any) -> dict[str, Any]:
    from ..storage.files import local_path
    from .weights import write_weights

    return {"file": target, "weights": write_weights(weights, local_path(target), format_of(Path(target), None))}


def _told(written: dict[str, Any]) -> list[str]:
    return [f"wrote {written['weights']} weights to {written['file']}"] if written else []
