"""How good a point is: bounds that hold for any duals; and, apart from measuring, the decision to stop.

Everything is relative to a size of the data, so that it means the same in any unit.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import InputError

NEGLIGIBLE = 1e-12  # rounding: bounds below this part of the worth of a problem count as zero
SMALLEST = 1e-280  # a worth of which even the negligible part is a number with all its digits
EQUAL = 1e-15  # rounding: bounds that differ by less than this part of the worth are the same


@dataclass(frozen=True)
class Certificate:
    """What a complete pass of the oracle proved.

    Attributes
    ----------
    objective : float
        Objective of a point: where the point is feasible, an upper bound of the optimum.
    lower_bound : float
        Value of the dual: a lower bound of the optimum.
    violation : float
        Largest violation of a row at the iterate (the feasible point itself violates none).
    scale : float
        Size of the numbers the violation is judged by.
    feasible : bool
        Whether the point is feasible. Where none can be made it is the iterate, and its objective no bound.
    worth : float
        Size of what the objective is a sum of, which a bound is negligible against.
    """

    objective: float
    lower_bound: float
    violation: float
    scale: float = 1.0
    feasible: bool = True
    worth: float = 0.0

    @property
    def gap(self) -> float:
        """Relative gap between the bounds."""
        return relative_gap(self.objective, self.lower_bound, self.worth)

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "gap": self.gap}


def relative_gap(upper: float, lower: float, worth: float = 0.0) -> float:
    """|upper - lower| / |lower|; the objective of a point that is not quite feasible may be below.

    A lower bound that is negligible against ``worth`` counts as that small part of it, and bounds that differ by
    rounding alone have no gap. It is infinite where the lower bound is zero and nothing else is known.
    """
    difference, size = abs(upper - lower), max(abs(lower), NEGLIGIBLE * worth)
    if difference <= EQUAL * worth:
        return 0.0
    return difference / size if size > 0.0 else math.inf


def check_worth(worth: float, largest: float) -> None:
    """Refuse values whose objective is no number, or so small that nothing is proven about it.

    ``largest`` is the largest of them; where all are zero there is nothing to lose.
    """
    if not math.isfinite(worth):
        raise InputError("the values or weights are too large: their objective is not a finite number; rescale them")
    if worth < SMALLEST and largest > 0.0:
        raise InputError("the values or weights are too small: parts of their objective are lost; rescale them")


def check_inverse(largest: float) -> None:
    """Refuse weights of which one is so small that nothing can be computed with its inverse."""
    if not largest <= 1.0 / SMALLEST:
        raise InputError(
            f"a weight is too small: the inverse it counts with is {largest:.3g}, and may be {1.0 / SMALLEST:.3g} at "
            "most; leave its edge out, or rescale the weights"
        )


def certified_ratio(cost: float, bound: float) -> float | None:
    """Cost of an answer over a lower bound: 1 if the answer costs nothing, None while nothing is proven."""
    if cost == 0.0:
        return 1.0
    return cost / bound if bound > NEGLIGIBLE * cost else None


def converged(certificate: Certificate | None, tol: float) -> bool:
    """Whether the bounds meet and the iterate is feasible, both within ``tol``."""
    return certificate is not None and certificate.gap <= tol and certificate.violation <= tol * certificate.scale
