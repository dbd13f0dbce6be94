"""L2 support vector machines: squared hinge loss, on rows that may be larger than memory."""

import contextlib
from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..engine.family import Given
from ..engine.limits import Limits
from ..engine.monitor import Monitor
from ..engine.result import Result
from ..engine.run import solve
from ..errors import InputError
from ..objectives import quadratic
from ..svm import stochastic
from ..svm.data import SvmData
from ..svm.family import SVM
from ..svm.inputs import Table, is_blocks, read_table
from ..svm.labels import as_matrix, class_weights, encode_labels, read_weights, soft_rows
from ..svm.program import Program, check_block
from .project_and_forget import project_and_forget
from .scikit import BaseEstimator, ClassifierMixin, available_if, keep_parameters, seed_of, warn_if_stopped

METHODS = ("newton", "stochastic", "project_and_forget")
MOST_PASSES = 1000


def _is_stochastic(model: "LinearSVM") -> bool:
    if model.method != "stochastic":
        raise AttributeError(f"partial_fit is for method='stochastic', not {model.method!r}")
    return True


class LinearSVM(ClassifierMixin, BaseEstimator):
    """Linear support vector machine with squared hinge loss, certified, on rows read by blocks.

    It minimises 1/2 |w|^2 + C/2 sum s_i max(0, 1 - y_i (w x_i + b))^2, for each class against the rest where there are
    more than two. The intercept b is not penalised.

    Parameters
    ----------
    C : float
        What a unit of loss costs.
    method : {"newton", "stochastic", "project_and_forget"}
        "newton": semi-smooth Newton steps from a start on a random sample, a handful of passes to an answer with a
        proven gap. "stochastic": the paper's truly stochastic projections (randomised dual coordinate ascent), with
        averaged iterates: as accurate a classifier in one pass, of which nothing is proven. "project_and_forget": the
        general method on one constraint a row, for small data, to compare with.
    fit_intercept : bool
        Whether there is an intercept. "stochastic" treats it as the weight of a column of ones, so that it is
        penalised a little.
    tol : float
        Stop when the relative gap between objective and lower bound is at most this, for every class.
    class_weight : dict or "balanced", optional
        Weight of the rows of each class, beside that of the row; "balanced": inversely proportional to their number.
    max_iter : int, optional
        Iterations at most; of "stochastic", projections for each row. None: 1000, and of "stochastic" as many as make
        a million in all.
    max_time : float or str, optional
        Stop after so many seconds, or after a time like "6h".
    memory : int or str, optional
        Budget in bytes, or like "500MB", for what is held beyond the interpreter and what the caller holds.
    workers : int, optional
        Threads that work on blocks; the answer does not depend on it. None: one a core.
    workspace : path, optional
        Keep the state of "newton" here after every iteration, and continue from it when fitted again with the same
        rows and parameters.
    restart : bool
        Discard the progress in the workspace.
    random_state : int, RandomState or None
        Of the samples and the order of projections. None is 0: the same result every time.
    callback : callable, optional
        Called with a dict after each iteration of "newton"; a true answer stops the run.
    progress : bool
        Show progress on stderr.

    Attributes
    ----------
    coef_, intercept_ : (1 or classes, features) array, (1 or classes,) array
    classes_, n_features_in_ : array, int
    objective_ : float
        F at the answer, the sum over classes; None for "stochastic".
    lower_bound_ : float or None
        Proven: nothing does better. None for "stochastic", which proves nothing.
    gap_ : float or None
        (objective_ - lower_bound_) / lower_bound_.
    n_iter_ : int
        Iterations, those on samples included; of "stochastic", passes.
    n_passes_ : float
        Rows read, as a multiple of all rows.
    status_ : str
        "converged", or why the run stopped; "finished" for "stochastic".
    history_ : list of dict
        One record an iteration.

    Notes
    -----
    X may be an array (float32 stays float32), a memory map, a zarr array, a scipy.sparse matrix, or a sequence or
    iterable of blocks of rows. It is never copied as a whole. Beside a few blocks a fit holds three bytes a row, two
    more for every class beyond two, and with up to a few thousand features a Hessian for each class. Beyond that
    Newton steps are found by conjugate gradients, which go through the rows once a step.

    Examples
    --------
    >>> import numpy as np, ooc_pf as pf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 5))
    >>> y = X[:, 0] + 0.5 * rng.normal(size=2000) > 0
    >>> model = pf.LinearSVM(C=10.0).fit(X, y)
    >>> model.gap_ <= 1e-8, bool(model.score(X, y) > 0.84)
    (True, True)
    """

    objective_: float | None
    lower_bound_: float | None
    gap_: float | None

    def __init__(
        self,
        C: float = 1.0,
        *,
        method: str = "newton",
        fit_intercept: bool = False,
        tol: float = 1e-8,
        class_weight: dict[Any, float] | str | None = None,
        max_iter: int | None = None,
        max_time: float | str | None = None,
        memory: int | str | None = None,
        workers: int | None = None,
        workspace: Any = None,
        restart: bool = False,
        random_state: Any = None,
        callback: Callable[[dict[str, Any]], Any] | None = None,
        progress: bool = False,
    ):
        keep_parameters(self, locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # -- fitting ------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LinearSVM":
        """Fit to rows X with labels y; where X comes in blocks, y may too. ``sample_weight`` is by row."""
        self._check_parameters()
        table = self._table(X, reset=True)
        labels = _read_labels(y, table.rows)
        self.classes_ = np.unique(labels)
        program = self._program(table, labels, sample_weight)
        with one_thread_a_call():
            getattr(self, f"_fit_{self.method}")(program)
        return self

    def _fit_newton(self, program: Program) -> None:
        result = fit_newton(program, tol=self.tol, seed=seed_of(self.random_state), **self._limits())
        self._take(result, result.x.reshape(-1, program.width), program)
        read = sum(record["relaxed"] + record.get("read", 0) for record in result.history)
        self.n_passes_ = read / program.table.rows

    def _fit_project_and_forget(self, program: Program) -> None:
        """One soft constraint a row, on the general engine."""
        if program.border:
            raise InputError("method='project_and_forget' has no intercept; leave out fit_intercept, or use 'newton'")
        if len(self.classes_) > 2:
            raise InputError("method='project_and_forget' is for two classes; use 'newton' for more")
        A, b, weights = soft_rows(program)
        objective = quadratic(np.zeros(len(weights)), weights)
        result = project_and_forget(objective, (A, b), tol=self.tol, seed=seed_of(self.random_state), **self._limits())
        self._take(result, result.x[None, : program.width], program)
        self.n_passes_ = sum(record["relaxed"] for record in result.history) / program.table.rows

    def _take(self, result: Result, w: np.ndarray, program: Program) -> None:
        self._set_weights(w, program)
        self.objective_, self.lower_bound_, self.gap_ = result.objective, result.lower_bound, result.gap
        self.n_iter_, self.status_, self.history_ = result.n_iter, result.status, result.history
        warn_if_stopped(result, self.tol)

    def _fit_stochastic(self, program: Program) -> None:
        if self.workspace is not None:
            raise InputError("method='stochastic' keeps no state; leave out workspace=, or use method='newton'")
        epochs = stochastic.epochs_for(program.table.rows) if self.max_iter is None else self.max_iter
        stochastic.check_memory(program, epochs, self.memory)
        limits = Limits(max_time=self.max_time, progress=self.progress)
        limits.check()
        start = np.zeros((len(program.positive), program.width))
        state, status = stochastic.ascend(program, start, epochs, seed_of(self.random_state), limits.monitor())
        self._set_weights(state.mean(), program)
        self._last, self._mean, self._step = state.w, state.mean(), state.step
        self.objective_ = self.lower_bound_ = self.gap_ = None
        self.n_iter_, self.status_, self.history_ = epochs, status, []
        self.n_passes_ = state.step / program.table.rows

    @available_if(_is_stochastic)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> "LinearSVM":
        """Go on with more rows, each projected onto once; only for ``method="stochastic"``.

        Nothing is remembered of earlier rows but w and the mean of its iterates, in which those of the first quarter
        count little.

        Parameters
        ----------
        X, y : rows and labels
        classes : array, optional
            All labels there will be; needed in the first call.
        sample_weight : array, optional
            By row.

        Returns
        -------
        self
        """
        self._check_parameters()
        first = not hasattr(self, "_last")
        if first and classes is None:
            raise InputError("classes must be passed on the first call to partial_fit: all labels there will be")
        table = self._table(X, reset=first)
        if first:
            self.classes_ = np.unique(classes)
            if len(self.classes_) < 2:
                raise InputError(f"classes needs at least two classes, found one class: {self.classes_.tolist()}")
        elif classes is not None and not np.array_equal(self.classes_, np.unique(classes)):
            raise InputError(f"classes were {self.classes_.tolist()} in the first call, now {list(classes)}")
        labels = _read_labels(y, table.rows)
        unknown = np.setdiff1d(labels, self.classes_)
        if len(unknown):
            raise InputError(
                f"y has the class {unknown.tolist()[0]!r}, which was not among the classes of the first call"
            )
        program = self._program(table, labels, sample_weight, whole=False)
        if first:
            self._last, self._step = np.zeros((len(program.positive), program.width)), 0
            self._mean = self._last
        seed = seed_of(self.random_state) + self._step
        state, self.status_ = stochastic.ascend(program, self._last, 1, seed, Monitor(), 0.0)
        self._mean = self._mean + (1.0 - (self._step / (self._step + state.step)) ** 3) * (state.mean() - self._mean)
        self._last, self._step = state.w, self._step + state.step
        self._set_weights(self._mean, program)
        self.objective_ = self.lower_bound_ = self.gap_ = None
        self.n_iter_, self.n_passes_, self.history_ = 1, 1.0, []
        return self

    def _set_weights(self, w: np.ndarray, program: Program) -> None:
        d = program.table.columns
        self.coef_ = np.array(w[:, :d])
        self.intercept_ = np.array(w[:, d]) if program.border else np.zeros(len(w))

    # -- input --------------------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        check_cost(self.C)
        if self.method not in METHODS:
            raise InputError(f"method must be one of {', '.join(METHODS)}, found {self.method!r}")
        if self.max_iter is not None and not (isinstance(self.max_iter, Integral) and self.max_iter >= 0):
            raise InputError(f"max_iter must be a whole number from 0 on, found {self.max_iter!r}")

    def _limits(self) -> dict[str, Any]:
        most = MOST_PASSES if self.max_iter is None else self.max_iter
        names = ("max_time", "memory", "workers", "workspace", "restart", "callback", "progress")
        return {"max_iter": most, **{name: getattr(self, name) for name in names}}

    def _table(self, X: Any, *, reset: bool) -> Table:
        """X by blocks; in memory it is checked by scikit-learn, but not for numbers that are not finite."""
        from sklearn.utils.validation import validate_data

        on_disk = isinstance(X, np.memmap) or (hasattr(X, "chunks") and hasattr(X, "shape"))
        if not (is_blocks(X) or on_disk):
            kinds = [np.float64, np.float32]
            X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=kinds, ensure_all_finite=False)
            return read_table(X)
        table = read_table(X)
        if reset:
            self.n_features_in_ = table.columns
        elif table.columns != self.n_features_in_:
            raise InputError(
                f"X has {table.columns} features, but LinearSVM is expecting {self.n_features_in_} features"
            )
        return table

    def _program(self, table: Table, labels: np.ndarray, sample_weight: Any, *, whole: bool = True) -> Program:
        classes = self.classes_
        code = encode_labels(labels, classes)
        weight = read_weights(sample_weight, table.rows)
        counts = np.bincount(code, weights=weight > 0.0 if len(weight) else None, minlength=len(classes))
        if whole and len(weight) and not weight.any():
            raise InputError("sample_weight is zero everywhere; at least two classes need rows with a weight")
        if whole and np.count_nonzero(counts) < 2:
            found = classes[counts > 0].tolist()
            raise InputError(f"y needs at least two classes, found one class in the rows that have a weight: {found}")
        positive = (1,) if len(classes) == 2 else tuple(range(len(classes)))
        by_class = class_weights(self.class_weight, classes, counts)
        return Program(table, code, weight, by_class, positive, float(self.C), bool(self.fit_intercept))

    # -- using it -----------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of the rows of X: w x + b, for each class if there are more than two."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        table = self._table(X, reset=False)
        scores = np.empty((table.rows, len(self.coef_)))
        for pieces in table.tasks([[span] for span in table.parts]):
            for first, load in pieces:
                block = load()
                rows = range(first, first + len(block))
                check_block(block, rows)
                scores[rows.start : rows.stop] = as_matrix(block) @ self.coef_.T + self.intercept_
        return scores.ravel() if len(self.coef_) == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row of X."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]


