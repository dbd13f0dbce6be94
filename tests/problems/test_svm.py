"""Linear support vector machines: the answer, its certificate, and the same bits however the rows are given."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import ooc_pf as pf
from ooc_pf.svm import settings as numbers
from tests.gallery import labelled_rows
from tests.naive import svm as naive
from tests.naive.svm import signs


@pytest.fixture
def rows(rng):
    return labelled_rows(rng, 900, 7)


@pytest.fixture
def small_parts(monkeypatch):
    """Rows are cut into many parts and tiles, and even small tables are sampled."""
    monkeypatch.setattr(numbers, "PART_ENTRIES", 500)
    monkeypatch.setattr(numbers, "TILE_ENTRIES", 120)


# -- scikit-learn's conventions ---------------------------------------------------------------------------------------

ORIGIN = {
    "check_class_weight_classifiers": "a plane through the origin cannot give one class nearly all of the plane; "
    "LinearSVC(fit_intercept=False) fails as well"
}


def expected_failures(model):
    return {} if model.fit_intercept else ORIGIN


@pytest.mark.long
@parametrize_with_checks(
    [pf.LinearSVM(), pf.LinearSVM(fit_intercept=True), pf.LinearSVM(method="stochastic", fit_intercept=True)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_finds_what_it_expects(estimator, check):
    check(estimator)


def test_without_scikit_learn_the_class_says_what_to_install():
    code = """
import sys
sys.modules["sklearn"] = sys.modules["sklearn.base"] = None
from ooc_pf import *
try:
    LinearSVM(C=2.0)
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "LinearSVM needs scikit-learn 1.6 or newer: pip install 'ooc_pf[learn]'"


# -- the answer -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_it_is_the_answer_of_liblinear(rows, C):
    X, y = rows
    model = pf.LinearSVM(C=C, tol=1e-13).fit(X, y)
    # Its C is twice ours: it does not halve the loss.
    other = LinearSVC(C=C / 2, dual=False, loss="squared_hinge", fit_intercept=False, tol=1e-10).fit(X, y)
    assert model.status_ == "converged" and model.gap_ <= 1e-13
    assert np.allclose(model.coef_, other.coef_, rtol=1e-6, atol=1e-8)
    assert np.array_equal(model.predict(X), other.predict(X))


@pytest.mark.parametrize("intercept", [False, True])
def test_it_is_the_answer_of_an_interior_point_method(rng, intercept):
    X, y = labelled_rows(rng, 80, 5)
    s = rng.uniform(0.0, 2.0, 80)
    w, b, value = naive.optimum(X, signs(y), s, 3.0, intercept)
    model = pf.LinearSVM(C=3.0, fit_intercept=intercept, tol=1e-12).fit(X, y, sample_weight=s)
    assert model.objective_ == pytest.approx(value, rel=1e-8)
    assert np.allclose(model.coef_[0], w, atol=1e-5)
    assert model.intercept_[0] == pytest.approx(b if intercept else 0.0, abs=1e-5)


def test_it_is_the_answer_of_project_and_forget(rng):
    X, y = labelled_rows(rng, 120, 4)
    model = pf.LinearSVM(C=2.0, class_weight={0: 0.5, 1: 2.0})
    general = clone(model).set_params(method="project_and_forget", tol=1e-9).fit(X, y)
    model.fit(X, y)
    assert general.lower_bound_ == pytest.approx(model.objective_, rel=1e-6)
    assert np.allclose(model.coef_, general.coef_, atol=1e-4)
    with pytest.raises(pf.InputError, match="has no intercept"):
        general.set_params(fit_intercept=True).fit(X, y)
    with pytest.raises(pf.InputError, match="is for two classes"):
        general.set_params(fit_intercept=False).fit(X, np.arange(120) % 3)


