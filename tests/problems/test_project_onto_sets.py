"""General convex sets: intersections with known answers, against independent solvers, and what is refused."""

import numpy as np
import pytest

import ooc_pf as pf
from tests import naive


def test_two_sets_in_the_plane():
    sets = [pf.sets.ball([0.0, 0.0], 1.0), pf.sets.halfspace([1.0, 0.0], 0.6)]
    result = pf.project_onto_sets(pf.objectives.quadratic([3.0, 1.0]), sets, tol=1e-10)
    assert np.allclose(result.x, [0.6, 0.8])
    # The increments are normal to the sets where the answer touches them, and carry the point to the answer.
    assert np.allclose(sum(result.duals.values()), np.array([3.0, 1.0]) - result.x)
    assert result.lower_bound == pytest.approx(2.9)


def test_single_sets_are_projected_onto(rng):
    """Each ready-made set against the definition: no point of it is nearer."""
    members = {
        "ball": (pf.sets.ball(np.ones(9), 2.0), lambda v: 1 + 2 * v / max(1.0, np.linalg.norm(v))),
        "box": (pf.sets.box(np.zeros(9), 1.0), lambda v: np.clip(v, 0, 1)),
        "slab": (pf.sets.slab(np.ones(9), 1.0, 2.0), lambda v: v + (1.5 - v.sum()) / 9),
        "halfspace": (pf.sets.halfspace(np.ones(9), -1.0), lambda v: v - (v.sum() + 1.5) / 9),
        "cone": (pf.sets.second_order_cone(), lambda v: np.append(np.linalg.norm(v[1:]) + abs(v[0]), v[1:])),
        "psd": (pf.sets.psd_cone(3), lambda v: (v.reshape(3, 3) @ v.reshape(3, 3).T).ravel()),
        "simplex": (pf.sets.simplex(2.0), lambda v: 2 * np.abs(v) / np.abs(v).sum()),
    }
    for name, (member, make) in members.items():
        for _ in range(5):
            point = 2 * rng.normal(size=9)
            near = pf.project_onto_sets(pf.objectives.quadratic(point), [member], tol=1e-10).x
            for _ in range(20):
                other = make(rng.normal(size=9))
                assert (point - near) @ (other - near) <= 1e-7, name


@pytest.mark.parametrize("count", [3, 40, 1000])
def test_many_half_spaces_and_slabs(count, rng):
    """Polyhedra, by an interior-point solver."""
    A = rng.normal(size=(count, 10))
    A /= np.linalg.norm(A, axis=1)[:, None]
    b = rng.uniform(0.3, 1.0, count)
    point = rng.normal(size=10)
    sets = [pf.sets.halfspace(a, h) if i % 2 else pf.sets.slab(a, -h, h) for i, (a, h) in enumerate(zip(A, b))]
    rows, rhs = np.vstack((A, -A[::2])), np.concatenate((b, b[::2]))
    x = naive.rows.solve_quadratic(np.eye(10), point, rows, rhs, np.zeros(len(rhs), bool))
    result = pf.project_onto_sets(pf.objectives.quadratic(point), sets, tol=1e-8)
    assert result.converged
    assert np.allclose(result.x, x, atol=1e-5)
    touched = np.flatnonzero(np.abs(np.abs(A @ x) - b) < 1e-7)
    assert set(result.duals) <= set(touched)


def test_balls_with_a_known_answer():
    """A thousand balls of radius 1 around the points at 1/2 and -1/2 of every axis of a space of dimension 500."""
    centers = 0.5 * np.vstack((np.eye(500), -np.eye(500)))
    point = np.zeros(500)
    point[:2] = 3.0
    result = pf.project_onto_sets(pf.objectives.quadratic(point), [pf.sets.ball(c, 1.0) for c in centers], tol=1e-9)
    assert result.converged
    # On the diagonal, at distance 1 of the two centers opposite.
    assert np.allclose(result.x[:2], (np.sqrt(7.0) - 1.0) / 4.0, atol=1e-8)
    assert np.abs(result.x[2:]).max() < 1e-8
    assert set(result.duals) == {500, 501}


def test_nearest_correlation_matrix(rng):
    side = 7
    matrix = rng.normal(size=(side, side))
    matrix = 0.5 * (matrix + matrix.T)
    np.fill_diagonal(matrix, 1.0)
    sets = [pf.sets.psd_cone(side), pf.sets.box(1.0, 1.0, on=np.arange(side) * (side + 1))]
    result = pf.project_onto_sets(pf.objectives.quadratic(matrix.ravel()), sets, tol=1e-9)
    assert result.converged
    assert np.allclose(result.x.reshape(side, side), naive.rows.nearest_correlation(matrix), atol=1e-6)


