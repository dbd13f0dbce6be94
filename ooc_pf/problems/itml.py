"""Information-theoretic metric learning (Davis, Kulis, Jain, Sra, Dhillon 2007), with the names of metric-learn."""

import contextlib
from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np

from ..engine.limits import Limits
from ..errors import InputError
from ..itml.blocks import are_blocks, spooled
from ..itml.inputs import (
    Task,
    all_pairs_task,
    listed_pairs_task,
    read_gamma,
    read_pairs,
    read_signs,
)
from ..itml.pairs import draw_pairs
from ..itml.solve import Draws, learn
from .scikit import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, keep_parameters

with contextlib.suppress(ImportError):  # without it no estimator is made that could use them
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data


class _Mahalanobis(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What can be asked of a learnt metric."""

    components_: np.ndarray

    def transform(self, X: Any) -> np.ndarray:
        """Points whose Euclidean distances are the learnt ones: ``X @ components_.T``."""
        check_is_fitted(self)
        x = validate_data(self, X, reset=False, dtype=np.float64)
        return x @ self.components_.T

    def get_mahalanobis_matrix(self) -> np.ndarray:
        """The matrix A of the squared distances (x - y)' A (x - y); positive definite."""
        check_is_fitted(self)
        return self.components_.T @ self.components_

    def get_metric(self) -> Callable[..., float]:
        """A function ``metric(u, v, squared=False)`` of two points, as scikit-learn's neighbours take it."""
        check_is_fitted(self)
        components = self.components_.copy()

        def metric(u: Any, v: Any, squared: bool = False) -> float:
            """The learnt distance of the points u and v, or its square."""
            image = components @ (np.asarray(u, np.float64) - np.asarray(v, np.float64))
            found = float(image @ image)
            return found if squared else float(np.sqrt(found))

        return metric

    def pair_distance(self, pairs: Any) -> np.ndarray:
        """The learnt distance of the two points of each of the ``pairs``, [n, 2, d] or as for `fit`."""
        check_is_fitted(self)
        ends, n, d = read_pairs(pairs, getattr(self, "preprocessor", None))
        if d != self.components_.shape[1]:
            raise InputError(f"pairs have {d} features, but the metric was learnt with {self.components_.shape[1]}")
        a, b = ends(0, n)
        return np.linalg.norm((a - b) @ self.components_.T, axis=1)

    def pair_score(self, pairs: Any) -> np.ndarray:
        """Minus the learnt distance of each of the ``pairs``: the larger, the more similar."""
        return -self.pair_distance(pairs)

    def _draws(self) -> Draws | None:
        """What `n_sampled` asks for."""
        count = self.n_sampled
        if count is None:
            return None
        if not isinstance(count, Integral) or count < 1:
            raise InputError(f"n_sampled must be a positive whole number or None, found {count!r}")
        return Draws(int(count), int(check_random_state(self.random_state).randint(2**31 - 1)))

    def _learn(self, task: Task) -> None:
        limits = Limits(
            workspace=self.workspace,
            restart=self.restart,
            memory=self.memory,
            workers=self.workers,
            max_iter=self.max_iter,
            max_time=self.max_time,
            callback=self.callback,
            progress=self.progress,
        )
        learnt = learn(task, self.method, self.tol, limits, self._draws())
        self.components_ = learnt.components
        self.bounds_ = np.array([task.source.terms.upper, task.source.terms.lower])
        self.objective_, self.lower_bound_, self.gap_ = learnt.objective, learnt.lower_bound, learnt.gap
        self.n_iter_, self.n_passes_, self.n_projections_ = learnt.steps, learnt.looks, learnt.projections
        self.status_, self.history_ = learnt.status, learnt.history
        self.n_dropped_ = task.dropped
        self._n_features_out = len(learnt.components)

    @property
    def converged(self) -> bool:
        """Whether the gap was met."""
        check_is_fitted(self)
        return self.status_ == "converged"


class ITML(_Mahalanobis):
    """Learn a metric from pairs that are similar or dissimilar.

    The matrix A minimises its LogDet divergence from a prior, plus a weight times t - log t - 1 for each similar pair
    with t = p / bounds_[0] above one and each dissimilar one with t = p / bounds_[1] below one, p its squared distance.

    Parameters
    ----------
    gamma : float
        Weight of the pairs against the prior: gamma times the number of features is spread evenly, one half over the
        similar pairs and one over the dissimilar ones. So it means the same for 80 pairs and for 40 million.
    prior : {"identity", "covariance"} or array
        The matrix to stay near: the identity, the inverse covariance of the points, or a positive definite matrix.
    standardize : bool
        Let the identity be that of standardised features: the prior then is the diagonal of inverse variances.
        Constant columns are left as they are. It changes nothing for other priors.
    method : {"newton", "project_and_forget"}
        Newton steps in the matrix, with one look at all pairs each; or projections onto remembered pairs, as in the
        paper, to compare with.
    n_sampled : int or None
        For projections: draw so many similar and so many dissimilar pairs at random for each step, as in the paper
        (50 times the squared number of classes), and look at all pairs at every tenth step only. None: look at all.
    preprocessor : array or callable, optional
        The points that pairs of numbers name, or a function that returns the points of given numbers.
    max_iter : int or None
        Stop after so many steps.
    tol : float
        Stop when the relative gap between objective and lower bound is at most this.
    random_state : int, RandomState or None
        Of the pairs drawn with ``n_sampled``. To go on from a workspace by another fit it must be a number.
    memory : int or str, optional
        Budget in bytes, or like "500MB". What is held does not grow with the number of pairs, but for their labels.
    workers : int, optional
        Threads; the answer does not depend on it. None: one a core.
    max_time : float or str, optional
        Stop after so many seconds, or after a time like "6h".
    workspace : path, optional
        Keep the state here, and continue from it when fitted again with the same pairs and parameters, or by
        `ooc_pf.resume`, whose result has the ``components``: up to 1 GB of points or pairs are kept with it.
    restart : bool
        Discard the progress in the workspace.
    callback : callable, optional
        Called with a dict after each step; a true answer ends the fit.
    progress : bool
        Show progress on stderr.

    Attributes
    ----------
    components_ : array [d, d]
        The linear map of `transform`.
    bounds_ : array [2]
        Squared distances: by default the 5th and the 95th percentile of those under the prior.
    objective_, lower_bound_, gap_ : float
        Value at the matrix, what no matrix can do better than, and their relative difference.
    n_iter_, n_passes_, n_projections_ : int
        Steps, looks at all pairs, and projections. A sample of pairs is solved first, which is not counted.
    status_, history_ : str, list of dict
        "converged", or why the fit ended; and a record for each step.
    n_dropped_ : int
        Pairs of equal points, which no metric can tell apart and are left out.

    Notes
    -----
    The larger gamma, the more looks Newton steps take. On the data of ``tools/bench/README.md`` no more than 32 were
    needed up to gamma = 1,000. At 10,000 it was 19 for up to 33 features, and 256 for the 57 of spambase. There nearly
    every step is too long at first, is cut short, and so takes two looks; the
    lower bound is worth little until the last few.

    Examples
    --------
    >>> import numpy as np, ooc_pf as pf
    >>> points = np.array([[0.0, 0.0], [0.0, 3.0], [1.0, 0.0], [1.0, 3.0]])
    >>> pairs = points[[[0, 1], [2, 3], [0, 2], [1, 3]]]
    >>> model = pf.ITML(standardize=False).fit(pairs, [1, 1, -1, -1])
    >>> matrix = model.get_mahalanobis_matrix()
    >>> bool(matrix[0, 0] > 1 > matrix[1, 1]), model.status_
    (True, 'converged')
    """

    def __init__(
        self,
        gamma: float = 10.0,
        *,
        prior: Any = "identity",
        standardize: bool = True,
        method: str = "newton",
        n_sampled: int | None = None,
        preprocessor: Any = None,
        max_iter: int | None = 500,
        tol: float = 1e-6,
        random_state: Any = None,
        memory: int | str | None = None,
        workers: int | None = None,
        max_time: float | str | None = None,
        workspace: Any = None,
        restart: bool = False,
        callback: Callable[[dict[str, Any]], Any] | None = None,
        progress: bool = False,
    ):
        keep_parameters(self, locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.target_tags.required = True
        return tags

    def fit(self, pairs: Any, y: Any = None, bounds: Any = None) -> "ITML":
        """Learn from pairs.

        Parameters
        ----------
        pairs : array [n, 2, d], or [n, 2] with a preprocessor
            Anything that can be sliced; read a part at a time, so a memory map need not fit the memory. Or blocks
            ``(pairs, y)``: an iterator, or a function that returns one. They are read once, into a temporary file.
        y : array [n]
            1 for similar pairs, -1 for dissimilar ones. There may be one kind only. Left out if pairs come in blocks.
        bounds : (float, float), optional
            Squared distances: similar pairs should be below the first, dissimilar ones above the second.
        """
        if are_blocks(pairs):
            if y is not None:
                raise InputError("pairs that come in blocks bring their labels, as (pairs, y); leave out y")
            with spooled(pairs) as (pairs, y):
                return self._fit(pairs, y, bounds)
        if y is None:
            raise InputError("ITML requires y to be passed, but the target y is None")
        return self._fit(pairs, y, bounds)

    def _fit(self, pairs: Any, y: Any, bounds: Any) -> "ITML":
        ends, n, d = read_pairs(pairs, self.preprocessor)
        sign = read_signs(y, n)
        gamma = read_gamma(self.gamma)
        self.n_features_in_ = d
        self._learn(listed_pairs_task(ends, sign, gamma, self.prior, self.standardize, bounds))
        return self


class ITML_Supervised(_Mahalanobis):
    """Learn a metric from points with classes: pairs of one class are similar, all others dissimilar.

    The problem is that of `ITML`; other attributes are those there.

    Parameters
    ----------
    n_constraints : int or None
        Learn from so many similar and so many dissimilar pairs, drawn at random. None: from all pairs, so that the
        answer depends on no seed.
    gamma, prior, standardize, method, n_sampled, max_iter, tol : optional
        As of `ITML`.
    random_state : int, RandomState or None
        Of the pairs drawn.
    memory, workers, max_time, workspace, restart, callback, progress : optional
        As of `ITML`.

    Attributes
    ----------
    classes_ : array
        The classes.

    Examples
    --------
    >>> import numpy as np, ooc_pf as pf
    >>> rng = np.random.default_rng(0)
    >>> classes = rng.integers(0, 2, 60)
    >>> points = rng.normal(size=(60, 3)) + np.outer(classes, [4, 0, 0])
    >>> model = pf.ITML_Supervised().fit(points, classes)
    >>> model.transform(points).shape, model.gap_ <= 1e-6, int(np.argmax(np.diag(model.get_mahalanobis_matrix())))
    ((60, 3), True, 0)
    """

    def __init__(
        self,
        gamma: float = 10.0,
        *,
        n_constraints: int | None = None,
        prior: Any = "identity",
        standardize: bool = True,
        method: str = "newton",
        n_sampled: int | None = None,
        max_iter: int | None = 500,
        tol: float = 1e-6,
        random_state: Any = None,
        memory: int | str | None = None,
        workers: int | None = None,
        max_time: float | str | None = None,
        workspace: Any = None,
        restart: bool = False,
        callback: Callable[[dict[str, Any]], Any] | None = None,
        progress: bool = False,
    ):
        keep_parameters(self, locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any, bounds: Any = None) -> "ITML_Supervised":
        """Learn from points.

        Parameters
        ----------
        X : array [n, d]
        y : array [n]
            Classes, at least two.
        bounds : (float, float), optional
            As of `ITML.fit`.
        """
        x, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        self.classes_, classes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(f"y has one class only ({self.classes_[0]}); at least two are needed")
        gamma, count = read_gamma(self.gamma), self.n_constraints
        if count is None:
            self._learn(all_pairs_task(x, classes, gamma, self.prior, self.standardize, bounds))
            return self
        if not isinstance(count, Integral) or count < 1:
            raise InputError(f"n_constraints must be a positive whole number or None, found {count!r}")
        a, b = draw_pairs(classes, int(count), check_random_state(self.random_state))
        sign = np.where(classes[a] == classes[b], 1, -1).astype(np.int8)

        def ends(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
            return x[a[first:last]], x[b[first:last]]

        self._learn(listed_pairs_task(ends, sign, gamma, self.prior, self.standardize, bounds))
        return self
