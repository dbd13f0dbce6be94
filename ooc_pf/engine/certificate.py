"""How good a point is: bounds that hold for any duals; and, apart from measuring, the decision to stop."""

from dataclasses import asdict, dataclass
from typing import Any


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
        Size of the numbers the violation is judged by, at least 1.
    feasible : bool
        Whether the point is feasible. Where none can be made it is the iterate, and its objective no bound.
    """

    objective: float
    lower_bound: float
    violation: float
    scale: float = 1.0
    feasible: bool = True

    @property
    def gap(self) -> float:
        """Relative gap between the bounds."""
        return relative_gap(self.objective, self.lower_bound)

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "gap": self.gap}


def relative_gap(upper: float, lower: float) -> float:
    """|upper - lower| / max(1, |lower|); the objective of a point that is not quite feasible may be below."""
    return abs(upper - lower) / max(1.0, abs(lower))


def converged(certificate: Certificate | None, tol: float) -> bool:
    """Whether the bounds meet and the iterate is feasible, both within ``tol``."""
    return certificate is not None and certificate.gap <= tol and certificate.violation <= tol * certificate.scale
