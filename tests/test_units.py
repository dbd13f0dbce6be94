"""A certificate means the same in any unit: of distances, of weights, of each row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ooc_pf as pf
from ooc_pf.kernels import bregman
from tests.gallery import labelled_rows, random_graph

rng = np.random.default_rng(5)
U, V = random_graph(rng, 40, 160)
D, W = rng.random(len(U)), rng.uniform(0.5, 2.0, len(U))
SIGNED = np.where(rng.random(len(U)) < 0.6, 1.0, -1.0) * rng.uniform(0.5, 2.0, len(U))
TABLE = np.triu(rng.uniform(0.2, 3.0, (30, 30)), 1)
TABLE += TABLE.T
A, CENTER = rng.standard_normal((60, 8)), 3.0 * rng.standard_normal(8)
B = A @ rng.standard_normal(8) + 0.1
SQUARE = rng.standard_normal((6, 6))
SQUARE += SQUARE.T

X, Y = labelled_rows(rng, 300, 3, 3)


def sets(unit):
    return [pf.sets.psd_cone(6), pf.sets.box(unit, unit, on=np.arange(6) * 7)]


quadratic, rows = pf.objectives.quadratic, pf.project_and_forget
# Of each family: the answer where x is measured in another unit, and where the objective is.
CASES = {
    "nearness": (
        lambda unit: pf.metric_nearness((U, V, D * unit)),
        lambda unit: pf.metric_nearness((U, V, D), weights=W * unit),
    ),
    "table": (
        lambda unit: pf.metric_nearness(TABLE * unit),
        lambda unit: pf.metric_nearness(TABLE, weights=(1.0 + TABLE) * unit),
    ),
    "limits": (
        lambda unit: pf.metric_nearness(TABLE * unit, lower=0.1 * unit, upper=2.5 * unit, tol=1e-8),
        lambda unit: pf.metric_nearness(TABLE, lower=0.1, weights=(1.0 + TABLE) * unit, tol=1e-8),
    ),
    "clustering": (None, lambda unit: pf.correlation_clustering((U, V, SIGNED * unit), gamma=1.0, tol=1e-4)),
    "complete": (
        None,
        lambda unit: pf.correlation_clustering((U, V, SIGNED * unit), base=-0.1 * unit, gamma=1.0, tol=1e-4),
    ),
    "linear": (None, lambda unit: pf.correlation_clustering((U, V, SIGNED * unit), gamma=None, tol=1e-4)),
    "rows": (
        lambda unit: rows(quadratic(CENTER * unit), (A, B * unit), tol=1e-9),
        lambda unit: rows(quadratic(CENTER, np.full(8, unit)), (A, B), tol=1e-9),
    ),
    "l1": (
        lambda unit: rows(pf.objectives.l1(CENTER * unit, ridge=1.0 / unit), (A, B * unit)),
        lambda unit: rows(pf.objectives.l1(CENTER, unit, ridge=unit), (A, B)),
    ),
    "p_norm": (lambda unit: rows(pf.objectives.p_norm(CENTER * unit, 3.0), (A, B * unit)), None),
    "sets": (
        lambda unit: pf.project_onto_sets(quadratic(SQUARE.ravel() * unit), sets(unit)),
        lambda unit: pf.project_onto_sets(quadratic(SQUARE.ravel(), np.full(36, unit)), [pf.sets.box(-1.0, 0.5)]),
    ),
}
POWERS = {"nearness", "table", "limits", "clustering", "complete", "linear", "rows", "sets"}
GIVEN = [(name, kind) for name, pair in CASES.items() for kind in (0, 1) if pair[kind] is not None]


@pytest.mark.parametrize("unit", [2.0**-30, 2.0**30])
@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, kind in GIVEN if name in POWERS])
def test_powers_of_two_change_no_bit(name, kind, unit):
    solve = CASES[name][kind]
    one, other = solve(1.0), solve(unit)
    assert one.converged
    assert (one.status, one.n_iter, one.gap) == (other.status, other.n_iter, other.gap)
    assert np.array_equal(np.asarray(one.x) * (1.0 if kind else unit), np.asarray(other.x))
    if kind:
        assert other.lower_bound == one.lower_bound * unit


@pytest.mark.parametrize("unit", [1e-9, 1e9])
@pytest.mark.parametrize(("name", "kind"), GIVEN)
def test_any_unit_gives_the_same_answer(name, kind, unit):
    solve = CASES[name][kind]
    one, other = solve(1.0), solve(unit)
    assert one.converged and other.converged
    x, again = np.asarray(one.x) * (1.0 if kind else unit), np.asarray(other.x)
    assert np.abs(x - again).max() <= 2e-3 * np.abs(x).max()


@given(st.lists(st.integers(-40, 40), min_size=60, max_size=60))
@settings(max_examples=20, deadline=None)
def test_rows_may_be_given_in_any_size_each(exponents):
    size = 2.0 ** np.array(exponents)
    one, other = rows(quadratic(CENTER), (A, B)), rows(quadratic(CENTER), (A * size[:, None], B * size))
    assert np.array_equal(one.x, other.x) and one.n_iter == other.n_iter
    assert one.violation == other.violation, "violations are distances"
    for key, dual in one.duals.items():
        assert dual == other.duals[key] * size[key], "multipliers are those of the rows as they were given"


@pytest.mark.parametrize("unit", [2.0**-60, 2.0**60])
def test_slopes_follow_the_unit_of_the_objective(unit):
    """Where x moves fast with y, because the objective is small, that is how fast it moves."""
    y, zero = rng.standard_normal(8), np.zeros(8)
    for code, power in ((bregman.QUADRATIC, 2.0), (bregman.ENTROPY, 2.0), (bregman.POWER, 3.0), (bregman.POWER, 9.0)):
        for z in (y, np.where(np.arange(8) < 4, y, 0.0)):
            one = bregman.find_slope(code, z, np.ones(8), zero, zero, power)
            other = bregman.find_slope(code, z * unit, np.full(8, unit), zero, zero, power)
            assert np.isfinite(one).all() and np.array_equal(one, other * unit)
    assert not bregman.find_slope(bregman.POWER, zero, np.ones(8), zero, zero, 3.0).any()


@pytest.mark.parametrize("power", [1.5, 3.0])
@pytest.mark.parametrize("unit", [1e-15, 1e15])
def test_slopes_of_powers_follow_the_unit_of_x(unit, power):
    y, zero = rng.standard_normal(8), np.zeros(8)
    y[3] = 0.0
    one, other = (bregman.find_slope(bregman.POWER, z, np.ones(8), zero, zero, power) for z in (y, y * unit))
    assert np.allclose(other, one * unit ** (1.0 / (power - 1.0) - 1.0), rtol=1e-9)


def cubic(unit, size, factor=1.0):
    """A function of the user's with gradient ``size ((x / unit)^3 - c^3)``, and what may be its inverse."""
    c = np.array([1.0 / 3.0, 0.7, -0.2])
    return pf.objectives.separable(
        3,
        lambda x, c: size * ((x / unit) ** 3 - c**3),
        lambda y, c: factor * unit * np.cbrt(y / size + c**3),
        lambda x, c: size * unit * ((x / unit) ** 4 / 4 - c**3 * x / unit),
        parameters=(c,),
    )


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_a_function_of_the_users_is_checked_in_its_own_unit(unit, size):
    one, other = (rows(cubic(*units), ([[1.0, 1.0, 1.0]], [0.5 * units[0]])) for units in ((1.0, 1.0), (unit, size)))
    assert one.converged and other.converged
    assert np.allclose(one.x * unit, other.x, rtol=1e-4, atol=1e-4 * unit)
    with pytest.raises(pf.InputError, match="not inverse"):
        cubic(unit, size, 1.001)


