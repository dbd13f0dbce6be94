"""General rows: every variant reaches the optimum, forgets what does not matter, and says what is wrong."""

import itertools

import numpy as np
import pytest

import ooc_pf as pf
from tests import naive
from tests.gallery import feasible_rows, mild_rows, random_graph
from tests.properties import assert_is_metric


@pytest.fixture
def table(rng):
    return feasible_rows(rng)


@pytest.fixture
def mild(rng):
    return mild_rows(rng)


def test_all_variants_reach_the_same_optimum(mild):
    """Deterministic, random and truly stochastic, with rows forgotten or not."""
    A, b, center = mild
    objective = pf.objectives.entropy(center)
    known = naive.rows.solve_conic("entropy", center, A, b, np.zeros(len(b), bool))
    sources = [(A, b), pf.oracles.random_subset(A, b, 50), pf.oracles.random_subset(A, b, 64, run=8)]
    for source, forget in itertools.product(sources, ("inactive", "all", "never")):
        result = pf.project_and_forget(objective, source, tol=1e-8, forget=forget)
        assert result.converged
        assert np.allclose(result.x, known, atol=1e-6)
        rows, z = list(result.blocks()), np.zeros(len(b))
        z[list(result.duals)] = list(result.duals.values())
        assert np.allclose(objective.point(objective.start - A.T @ z), result.x, atol=1e-9)
        if forget == "all":
            assert sum(len(block.index) for block in rows) == 0  # nothing but duals is left of a row


def test_exactly_the_active_rows_are_remembered(rng):
    """Upper bounds x <= u, each many times looser as well: the active ones are those with u < center."""
    center, upper = rng.normal(size=50), rng.normal(size=50)
    A = np.vstack([np.eye(50)] * 4)
    b = np.concatenate([upper + slack for slack in (0.0, 0.5, 1.0, 3.0)])
    result = pf.project_and_forget(pf.objectives.quadratic(center), (A, b), tol=1e-10)
    assert set(result.duals) == set(np.flatnonzero(upper < center))
    assert result.n_active == len(result.duals)
    assert all(result.duals[i] == pytest.approx(center[i] - upper[i]) for i in result.duals)
    kept = pf.project_and_forget(pf.objectives.quadratic(center), (A, b), tol=1e-10, forget="never")
    assert kept.n_active > result.n_active
    assert set(kept.duals) == set(result.duals)


def test_equations_have_multipliers_of_either_sign():
    objective = pf.objectives.quadratic([0.0, 0.0])
    table = pf.oracles.explicit(np.eye(2), [1.0, -2.0], equality=True)
    result = pf.project_and_forget(objective, table, tol=1e-10)
    assert result.duals == pytest.approx({0: -1.0, 1: 2.0})


def test_an_interior_point_makes_a_feasible_answer(table):
    A, b, center = table
    inside = np.linalg.lstsq(A, b - 1.0, rcond=None)[0]
    slack = (b - A @ inside).min()
    b = b + max(0.0, 0.1 - slack)
    result = pf.project_and_forget(pf.objectives.quadratic(center), (A, b), interior=inside, tol=1e-4, max_iter=2)
    assert (A @ result.x - b).max() <= 1e-12
    best = 0.5 * np.sum((naive.rows.nearest(A, b, center) - center) ** 2)
    assert result.lower_bound <= best <= result.objective + 1e-9


# -- metric nearness in other distances ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["p=1.5", "p=4", "entropy"])
def test_metric_nearness_in_other_distances(kind, rng):
    nodes = 8
    u, v = random_graph(rng, nodes, 18)
    d = rng.uniform(0.1, 2.0, len(u))
    rows = list(naive.graphs.cycle_rows(nodes, u, v))
    A = np.zeros((len(rows) + len(u), len(u)))
    for i, (e, path) in enumerate(rows):
        A[i, e], A[i, path] = 1.0, -1.0
    A[len(rows) :] = -np.eye(len(u))
    equality = np.zeros(len(A), bool)
    if kind == "entropy":
        objective, p = pf.objectives.entropy(d), 2.0
        x = naive.rows.solve_conic("entropy", d, A, np.zeros(len(A)), equality)
    else:
        p = float(kind[2:])
        objective = pf.objectives.p_norm(d, p)
        x = naive.rows.solve_conic("p_norm", d, A, np.zeros(len(A)), equality, p=p)
    result = pf.project_and_forget(objective, pf.oracles.cycles((u, v, d)), tol=1e-8)
    assert result.converged
    assert result.objective == pytest.approx(objective.value(x), rel=1e-6, abs=1e-7)
    assert np.allclose(result.x, x, atol=1e-5 if p <= 2 else 2e-2)
    assert_is_metric(nodes, u, v, np.maximum(result.x, 0.0), 1e-6)


