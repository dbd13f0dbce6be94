"""What estimators take from scikit-learn; where it is missing, making one says what to install."""

import warnings
from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np

from ..engine.result import Result

try:
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        ClassNamePrefixFeaturesOutMixin,
        ClusterMixin,
        TransformerMixin,
    )
    from sklearn.utils.metaestimators import available_if
except ImportError:

    def available_if(check: Callable[[Any], bool]) -> Callable[[Any], Any]:
        """Stands where scikit-learn is missing."""
        return lambda method: method

    class BaseEstimator:  # type: ignore[no-redef]
        """Stands where scikit-learn is missing."""

        def __new__(cls, *args: Any, **options: Any) -> Any:
            raise ImportError(f"{cls.__name__} needs scikit-learn 1.6 or newer: pip install 'ooc_pf[learn]'")

    class ClassifierMixin:  # type: ignore[no-redef]
        """Stands where scikit-learn is missing, as do those below."""

    class ClassNamePrefixFeaturesOutMixin:  # type: ignore[no-redef]
        pass

    class ClusterMixin:  # type: ignore[no-redef]
        pass

    class TransformerMixin:  # type: ignore[no-redef]
        pass


__all__ = [
    "BaseEstimator",
    "ClassNamePrefixFeaturesOutMixin",
    "ClassifierMixin",
    "ClusterMixin",
    "TransformerMixin",
    "available_if",
    "keep_parameters",
    "seed_of",
    "warn_if_stopped",
]


def keep_parameters(model: Any, given: dict[str, Any]) -> None:
    """Keep what ``__init__`` was given, its ``locals()``, in attributes of the same names, as scikit-learn wants."""
    for name, value in given.items():
        if name != "self":
            setattr(model, name, value)


def seed_of(random_state: Any) -> int:
    """A seed from what scikit-learn calls ``random_state``; None is 0."""
    if random_state is None:
        return 0
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(random_state.randint(np.iinfo(np.int32).max))


def warn_if_stopped(result: Result, tol: float) -> None:
    """Warn, from the ``fit`` two calls above, of a run that was stopped by a limit on its iterations."""
    if result.status in ("iteration_limit", "stalled"):
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"stopped with a gap of {result.gap:.1e} ({result.status}); tol is {tol:g}",
            ConvergenceWarning,
            stacklevel=4,
        )
