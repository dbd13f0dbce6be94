"""The certificate of a result in words."""

import math
import shlex

import numpy as np

from ..engine.result import Result

COARSE = (
    "these clusters are the components of a few thresholds only, as the graph is laid out for disk; laid out for "
    "memory (--no-external, external=False) it may get far cheaper ones"
)
FAR = 10.0  # times the lower bound: a percentage of more says nothing


def explain(result: Result) -> str:
    """What a result claims, a line for each number and what it means.

    Parameters
    ----------
    result : Result
        What a solve returned.

    Returns
    -------
    str
        Lines for people, without a line end after the last.
    """
    violation = f"{result.violation:.2e}" if math.isfinite(result.violation) else "not checked yet"
    lines = [
        f"{_outcome(result)} after {result.n_iter} iterations",
        f"  objective    {result.objective:.10g}   of an answer that satisfies every constraint",
        f"  lower bound  {result.lower_bound:.10g}   proven: no answer can do better",
        f"  gap          {_gap(result)}",
        f"  violation    {violation}   largest at the iterate before it was repaired",
        f"  constraints  {result.n_active} remembered at the end, all others implied",
    ]
    if getattr(result, "labels", None) is not None:
        lines += _cluster_lines(result)
    return "\n".join(lines)


def explain_with_next_step(result: Result) -> str:
    """The certificate in words, and how to go on if the run has not converged."""
    if result.converged:
        return explain(result)
    return f"{explain(result)}\ncontinue with: ooc-pf resume {shlex.quote(str(result.workspace))}"


def _gap(result: Result) -> str:
    """The gap, and what it says about the answer."""
    if result.gap == 0.0:
        return "0   no answer is better"
    if not result.lower_bound > 0.0:
        return "none yet   the lower bound is zero, so nothing is known about the best"
    if result.gap > FAR:
        return f"{result.gap:.2e}   the lower bound is still far from the answer"
    return f"{result.gap:.2e}   so the answer is within {100 * result.gap:.2g} % of the best"


def _outcome(result: Result) -> str:
    if result.converged:
        return "solved to the tolerance asked for"
    return f"stopped ({result.status.replace('_', ' ')})"


def _cluster_lines(result: Result) -> list[str]:
    clusters, bound = len(np.unique(result.labels)), result.lp_lower_bound
    ratio = "none yet" if result.certified_ratio is None else f"{result.certified_ratio:.4f}"
    lines = [
        f"  clusters     {clusters}   of cost {result.cost:.10g}; none can cost less than {bound:.10g}",
        f"  ratio        {ratio}   certified: cost of the clusters over that bound",
    ]
    return [*lines, f"  note         {COARSE}"] if result.thresholds_only else lines