def test_cycles_with_extra_rows(small):
    """Plain metric nearness from general rows, and with a bound on the sum of all lengths."""
    u, v, d = small
    plain = pf.metric_nearness(small, tol=1e-8)
    same = pf.project_and_forget(pf.objectives.quadratic(d), pf.oracles.cycles(small), tol=1e-8)
    assert np.allclose(same.x, plain.x, atol=1e-6)
    total = 0.9 * plain.x.sum()
    extra = (np.ones((1, len(d))), [total])
    less = pf.project_and_forget(pf.objectives.quadratic(d), pf.oracles.cycles(small, extra=extra), tol=1e-8)
    assert less.converged
    assert less.x.sum() <= total + 1e-6
    assert_is_metric(60, u, v, np.maximum(less.x, 0.0), 1e-6)


# -- workspaces and limits -------------------------------------------------------------------------------------------


def test_a_workspace_is_for_one_problem(table, tmp_path):
    A, b, center = table
    objective, path = pf.objectives.quadratic(center), tmp_path / "run.pf"
    first = pf.project_and_forget(objective, (A, b), workspace=path, tol=1e-4)
    tight = pf.project_and_forget(objective, (A, b), workspace=path, tol=1e-9)
    assert first.converged and tight.converged and tight.gap <= 1e-9
    for change, says in [
        (
            lambda: pf.project_and_forget(pf.objectives.quadratic(center + 1), (A, b), workspace=path),
            "another objective",
        ),
        (lambda: pf.project_and_forget(objective, (A[1:], b[1:]), workspace=path), "300 rows' then"),
        (lambda: pf.project_and_forget(objective, (A, b), workspace=path, forget="never"), "forget: 'inactive' then"),
        (lambda: pf.project_onto_sets(objective, [pf.sets.box(0, 1)], workspace=path), "kind 'rows'"),
        (lambda: pf.resume(path), "Python objects"),
        (lambda: pf.export(path, tmp_path / "x.csv"), "no graph to export"),
    ]:
        with pytest.raises(pf.WorkspaceError, match=says):
            change()
    again = pf.project_and_forget(objective, (A, b), workspace=path, forget="never", restart=True, tol=1e-9)
    assert np.allclose(again.x, tight.x, atol=1e-7)


def test_a_budget_too_small_names_the_least_that_will_do(table):
    A, b, center = table
    with pytest.raises(pf.BudgetError, match="the least that will do"):
        pf.project_and_forget(pf.objectives.quadratic(center), (A, b), memory="1MB")


def test_limits_and_callbacks(table):
    A, b, center = table
    objective = pf.objectives.quadratic(center)
    none = pf.project_and_forget(objective, (A, b), max_iter=0)
    assert none.status == "iteration_limit" and np.allclose(none.x, center)
    farthest = ((A @ center - b) / np.linalg.norm(A, axis=1)).max()
    assert none.violation == pytest.approx(farthest), "the distance to the row that is farthest away"
    assert pf.project_and_forget(objective, (A, b), max_time=0.0).status == "time_limit"
    seen = []
    stopped = pf.project_and_forget(objective, (A, b), callback=lambda record: seen.append(record) or True)
    assert stopped.status == "callback" and len(seen) == 1


# -- what cannot be solved -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("forget", ["inactive", "all", "never"])
@pytest.mark.parametrize("kind", ["quadratic", "entropy", "fermi_dirac", "p_norm"])
def test_contradicting_rows_are_said(kind, forget, rng):
    A = rng.normal(size=(60, 8))
    b = -0.3 * rng.random(60)
    center = np.full(8, 0.5)
    objective = pf.objectives.p_norm(center, 3.0) if kind == "p_norm" else getattr(pf.objectives, kind)(center)
    result = pf.project_and_forget(objective, (A, b), forget=forget)
    assert result.status in (("infeasible", "stalled") if forget == "all" else ("infeasible",))
    assert result.violation > 0.0