def test_classes_are_set_against_the_rest(rng):
    X, y = labelled_rows(rng, 600, 5, classes=4)
    names = np.array(["a", "b", "c", "d"])[y]
    model = pf.LinearSVM(C=5.0, fit_intercept=True).fit(X, names)
    assert model.coef_.shape == (4, 5) and model.decision_function(X).shape == (600, 4)
    total = 0.0
    for at, name in enumerate("abcd"):
        one = pf.LinearSVM(C=5.0, fit_intercept=True).fit(X, names == name)
        assert np.allclose(model.coef_[at], one.coef_[0], atol=1e-5)
        total += one.objective_
    assert model.objective_ == pytest.approx(total, rel=1e-8)


def test_weights_are_repetitions(rows, rng):
    X, y = rows
    count = rng.integers(0, 4, len(y))
    weighted = pf.LinearSVM(fit_intercept=True, tol=1e-12).fit(X, y, sample_weight=count)
    repeated = pf.LinearSVM(fit_intercept=True, tol=1e-12).fit(np.repeat(X, count, axis=0), np.repeat(y, count))
    assert np.allclose(weighted.coef_, repeated.coef_, rtol=1e-7)
    by_class = pf.LinearSVM(class_weight={0: 2.0, 1: 0.5}, tol=1e-12).fit(X, y)
    by_row = pf.LinearSVM(tol=1e-12).fit(X, y, sample_weight=np.where(y == 1, 0.5, 2.0))
    assert np.allclose(by_class.coef_, by_row.coef_, rtol=1e-9)


# -- the certificate --------------------------------------------------------------------------------------------------