def check_cost(C: Any) -> None:
    """Refuse a C that is not a positive number."""
    if not (isinstance(C, Real) and 0.0 < float(C) < np.inf):
        raise InputError(f"C must be a positive number, found {C!r}")


def fit_newton(program: Program, *, tol: float, seed: int = 0, **limits: Any) -> Result:
    """Solve a program; ``limits`` are those of `metric_nearness`. The x of the result has the classes in turn."""
    options = {"tol": tol, "seed": seed, "C": program.C, "fit_intercept": program.border}
    return solve(SVM, Given(SvmData(program)), options, Limits(**limits))


@contextlib.contextmanager
def one_thread_a_call() -> Iterator[None]:
    """BLAS on one thread: blocks are worked on side by side, and sums must not depend on how BLAS splits them."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        raise ImportError("support vector machines need scikit-learn: pip install 'ooc_pf[learn]'") from None

    with threadpool_limits(1, "blas"):
        yield


# -- labels and weights -----------------------------------------------------------------------------------------------


def _read_labels(y: Any, rows: int) -> np.ndarray:
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import assert_all_finite, column_or_1d

    if y is None:
        raise InputError("LinearSVM requires y to be passed, but the target y is None")
    if is_blocks(y) or (isinstance(y, list | tuple) and len(y) and isinstance(y[0], np.ndarray) and y[0].ndim):
        y = np.concatenate([np.asarray(part) for part in y])
    labels = column_or_1d(y, warn=True)
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    if len(labels) != rows:
        raise InputError(f"X has {rows:,} rows and y {len(labels):,} labels; there must be one a row")
    check_classification_targets(labels)
    return labels