def test_hardly_feasible_is_not_called_infeasible():
    """Rows that leave a single point, and ones that leave a point far away."""
    thin = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
    result = pf.project_and_forget(pf.objectives.quadratic([5.0, 3.0]), (thin, [1.0, -1.0, 0.0, 0.0]), tol=1e-8)
    assert result.converged and np.allclose(result.x, 0.5)
    far = pf.project_and_forget(pf.objectives.quadratic([0.0, 0.0]), (np.array([[-1e-4, 0.0]]), [-10.0]), tol=1e-8)
    assert far.converged and far.x[0] == pytest.approx(1e5)


@pytest.mark.parametrize(
    ("oracle", "says"),
    [
        (([[1.0, 1.0, 1.0]], [0.0]), "over 3 variables, the objective over 2"),
        (([[1.0, 1.0]], [0.0, 1.0]), "b must have one entry a row"),
        (([1.0, 1.0], [0.0]), "A must have two dimensions"),
        (([[1.0, 0.0], [np.nan, 1.0]], [0.0, 0.0]), "row 1 has the coefficient nan"),
        (([[1.0, 0.0], [1.0, 1.0]], [0.0, np.nan]), "row 1 has the right-hand side nan"),
        (([[0.0, 0.0]], [-1.0]), "row 0 cannot hold"),
        (lambda x: [([0, 7], [1.0, 1.0], 0.0)], "row 0 of block 0 of the oracle has index 7"),
        (lambda x: [([0], [1.0], 0.0), ([-1], [1.0], 0.0)], "row 1 of block 0 of the oracle has index -1"),
        (lambda x: [([0, 0], [1.0, 1.0], 0.0)], "has a variable twice"),
        (lambda x: [([0], [np.inf], 0.0)], "row 0 of block 0 of the oracle has the coefficient inf"),
        (lambda x: [([0, 1], [1.0], 0.0)], "row 0 of those the oracle returned has indices"),
        (lambda x: [([0.5], [1.0], 0.0)], "row 0 of those the oracle returned is not"),
        (lambda x: [7], "row 0 of those the oracle returned is not"),
        (lambda x: 3.0, "an oracle returned float"),
        (iter([]), "only once"),
        (5, "cannot read rows from int"),
    ],
)
def test_rows_that_make_no_sense_are_named(oracle, says):
    with pytest.raises(pf.InputError, match=says):
        pf.project_and_forget(pf.objectives.quadratic([1.0, 1.0]), oracle)


def test_options_that_make_no_sense_are_refused(table):
    A, b, center = table
    objective = pf.objectives.quadratic(center)
    for options, says in [
        ({"forget": "some"}, "forget must be one of"),
        ({"tol": 0.0}, "tol must be"),
        ({"max_iter": -1}, "max_iter must be"),
        ({"interior": np.zeros(3)}, "interior must have 15 entries"),
        ({"interior": np.full(15, 100.0)}, "interior= does not satisfy row"),
    ]:
        with pytest.raises(pf.InputError, match=says):
            pf.project_and_forget(objective, (A, b), **options)
    blind = pf.oracles.from_function(lambda x: (A[:5], b[:5]), complete=False)
    with pytest.raises(pf.InputError, match="cannot tell when the answer is reached"):
        pf.project_and_forget(objective, blind)
    assert pf.project_and_forget(objective, blind, max_iter=3).status == "iteration_limit"
    with pytest.raises(pf.InputError, match="must be made by"):
        pf.project_and_forget(lambda x: x, (A, b))
    with pytest.raises(pf.InputError, match="row 0 is an equation"):
        pf.project_and_forget(objective, pf.oracles.explicit(A, b, equality=True), interior=center)
    with pytest.raises(pf.InputError, match="row 0 cannot hold inside the domain"):
        pf.project_and_forget(pf.objectives.entropy([1.0]), ([[1.0]], [0.0]))
