"""The certificate of a result in words."""

import math
import shlex
from typing import NamedTuple

from ..engine.result import Result, cluster_sizes, label_array

FAR = 10.0  # times the lower bound: a percentage of more says nothing


class Claim(NamedTuple):
    """A number of a certificate, and what it says."""

    name: str
    value: str
    meaning: str


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
    return "\n".join([outcome(result), *(f"  {name:<12} {value}   {told}" for name, value, told in claims(result))])


def explain_with_next_step(result: Result) -> str:
    """The certificate in words, and how to go on if the run has not converged."""
    if result.converged:
        return explain(result)
    return f"{explain(result)}\ncontinue with: ooc-pf resume {shlex.quote(str(result.workspace))}"


def outcome(result: Result) -> str:
    """How the run ended."""
    if result.status == "ratio_reached":
        how = "clusters as good as asked for"
    elif result.converged:
        how = "solved to the tolerance asked for"
    else:
        how = f"stopped ({result.status.replace('_', ' ')})"
    return f"{how} after {result.n_iter} iterations"


def claims(result: Result) -> list[Claim]:
    """The certificate, number by number."""
    violation = f"{result.violation:.2e}" if math.isfinite(result.violation) else "not checked yet"
    # A point of general rows or sets is not repaired.
    repaired = result.keyed is None
    point = "an answer that satisfies every constraint" if repaired else "the last point, feasible up to the violation"
    if result.problem in OWN:
        return OWN[result.problem](result)
    told = [
        Claim("objective", f"{result.objective:.10g}", f"of {point}"),
        Claim("lower bound", f"{result.lower_bound:.10g}", "proven: no answer can do better"),
        Claim("gap", *_gap(result)),
        Claim(
            "violation", violation, f"largest at {'the iterate before it was repaired' if repaired else 'that point'}"
        ),
        Claim("constraints", f"{result.n_active}", "remembered at the end, all others implied"),
    ]
    return told + _cluster_claims(result) if getattr(result, "labels", None) is not None else told


def _svm_claims(result: Result) -> list[Claim]:
    return [
        Claim("objective", f"{result.objective:.10g}", "of the weights, the sum over classes"),
        Claim("lower bound", f"{result.lower_bound:.10g}", "proven: no weights can do better"),
        Claim("gap", *_gap(result)),
        Claim("active rows", f"{result.n_active}", "with a loss; the others could be left out"),
    ]


def _transport_claims(result: Result) -> list[Claim]:
    errors = getattr(result, "row_error", None), getattr(result, "column_error", None)
    told = [
        Claim("objective", f"{result.objective:.10g}", "of the plan"),
        Claim("lower bound", f"{result.lower_bound:.10g}", "proven: no plan can do better"),
        Claim("gap", *_gap(result)),
    ]
    if None in errors:
        return told
    missing = f"{errors[0]:.2e}, {errors[1]:.2e}"
    return [*told, Claim("marginal errors", missing, "parts of the mass that the plan does not have where it should")]


def _itml_claims(result: Result) -> list[Claim]:
    return [
        Claim("objective", f"{result.objective:.10g}", "of the metric"),
        Claim("lower bound", f"{result.lower_bound:.10g}", "proven: no metric can do better"),
        Claim("gap", *_gap(result)),
    ]


OWN = {"svm": _svm_claims, "transport": _transport_claims, "itml": _itml_claims}


def _gap(result: Result) -> tuple[str, str]:
    """The gap, and what it says about the answer."""
    if result.gap == 0.0:
        return "0", "no answer is better"
    if not result.lower_bound > 0.0:
        return "none yet", "the lower bound is zero, so nothing is known about the best"
    if result.gap > FAR:
        return f"{result.gap:.2e}", "the lower bound is still far from the answer"
    if result.keyed is not None and result.problem not in OWN:
        return f"{result.gap:.2e}", "from the bound to the objective, relatively"
    return f"{result.gap:.2e}", f"so the answer is within {100 * result.gap:.2g} % of the best"


def _cluster_claims(result: Result) -> list[Claim]:
    clusters, bound = len(cluster_sizes(result.labels)), result.lp_lower_bound
    ratio = "none yet" if result.certified_ratio is None else f"{result.certified_ratio:.4f}"
    cost = f"of cost {result.cost:.10g}; none can cost less than {bound:.10g}"
    told = [
        Claim("clusters", f"{clusters}", cost),
        Claim("ratio", ratio, "certified: cost of the clusters over that bound"),
    ]
    if result.proven_nodes is None:  # of a release that did not count them
        return told
    proven = f"{result.proven_nodes:,} of {len(label_array(result.labels)):,} nodes"
    return [*told, Claim("optimal", proven, "proven: no clustering of them costs less")]
