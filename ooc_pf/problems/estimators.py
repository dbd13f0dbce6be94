"""Correlation clustering and metric nearness in scikit-learn's conventions."""

from typing import Any

import numpy as np
from scipy import sparse

from ..engine.result import Result, label_array
from ..errors import InputError
from .clustering import correlation_clustering
from .nearness import metric_nearness
from .scikit import BaseEstimator, ClusterMixin, keep_parameters, seed_of, warn_if_stopped

AFFINITIES = ("precomputed", "cosine", "correlation")
PRECOMPUTED = "precomputed"


def _is_matrix(X: Any) -> bool:
    """Whether X is a matrix in scikit-learn's sense, and not a graph in some other form."""
    return sparse.issparse(X) or isinstance(X, list) or (hasattr(X, "shape") and len(X.shape) == 2)


class _Certified(BaseEstimator):
    """What both have in common: a run with limits, and what is told of it."""

    result_: Result

    def _matrix(self, X: Any, **options: Any) -> Any:
        """X as scikit-learn checks it; graphs in other forms as they are."""
        from sklearn.utils.validation import validate_data

        return validate_data(self, X, dtype=np.float64, ensure_min_samples=2, **options)

    def _options(self) -> dict[str, Any]:
        names = ("tol", "max_iter", "max_time", "memory", "workers", "workspace", "progress")
        return {"seed": seed_of(self.random_state), **{name: getattr(self, name) for name in names}}

    def _take(self, result: Result) -> None:
        self.result_, self.n_iter_, self.status_ = result, result.n_iter, result.status
        self.history_ = result.history
        warn_if_stopped(result, self.tol if self.tol is not None else 0.0)


class CorrelationClustering(ClusterMixin, _Certified):
    """Clusters of points that attract or repel each other, and a proof of how good they are.

    The number of clusters is not given: it follows from the weights. See `correlation_clustering`.

    Parameters
    ----------
    affinity : {"precomputed", "cosine", "correlation"}
        Where the weights come from. "precomputed": X holds them, positive for together and negative for apart, as a
        square array, a sparse matrix whose missing pairs do not count, arrays (u, v, weight), a graph of networkx or
        igraph, or the path of a workspace. Otherwise the cosine, or the correlation, of each two rows of X.
    threshold : float
        Taken from every affinity of a square array: larger ones attract, smaller ones repel.
    gamma : float or None
    base : float, optional
    tol : float
    ratio : float, optional
    max_iter : int, optional
    max_time : float or str, optional
    memory : int or str, optional
    workers : int, optional
    workspace : path, optional
    random_state : int, RandomState or None
        None is 0: the same result every time.
    progress : bool
        These are the options of `correlation_clustering`; ``random_state`` is its ``seed``.

    Attributes
    ----------
    labels_ : int array
        Cluster of each point.
    cost_ : float
        Weight of the pairs that go against the clusters.
    lower_bound_ : float
        Proven: no clustering costs less.
    certified_ratio_ : float or None
        cost_ / lower_bound_; None while nothing is proven.
    n_iter_, status_, history_, n_features_in_
        As of other estimators here.
    result_ : Result
        All of it.

    Examples
    --------
    >>> import numpy as np, ooc_pf as pf
    >>> X = np.array([[1.0, 0.1], [1.0, 0.2], [-1.0, 0.1], [-1.0, 0.0]])
    >>> model = pf.CorrelationClustering(affinity="cosine").fit(X)
    >>> model.labels_.tolist(), model.certified_ratio_
    ([0, 0, 1, 1], 1.0)
    """

    def __init__(
        self,
        affinity: str = PRECOMPUTED,
        *,
        threshold: float = 0.0,
        gamma: float | None = None,
        base: float | None = None,
        tol: float = 1e-2,
        ratio: float | None = None,
        max_iter: int | None = None,
        max_time: float | str | None = None,
        memory: int | str | None = None,
        workers: int | None = None,
        workspace: Any = None,
        random_state: Any = None,
        progress: bool = False,
    ):
        keep_parameters(self, locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.affinity == PRECOMPUTED
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None) -> "CorrelationClustering":
        """Find clusters of the points, or of the nodes, in X; y is not used."""
        if self.affinity not in AFFINITIES:
            raise InputError(f"affinity must be one of {', '.join(AFFINITIES)}, found {self.affinity!r}")
        weights = self._weights(X)
        options = {"gamma": self.gamma, "base": self.base, "ratio": self.ratio, **self._options()}
        self._take(correlation_clustering(weights, **options))
        result = self.result_
        self.labels_ = label_array(result.labels)
        self.cost_, self.lower_bound_ = result.cost, result.lp_lower_bound
        self.certified_ratio_ = result.certified_ratio
        return self

    def _weights(self, X: Any) -> Any:
        if self.affinity == PRECOMPUTED and not _is_matrix(X):
            return X
        matrix = self._matrix(X, accept_sparse="csr")
        if self.affinity == PRECOMPUTED and sparse.issparse(matrix):
            return matrix
        return (matrix if self.affinity == PRECOMPUTED else _affinity(matrix, self.affinity)) - self.threshold