def margins(unit, intercept):
    """The first plane in any unit of the features."""
    model = pf.LinearSVM(C=2.0 / unit**2, fit_intercept=intercept, tol=1e-8).fit(X * unit, Y)
    return model.coef_ * unit, model.intercept_, model.n_iter_, model.status_


def metric(unit, method):
    """The distances of some pairs in any unit of the points."""
    tol = 1e-12 if method == "newton" else 1e-5
    model = pf.ITML_Supervised(50.0, prior=np.eye(3) / unit**2, method=method, tol=tol).fit(X[:40] * unit, Y[:40])
    return model.get_mahalanobis_matrix() * unit**2, model.bounds_, model.n_iter_, model.status_


LEARNERS = [(margins, False), (margins, True), (metric, "newton"), (metric, "project_and_forget")]


@pytest.mark.long
@pytest.mark.parametrize(("learn", "how"), LEARNERS)
def test_what_is_learnt_does_not_depend_on_the_unit_of_the_features(learn, how):
    one = learn(1.0, how)
    assert one[-1] == "converged"
    for unit in (2.0**-30, 2.0**30):
        assert all(np.array_equal(a, b) for a, b in zip(one, learn(unit, how), strict=True))
    for unit in (1e-9, 1e9):
        other = learn(unit, how)
        assert np.abs(one[0] - other[0]).max() <= 1e-5 * np.abs(one[0]).max() and other[-1] == "converged"


