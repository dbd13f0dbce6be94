"""Each objective against an interior-point solver."""

import numpy as np
import pytest

import ooc_pf as pf
from ooc_pf.objectives import project_l1_ball
from tests import naive


def test_the_l1_ball_is_projected_onto(rng):
    for _ in range(20):
        y, radius = rng.normal(size=8) * 3, rng.uniform(0.1, 5.0)
        near = project_l1_ball(y, radius)
        assert np.abs(near).sum() <= radius * (1 + 1e-12)
        # The way back makes no acute angle with the way to any corner of the ball.
        assert np.all((y - near) @ (radius * np.vstack((np.eye(8), -np.eye(8))) - near).T <= 1e-9)


@pytest.fixture
def rows(rng):
    """A feasible system of 40 rows over 12 variables, two of them equations, and a center it does not contain."""
    A = rng.normal(size=(40, 12)) * (rng.random((40, 12)) < 0.6)
    inside = rng.uniform(0.25, 0.7, 12)
    equality = np.arange(40) < 2
    b = A @ inside + np.where(equality, 0.0, 0.2 * rng.random(40))
    return A, b, equality, rng.uniform(0.1, 0.9, 12)


def solve(objective, rows, **options):
    A, b, equality, _ = rows
    return pf.project_and_forget(objective, pf.oracles.explicit(A, b, equality=equality), tol=1e-9, **options)


def assert_optimal(result, objective, x, rows, atol=1e-6):
    """The answer is that of the other solver, and the multipliers solve the dual problem."""
    A, b, equality, _ = rows
    assert result.converged
    assert np.allclose(result.x, x, atol=atol)
    assert result.objective == pytest.approx(objective.value(x), abs=1e-7)
    z = np.zeros(len(b))
    z[list(result.duals)] = list(result.duals.values())
    assert (z[~equality] >= 0).all()
    y = objective.start - A.T @ z
    point = objective.point(y)
    assert np.allclose(point, result.x, atol=1e-6)
    dual = objective.value(point) + (A @ point - b) @ z
    assert dual == pytest.approx(result.lower_bound, abs=1e-9)
    assert abs((A @ result.x - b) @ z) < 1e-6
    # Stationarity, by differences: moving along the rows' null directions does not pay.
    assert objective.value(result.x) <= objective.value(result.x + 1e-4 * (x - result.x)) + 1e-9


def test_weighted_quadratic(rows, rng):
    A, b, equality, center = rows
    w = rng.uniform(0.3, 3.0, 12)
    objective = pf.objectives.quadratic(center, w)
    x = naive.rows.solve_quadratic(np.diag(w), center, A, b, equality)
    assert_optimal(solve(objective, rows), objective, x, rows)


def test_quadratic_with_a_matrix(rows, rng):
    A, b, equality, center = rows
    root = rng.normal(size=(12, 12))
    Q = root @ root.T + 0.5 * np.eye(12)
    objective = pf.objectives.quadratic(center, Q=Q)
    assert_optimal(solve(objective, rows), objective, naive.rows.solve_quadratic(Q, center, A, b, equality), rows)


@pytest.mark.parametrize("kind", ["entropy", "fermi_dirac"])
def test_entropies(kind, rows):
    A, b, equality, center = rows
    objective = getattr(pf.objectives, kind)(center)
    x = naive.rows.solve_conic(kind, center, A, b, equality)
    assert_optimal(solve(objective, rows), objective, x, rows)
    assert objective.value(center) == pytest.approx(0.0, abs=1e-12)


def test_hellinger(rows):
    A, b, equality, _ = rows
    objective = pf.objectives.hellinger(np.zeros(12))
    x = naive.rows.solve_conic("hellinger", np.zeros(12), A, b, equality)
    assert_optimal(solve(objective, rows), objective, x, rows)


@pytest.mark.parametrize("p", [1.5, 3.0, 4.0])
def test_powers(p, rows):
    A, b, equality, center = rows
    objective = pf.objectives.p_norm(center, p)
    x = naive.rows.solve_conic("p_norm", center, A, b, equality, p=p)
    result = solve(objective, rows)
    # Where the power is above 2 the objective hardly notices small deviations, and the other solver leaves some.
    assert_optimal(result, objective, x, rows, atol=1e-6 if p < 2 else 1e-3)
    assert result.objective <= objective.value(x) + 1e-8


@pytest.mark.parametrize("kind", ["l1", "linf"])
def test_l1_and_linf_with_a_quadratic_term(kind, rows, rng):
    A, b, equality, center = rows
    objective = getattr(pf.objectives, kind)(center, 0.4, ridge=0.7)
    x = naive.rows.solve_quadratic(0.7 * np.eye(12), center, A, b, equality, **{kind: 0.4})
    assert_optimal(solve(objective, rows), objective, x, rows)
    moved = getattr(pf.objectives, kind)(center, 0.4, ridge=0.7, anchor=center + 1.0)
    size = np.abs(x - center)
    value = 0.4 * (size.sum() if kind == "l1" else size.max()) + 0.35 * float(np.sum((x - center - 1.0) ** 2))
    assert moved.value(x) == pytest.approx(value)


def test_a_function_of_the_users(rows, rng):
    """Half of the squared distance, as if nobody knew; and with the distance from a point."""
    A, b, equality, center = rows
    w = rng.uniform(0.5, 2.0, 12)
    own = pf.objectives.separable(
        12, lambda x, c, w: w * (x - c), lambda y, c, w: c + y / w, lambda x, c, w: w * (x - c) ** 2 / 2,
        parameters=(center, w),
    )  # fmt: skip
    x = naive.rows.solve_quadratic(np.diag(w), center, A, b, equality)
    assert_optimal(solve(own, rows), own, x, rows)
    ready = pf.objectives.entropy(center)
    same = pf.objectives.separable(12, np.log, np.exp, lambda x: x * np.log(x) - x, center=center, domain=(0, np.inf))
    assert np.allclose(solve(same, rows).x, solve(ready, rows).x, atol=1e-7)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: pf.objectives.entropy([1.0, 0.0]), r"center\[1\] is 0.0, outside the domain"),
        (lambda: pf.objectives.fermi_dirac([0.5, 1.5]), r"center\[1\] is 1.5.*between 0 and 1"),
        (lambda: pf.objectives.hellinger([-1.0]), r"center\[0\] is -1.0"),
        (lambda: pf.objectives.quadratic([1.0, np.nan]), r"center\[1\] is nan"),
        (lambda: pf.objectives.quadratic([1.0, 2.0], [1.0, -1.0]), r"weights\[1\] is -1.0"),
        (lambda: pf.objectives.quadratic([[1.0]]), "must be a vector"),
        (lambda: pf.objectives.quadratic([1.0, 2.0], Q=np.eye(3)), "Q must have shape"),
        (lambda: pf.objectives.quadratic([1.0, 2.0], Q=[[1.0, 2.0], [2.0, 1.0]]), "not positive definite"),
        (lambda: pf.objectives.quadratic([1.0, 2.0], Q=[[1.0, 2.0], [0.0, 1.0]]), "symmetric"),
        (lambda: pf.objectives.p_norm([1.0], 1.0), "p must be a number above 1"),
        (lambda: pf.objectives.l1([1.0], ridge=0.0), r"ridge\[0\] is 0.0"),
        (lambda: pf.objectives.separable(2, np.exp, np.exp, np.exp), "not inverse to each other"),
        (lambda: pf.objectives.quadratic("abc"), "must be numbers"),
    ],
)
def test_what_is_no_objective_is_refused(make, says):
    with pytest.raises(pf.InputError, match=says):
        make()