def _affinity(X: Any, name: str) -> np.ndarray:
    """Cosines, or correlations, of the rows; a row without a direction is alike to none."""
    rows = X.toarray() if sparse.issparse(X) else X
    rows = rows - rows.mean(axis=1, keepdims=True) if name == "correlation" else rows
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows / np.where(length > 0.0, length, 1.0)
    product = rows @ rows.T
    return (product + product.T) / 2.0


class MetricNearness(_Certified):
    """Repair dissimilarities: the nearest ones that are a metric, and a proof of how near.

    Many dissimilarities in use, such as cosine, Bray-Curtis or squared distances, break the triangle inequality, as do
    measured ones. See `metric_nearness`.

    Parameters
    ----------
    metric : str or callable
        "precomputed": X is the square table, a sparse matrix, arrays (u, v, distance), a graph of networkx or igraph,
        or the path of a workspace. Otherwise what sklearn.metrics.pairwise_distances makes of the rows of X.
    tol : float, optional
    max_iter : int, optional
    max_time : float or str, optional
    memory : int or str, optional
    workers : int, optional
    workspace : path, optional
    random_state : int, RandomState or None
    progress : bool
        These are the options of `metric_nearness`; ``random_state`` is its ``seed``.

    Attributes
    ----------
    distances_ : array
        The metric, in the form of X where X is a graph.
    objective_, lower_bound_ : float
        Half the squared change, and a proven bound below which no metric can be.
    gap_ : float
        (objective_ - lower_bound_) / lower_bound_.
    n_iter_, status_, history_, n_features_in_
        As of other estimators here.
    result_ : Result
        All of it.

    Examples
    --------
    >>> import numpy as np, ooc_pf as pf
    >>> table = np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 1.0], [5.0, 1.0, 0.0]])
    >>> pf.MetricNearness().fit_transform(table).round(6).tolist()
    [[0.0, 2.0, 4.0], [2.0, 0.0, 2.0], [4.0, 2.0, 0.0]]
    """

    def __init__(
        self,
        metric: Any = PRECOMPUTED,
        *,
        tol: float | None = None,
        max_iter: int | None = None,
        max_time: float | str | None = None,
        memory: int | str | None = None,
        workers: int | None = None,
        workspace: Any = None,
        random_state: Any = None,
        progress: bool = False,
    ):
        keep_parameters(self, locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = tags.input_tags.sparse = self.metric == PRECOMPUTED
        return tags

    def fit(self, X: Any, y: Any = None) -> "MetricNearness":
        """Repair the dissimilarities in X, or of the rows of X; y is not used."""
        self._take(metric_nearness(self._distances(X), **self._options()))
        result = self.result_
        self.distances_ = result.x
        self.objective_, self.lower_bound_, self.gap_ = result.objective, result.lower_bound, result.gap
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Repair the dissimilarities in X, or of the rows of X, and return the metric; y is not used."""
        return self.fit(X).distances_

    def _distances(self, X: Any) -> Any:
        if self.metric == PRECOMPUTED:
            return self._matrix(X, accept_sparse="csr") if _is_matrix(X) else X
        from sklearn.metrics import pairwise_distances

        found = pairwise_distances(self._matrix(X), metric=self.metric)
        return (found + found.T) / 2.0
