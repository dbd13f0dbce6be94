"""The history of a run as a picture."""

from typing import TYPE_CHECKING, Any

from ..engine.result import Result
from .curves import BOUNDS, ERRORS, ROWS, Curve, curves

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot(result: Result, *, over_time: bool = False) -> "Figure":
    """Draw how a run went: its bounds, the gap and the violation, and the rows it found and kept.

    Needs matplotlib (``pip install 'ooc_pf[plot]'``).

    Parameters
    ----------
    result : Result
        What a solve returned, or `open` of a workspace.
    over_time : bool
        Over seconds of work instead of iterations.

    Returns
    -------
    matplotlib.figure.Figure
        Notebooks show it; ``savefig`` writes it.

    Examples
    --------
    >>> import numpy as np, ooc_pf as pf
    >>> result = pf.metric_nearness((np.array([0, 1, 0]), np.array([1, 2, 2]), np.array([1.0, 1.0, 5.0])))
    >>> pf.plot(result).savefig("run.png")
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("plot needs matplotlib: pip install 'ooc_pf[plot]'") from None

    figure = Figure(figsize=(12, 3.6), layout="constrained")
    for axes, (fields, logarithm) in zip(
        figure.subplots(1, 3), ((BOUNDS, False), (ERRORS, True), (ROWS, False)), strict=True
    ):
        _draw(axes, curves(result.history, fields, positive=logarithm), over_time, logarithm)
    figure.suptitle(f"{result.problem}: {result.status.replace('_', ' ')} after {result.n_iter} iterations")
    return figure


def _draw(axes: Any, lines: list[Curve], over_time: bool, logarithm: bool) -> None:
    for line, style in zip(lines, ("-", "--"), strict=False):
        axes.plot(line.seconds if over_time else line.iteration, line.value, style, marker=".", label=line.name)
    axes.set_xlabel("seconds of work" if over_time else "iteration")
    if lines:
        axes.legend()
    if logarithm and lines:
        axes.set_yscale("log")