@hypothesis_settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(0, 10**6), st.integers(2, 40), st.integers(1, 6), st.floats(1e-3, 1e3), st.booleans(), st.integers(0, 9)
)
def test_the_bounds_hold_wherever_a_run_stops(seed, n, d, C, intercept, passes):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)) * rng.choice([0.01, 1.0, 30.0]) + rng.normal(), np.arange(n) % 2
    s = rng.uniform(0.1, 2.0, n)
    *_, best = naive.optimum(X, signs(y), s, C, intercept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = pf.LinearSVM(C=C, fit_intercept=intercept, max_iter=passes, workers=1).fit(X, y, sample_weight=s)
    value = naive.objective(X, signs(y), s, C, model.coef_[0], model.intercept_[0])
    assert model.objective_ == pytest.approx(value, rel=1e-9)
    assert model.lower_bound_ <= best * (1 + 1e-6) and best <= value * (1 + 1e-6)
    if model.status_ == "converged":
        assert model.gap_ <= 1e-8


def test_without_an_intercept_the_gap_is_no_more_than_half_the_squared_gradient(rows):
    X, y = rows
    for passes in range(1, 8):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = pf.LinearSVM(C=2.0, max_iter=passes).fit(X, y)
        w, sign = model.coef_[0], signs(y)
        gradient = w - X.T @ (sign * 2.0 * np.maximum(0.0, 1.0 - sign * (X @ w)))
        if len([record for record in model.history_ if "gap" in record]) > 0:
            assert model.objective_ - model.lower_bound_ <= 0.5 * gradient @ gradient + 1e-9 * model.objective_


def test_a_step_that_goes_too_far_is_searched_along(rng, monkeypatch):
    """Steps three times too long: the search finds the way back, and the answer is the same."""
    from ooc_pf.svm import schedule

    X, y = labelled_rows(rng, 300, 5)
    right = pf.LinearSVM(C=10.0).fit(X, y)
    step = schedule.newton_step
    monkeypatch.setattr(schedule, "newton_step", lambda *system: 3.0 * step(*system))
    long = pf.LinearSVM(C=10.0).fit(X, y)
    assert {"search", "newton"} <= {record["stage"] for record in long.history_}
    assert long.status_ == "converged" and np.allclose(long.coef_, right.coef_, atol=1e-4)


def test_many_features_are_solved_by_conjugate_gradients(rng, monkeypatch):
    X, y = labelled_rows(rng, 500, 12, classes=3)
    for form in (X, sparse.csr_array(X)):
        dense = pf.LinearSVM(fit_intercept=True).fit(form, y)
        with monkeypatch.context() as patch:
            patch.setattr(numbers, "DENSE_ENTRIES", 100)
            thin = pf.LinearSVM(fit_intercept=True).fit(form, y)
        assert thin.status_ == "converged" and thin.n_passes_ > thin.n_iter_
        assert np.allclose(thin.coef_, dense.coef_, atol=1e-3)


# -- the same rows in other forms -------------------------------------------------------------------------------------


class Blocks:
    """Blocks that can only be gone through, as often as one likes."""

    def __init__(self, *blocks):
        self.blocks = blocks

    def __iter__(self):
        return iter(self.blocks)


@pytest.mark.parametrize("method", ["newton", "stochastic"])
def test_the_same_bits_from_memory_and_from_disk(rows, tmp_path, small_parts, method):
    X, y = rows
    model = pf.LinearSVM(method=method, max_iter=None if method == "newton" else 3)
    model.fit(X, y)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for workers in (1, 3):
        same = clone(model).set_params(workers=workers).fit(np.asfortranarray(X), y)
        assert np.array_equal(model.coef_, same.coef_)
    again = clone(model).fit(mapped, y)
    assert np.array_equal(model.coef_, again.coef_)
    assert np.array_equal(model.predict(X), again.predict(mapped))
    stored = zarr.create_array(tmp_path / "X.zarr", shape=X.shape, chunks=(numbers.PART_ENTRIES // 7, 7), dtype="f8")
    stored[:] = X
    assert np.array_equal(model.coef_, clone(model).fit(stored, y).coef_)


@pytest.mark.parametrize("method", ["newton", "stochastic"])
@pytest.mark.parametrize("form", ["csr", "csc", "float32", "list", "integers"])
def test_other_forms_of_the_same_rows(rows, method, form, small_parts):
    X, y = rows
    X = np.round(4 * X).astype(np.float32)  # exact in every form
    how = {"csr": sparse.csr_array, "csc": sparse.csc_matrix, "list": np.ndarray.tolist, "float32": np.asarray}
    model = pf.LinearSVM(method=method, max_iter=None if method == "newton" else 3, fit_intercept=True)
    other = clone(model).fit(how.get(form, lambda X: X.astype(int))(X), y)
    model.fit(X.astype(np.float64), y)
    if method == "newton" or form not in ("csr", "csc"):  # cut into parts by their entries
        assert np.allclose(model.coef_, other.coef_, rtol=1e-3, atol=1e-5)
    assert np.mean(model.predict(X) == other.predict(X)) > 0.95


@pytest.mark.parametrize("make", [list, tuple, lambda blocks: Blocks(*blocks)], ids=["list", "tuple", "iterable"])
@pytest.mark.parametrize("sparse_blocks", [False, True])
def test_blocks(rows, make, sparse_blocks):
    X, y = rows
    cuts = [100, 101, 500]
    blocks = [sparse.csr_array(block) if sparse_blocks else block for block in np.split(X, cuts)]
    whole = pf.LinearSVM(tol=1e-12).fit(X, y)
    for labels in (y, np.split(y, cuts)):
        model = pf.LinearSVM(tol=1e-12).fit(make(blocks), labels)
        assert np.allclose(model.coef_, whole.coef_, rtol=1e-8)
    assert np.array_equal(model.predict(make(blocks)), whole.predict(X))
    fast = pf.LinearSVM(method="stochastic").fit(make(blocks), y)
    assert fast.score(X, y) > whole.score(X, y) - 0.03


def test_rows_sorted_by_class_are_sampled_well(rng, small_parts):
    X, y = labelled_rows(rng, 4000, 4)
    order = np.argsort(y, kind="stable")
    model = pf.LinearSVM(fit_intercept=True).fit(X[order], y[order])
    assert model.status_ == "converged" and model.n_passes_ < 12
    fast = pf.LinearSVM(method="stochastic", fit_intercept=True).fit(X[order], y[order])
    assert fast.score(X, y) > model.score(X, y) - 0.02


# -- workspaces, limits -----------------------------------------------------------------------------------------------


def test_an_interrupted_fit_goes_on_to_the_same_bits(rows, tmp_path, small_parts):
    X, y = rows
    whole = pf.LinearSVM(C=50.0, fit_intercept=True).fit(X, y)
    model = pf.LinearSVM(C=50.0, fit_intercept=True, workspace=tmp_path / "run.pf", callback=lambda record: True)
    for done in range(1, 40):
        model.fit(X, y)
        if model.status_ == "converged":
            break
        assert (model.status_, model.n_iter_) == ("callback", done)
    assert np.array_equal(model.coef_, whole.coef_) and model.n_iter_ == whole.n_iter_
    assert model.lower_bound_ == whole.lower_bound_
    assert pf.verify(tmp_path / "run.pf")["lower_bound"] == whole.lower_bound_
    assert "svm" in pf.report(tmp_path / "run.pf")
    other = X.copy()
    other[0, 0] += 1.0
    with pytest.raises(pf.WorkspaceError, match="another table of rows"):
        model.fit(other, y)
    with pytest.raises(pf.WorkspaceError, match=r"C: 50\.0 then, 51\.0 now"):
        model.set_params(C=51.0).fit(X, y)
    assert model.set_params(restart=True, callback=None).fit(X, y).status_ == "converged"


def test_no_time_leaves_what_is_known_without_looking(rows, tmp_path):
    X, y = rows
    for place in (None, tmp_path / "run.pf"):
        model = pf.LinearSVM(max_time=0.0, workspace=place).fit(X, y)
        assert (model.status_, model.lower_bound_, model.objective_) == ("time_limit", 0.0, 450.0)
        assert not model.coef_.any()
    with pytest.warns(ConvergenceWarning, match="iteration_limit"):
        model = pf.LinearSVM(max_iter=1).fit(X, y)
    assert model.objective_ < 450.0


def test_budgets(rng, tmp_path, small_parts):
    X, y = labelled_rows(rng, 900, 7)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    whole = pf.LinearSVM().fit(X, y)
    with pytest.raises(pf.BudgetError, match="least that will do is") as caught:
        pf.LinearSVM(memory="1MB").fit(mapped, y)
    least = int(str(caught.value).split("is ")[-1].split(" bytes")[0].replace(",", ""))
    assert np.array_equal(pf.LinearSVM(memory=least, workers=2).fit(mapped, y).coef_, whole.coef_)
    with pytest.raises(pf.BudgetError, match="least"):
        pf.LinearSVM(method="stochastic", memory="1MB").fit(mapped, y)


# -- the stochastic method --------------------------------------------------------------------------------------------


def test_the_stochastic_answer_is_the_mean_of_the_last_three_quarters(rng):
    X, y = labelled_rows(rng, 64, 3)
    model = pf.LinearSVM(method="stochastic", max_iter=2, random_state=5).fit(X, y)
    assert (model.lower_bound_, model.gap_, model.objective_, model.status_) == (None, None, None, "finished")
    # Two passes in the order that the generator gives: runs of one row, dealt and then shuffled.
    drawn, order = np.random.default_rng(5), []
    for _ in range(2):
        dealt = drawn.permutation(64)
        order.extend(dealt[drawn.permutation(64)])
    iterates = naive.ascend(X, signs(y), np.ones(64), 1.0, order, np.zeros(3), np.zeros(64))
    assert np.allclose(model.coef_[0], np.mean(iterates[32:], axis=0))


def test_more_rows_by_partial_fit(rng):
    X, y = labelled_rows(rng, 6000, 5)
    exact = pf.LinearSVM(C=100.0).fit(X, y)
    model = pf.LinearSVM(C=100.0, method="stochastic")
    for first in range(0, 6000, 500):
        model.partial_fit(X[first : first + 500], y[first : first + 500], classes=[0, 1])
    assert model.score(X, y) > exact.score(X, y) - 0.01
    with pytest.raises(pf.InputError, match="has the class 7"):
        model.partial_fit(X[:10], np.full(10, 7))
    with pytest.raises(pf.InputError, match="classes were"):
        model.partial_fit(X[:10], y[:10], classes=[0, 2])
    with pytest.raises(pf.InputError, match="on the first call"):
        clone(model).partial_fit(X[:10], y[:10])
    with pytest.raises(AttributeError, match="partial_fit"):
        _ = exact.partial_fit