@pytest.mark.long
@pytest.mark.parametrize("gamma", [None, 1.0, "distances"])
def test_powers_of_two_change_no_bit_of_what_is_laid_out_for_disk(tmp_path, gamma):
    found = []
    for unit in (1.0, 2.0**-30, 2.0**30):
        how = {"external": True, "workspace": tmp_path / f"{unit}.pf"}
        if gamma == "distances":
            result = pf.metric_nearness((U, V, D), weights=W * unit, **how)
        else:
            result = pf.correlation_clustering((U, V, SIGNED * unit), gamma=gamma, tol=1e-2, **how)
        assert result.converged
        found.append((np.asarray(result.x).tobytes(), result.n_iter, result.gap, result.lower_bound / unit))
    assert found[0] == found[1] == found[2]


def test_a_small_row_counts_as_much_as_a_large_one():
    result = rows(quadratic([1.0, 1.0]), (np.array([[1e-8, 1e-8]]), [0.0]))
    assert result.converged and np.allclose(result.x, 0.0, atol=1e-6)


def test_a_gap_is_a_part_of_the_bound_however_small_that_is():
    result = pf.metric_nearness((U, V, D * 1e-6), max_iter=1)
    assert result.lower_bound < 1e-9
    assert result.gap == pytest.approx((result.objective - result.lower_bound) / result.lower_bound)


def test_distances_that_are_a_metric_already_have_no_gap():
    result = pf.metric_nearness((np.array([0, 1, 0]), np.array([1, 2, 2]), np.array([1.0, 1.0, 1.5])))
    assert result.converged and result.gap == 0.0 and result.objective == 0.0


@pytest.mark.parametrize("rhs", [np.inf, -np.inf, np.nan])
def test_an_equation_needs_a_finite_right_hand_side(rhs):
    with pytest.raises(pf.InputError, match="right-hand side"):
        rows(quadratic([1.0, 1.0]), pf.oracles.explicit(np.ones((1, 2)), [rhs], equality=True))


def test_weights_far_apart_do_not_keep_a_table_from_its_certificate():
    weights = np.array([[0.0, 1e-3, 1e4], [1e-3, 0.0, 1.0], [1e4, 1.0, 0.0]])
    result = pf.metric_nearness(np.array([[0.0, 1, 5], [1, 0, 1], [5, 1, 0]]), weights=weights, max_iter=100)
    assert result.converged and result.gap <= 1e-10