def test_higham_example():
    """The nearest correlation matrix of a well-known three by three example."""
    matrix = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    sets = [pf.sets.psd_cone(3), pf.sets.box(1.0, 1.0, on=[0, 4, 8])]
    x = pf.project_onto_sets(pf.objectives.quadratic(matrix.ravel()), sets, tol=1e-10).x.reshape(3, 3)
    assert x[0, 1] == pytest.approx(0.7607, abs=1e-4)
    assert x[0, 2] == pytest.approx(0.1573, abs=1e-4)


def test_other_distances(rng):
    """Entropy on a simplex and half-spaces, as rows and as sets; and a transport plan, whose answer is a scaling."""
    center = rng.uniform(0.1, 1.0, 12)
    A, b = rng.normal(size=(5, 12)), np.full(5, 0.02)
    objective = pf.objectives.entropy(center)
    sets = [pf.sets.simplex(), *(pf.sets.halfspace(a, h) for a, h in zip(A, b))]
    rows = pf.oracles.explicit(np.vstack((np.ones(12), A)), np.append(1.0, b), equality=np.arange(6) == 0)
    known = pf.project_and_forget(objective, rows, tol=1e-10).x
    assert np.allclose(pf.project_onto_sets(objective, sets, tol=1e-9).x, known, atol=1e-6)
    box = pf.project_onto_sets(pf.objectives.fermi_dirac(np.full(3, 0.5)), [pf.sets.box(0.6, [0.7, 0.8, 0.9])])
    assert np.allclose(box.x, 0.6)


def test_an_oracle_names_the_sets_to_look_at(rng):
    A = rng.normal(size=(80, 6))
    A /= np.linalg.norm(A, axis=1)[:, None]
    sets = [pf.sets.halfspace(a, 0.5) for a in A]
    objective = pf.objectives.quadratic(2 * rng.normal(size=6))
    asked = []

    def worst(x):
        asked.append(1)
        return np.argsort(-(A @ x))[:5]

    plain = pf.project_onto_sets(objective, sets, tol=1e-8)
    guided = pf.project_onto_sets(objective, sets, tol=1e-8, oracle=worst)
    assert asked
    assert np.allclose(plain.x, guided.x, atol=1e-6)
    assert guided.history[-1]["relaxed"] == 80
    with pytest.raises(pf.InputError, match="returned set 80; there are sets 0 to 79"):
        pf.project_onto_sets(objective, sets, oracle=lambda x: [80])


def test_sets_without_a_common_point_are_said():
    apart = [pf.sets.ball([2.0, 0.0], 0.5), pf.sets.ball([-2.0, 0.0], 0.5)]
    assert pf.project_onto_sets(pf.objectives.quadratic([0.0, 1.0]), apart).status == "infeasible"


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        ([], "at least one set"),
        ([pf.sets.box(0.0, 1.0, on=[0, 5])], "set 0 is about variables that do not exist"),
        ([lambda x: x[:1]], r"set 0: its projection returned shape \(1,\)"),
        ([lambda x: x * np.nan], "set 0: its projection returned numbers that are not finite"),
        ([lambda x: "no"], "set 0: its projection failed"),
        ([7], "found int"),
        ([pf.sets.psd_cone(2)], "set 0: its projection failed: .* has 4 entries"),
    ],
)
def test_sets_that_make_no_sense_are_named(sets, says):
    with pytest.raises(pf.InputError, match=says):
        pf.project_onto_sets(pf.objectives.quadratic([1.0, 2.0, 3.0]), sets)


def test_sets_and_objectives_must_fit():
    with pytest.raises(pf.InputError, match="set 0: a ball has no ready projection for the objective entropy"):
        pf.project_onto_sets(pf.objectives.entropy([1.0, 2.0]), [pf.sets.ball([0.0, 0.0], 1.0)])
    with pytest.raises(pf.InputError, match="not differentiable"):
        pf.project_onto_sets(pf.objectives.l1([1.0, 2.0]), [pf.sets.box(0.0, 1.0)])
    for wrong, says in [
        (lambda: pf.sets.ball([0.0], -1.0), "radius"),
        (lambda: pf.sets.box(1.0, 0.0), "low <= high"),
        (lambda: pf.sets.slab([1.0], 2.0, 1.0), "low <= high"),
        (lambda: pf.sets.halfspace([0.0, 0.0], 1.0), "not zero"),
        (lambda: pf.sets.simplex(0.0), "total must be positive"),
        (lambda: pf.sets.box(0.0, 1.0, on=[1, 1]), "different variable numbers"),
    ]:
        with pytest.raises(pf.InputError, match=says):
            wrong()
