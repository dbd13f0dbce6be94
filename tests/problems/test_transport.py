"""Quadratically regularised transport: the answer, its certificate, and the same bits however costs are given."""

import pickle
import threading

import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import ooc_pf as pf
from ooc_pf.transport import settings as numbers
from tests.gallery import colour_cloud, normal_masses
from tests.naive import transport as naive

OBJECTIVES = {501: 3.841607714, 1001: 1.947532046, 5001: 0.3946556154, 10001: 0.1976873479, 20001: 0.09893550696}


@pytest.fixture
def clouds(rng):
    """Masses and points of two clouds, with equal sums."""
    a, b = rng.random(90), rng.random(70)
    return a / a.sum(), b / b.sum(), colour_cloud(rng, 90), colour_cloud(rng, 70)


def check_soft(result, a, b, cost, gamma):
    """What a result claims, from the matrix of costs alone."""
    plan, (f, h) = result.plan.toarray(), result.potentials
    size, worth = gamma * max(a.max(), b.max()), gamma / 2 * (a @ a + b @ b)
    assert (plan >= 0).all()
    assert (f[:, None] + h - cost).max() <= 1e-14 * max(size, np.abs(cost).max())
    assert np.isclose(naive.soft_value(a, b, cost, gamma, plan), result.objective, rtol=1e-11, atol=1e-14 * worth)
    assert np.isclose(naive.soft_bound(a, b, gamma, f, h), result.lower_bound, rtol=1e-11, atol=1e-14 * worth)
    assert result.lower_bound <= result.objective
    assert np.isclose(result.row_error, np.abs(a - plan.sum(axis=1)).sum() / a.sum())
    assert np.isclose(result.column_error, np.abs(b - plan.sum(axis=0)).sum() / b.sum())


def check_exact(result, a, b, cost, reg):
    plan, (f, h) = result.plan.toarray(), result.potentials
    worth = np.sum(np.abs(cost) * plan) + reg / 2 * np.sum(plan**2)
    assert (plan >= 0).all()
    assert np.isclose(naive.exact_value(cost, reg, plan), result.objective, rtol=1e-11, atol=1e-13 * worth)
    assert np.isclose(naive.exact_bound(a, b, cost, reg, f, h), result.lower_bound, rtol=1e-11, atol=1e-13 * worth)
    assert result.lower_bound <= result.objective
    assert max(result.row_error, result.column_error) <= 1e-13  # so the plan is feasible, up to rounding
    for error, rest in ((result.row_error, a - plan.sum(axis=1)), (result.column_error, b - plan.sum(axis=0))):
        assert np.isclose(error, np.abs(rest).sum() / a.sum(), rtol=1e-3, atol=1e-14)


# -- the answer -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [501, 1001, 5001, 10001, pytest.param(20001, marks=pytest.mark.long)])
def test_the_paper_s_masses_on_a_line(n):
    a, b, x = normal_masses(n)
    result = pf.quadratic_transport(a, b, (x, x), gamma=1000.0, tol=1e-12)
    assert result.converged and result.gap <= 1e-12 and result.violation <= 1e-12 * 1000.0 * a.max()
    assert f"{result.objective:.10g}"[:11] == f"{OBJECTIVES[n]:.10g}"[:11]
    assert result.plan.nnz < 2 * n


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean"])
@pytest.mark.parametrize("gamma", [1.0, 100.0, 10_000.0])
def test_soft_marginals_against_another_solver(clouds, metric, gamma):
    a, b, x, y = clouds
    cost = naive.costs(x, y, metric == "euclidean")
    result = pf.quadratic_transport(a, b, (x, y), metric=metric, gamma=gamma)
    assert result.converged and result.gap <= 1e-10
    check_soft(result, a, b, cost, gamma)
    other = naive.solve_soft(a, b, cost, gamma)
    assert np.isclose(naive.soft_value(a, b, cost, gamma, other), result.objective, rtol=1e-8)


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean"])
@pytest.mark.parametrize("reg", [1e-3, 0.1, 10.0])
def test_exact_marginals_against_another_solver(clouds, metric, reg):
    a, b, x, y = clouds
    cost = naive.costs(x, y, metric == "euclidean")
    result = pf.quadratic_transport(a, b, (x, y), metric=metric, marginals="exact", reg=reg)
    assert result.converged and result.gap <= 1e-10 and max(result.row_error, result.column_error) <= 1e-10
    check_exact(result, a, b, cost, reg)
    other = naive.solve_exact(a, b, cost, reg)
    assert np.isclose(naive.exact_value(cost, reg, other), result.objective, rtol=1e-8)
    assert np.allclose(other, result.plan.toarray(), atol=1e-5)


@pytest.mark.parametrize("options", [{"gamma": 20.0}, {"marginals": "exact", "reg": 0.3}])
def test_the_paper_s_way_gives_the_same(clouds, options):
    a, b, x, y = clouds
    fast = pf.quadratic_transport(a, b, (x, y), **options)
    slow = pf.quadratic_transport(a, b, (x, y), method="project_and_forget", tol=1e-8, **options)
    assert slow.converged and slow.gap <= 1e-6
    assert np.isclose(slow.objective, fast.objective, rtol=1e-6)
    assert np.allclose(slow.plan.toarray(), fast.plan.toarray(), atol=1e-6)
    assert set(slow.made) == set(fast.made)
    (check_soft if "gamma" in options else check_exact)(slow, a, b, naive.costs(x, y), *list(options.values())[-1:])


def test_exact_marginals_from_coarse_problems(rng):
    """Several levels, with a support that stays small."""
    n = 1500
    x, y, a = colour_cloud(rng, n), colour_cloud(rng, n), np.full(n, 1 / n)
    result = pf.quadratic_transport(a, a, (x, y), marginals="exact", reg=5.0)
    assert result.converged and max(result.row_error, result.column_error) <= 1e-10
    check_exact(result, a, a, ((x[:, None] - y) ** 2).sum(axis=2), 5.0)
    assert max(record["found"] for record in result.history) < 100 * n < n * n


@pytest.mark.parametrize("n, reg", [(101, 1e3), (501, 1e3), (501, 100.0), (501, 0.1), (501, 1e-5), (1001, 10.0)])
def test_masses_down_to_1e_27(n, reg):
    """Tails of a density: nodes without a pair, and masses below the rounding of the potentials."""
    a, b, x = normal_masses(n)
    assert 0 < a.min() < 1e-26
    cost = (x[:, None] - x) ** 2
    for form in ((x, x), cost) if n < 200 else ((x, x),):
        result = pf.quadratic_transport(a, b, form, marginals="exact", reg=reg)
        assert result.converged and result.n_iter < 150
        check_exact(result, a, b, cost, reg)


@pytest.mark.parametrize("options", [{"gamma": 5.0}, {"marginals": "exact", "reg": 0.3}])
def test_equal_points_and_integer_costs(rng, options):
    """Ties everywhere: many plans are as good, cycles of pairs hold with equality."""
    x, y = rng.integers(0, 3, (60, 2)), rng.integers(0, 3, (50, 2))
    a, b = np.full(60, 1 / 60), np.full(50, 1 / 50)
    result = pf.quadratic_transport(a, b, (x, y), **options)
    assert result.converged
    (check_soft if "gamma" in options else check_exact)(result, a, b, naive.costs(x, y), *list(options.values())[-1:])


@pytest.mark.parametrize("options", [{"gamma": 5.0}, {"marginals": "exact", "reg": 0.3}])
def test_one_point_and_masses_of_zero(options):
    one = pf.quadratic_transport([2.0], [2.0], ([1.0], [3.0]), **options)
    assert one.converged and one.plan.shape == (1, 1)
    some = pf.quadratic_transport([0.0, 2.0, 0.0], [1.0, 1.0], (np.arange(3.0), np.arange(2.0)), **options)
    assert some.converged
    assert "gamma" in options or some.plan.toarray()[[0, 2]].max() <= 1e-12


def test_where_nothing_moves_the_optimum_is_zero():
    a, x = np.full(20, 0.05), np.arange(20.0)
    result = pf.quadratic_transport(a, a, (x, x), gamma=1.0)
    assert result.converged and result.objective <= 1e-15
    assert np.allclose(result.plan.toarray(), np.diag(a))


def test_costs_may_be_negative(clouds):
    a, b, x, y = clouds
    cost = naive.costs(x, y) - 0.7
    for options, check in (({"gamma": 20.0}, check_soft), ({"marginals": "exact", "reg": 0.3}, check_exact)):
        result = pf.quadratic_transport(a, b, cost, **options)
        assert result.converged and result.objective < 0
        check(result, a, b, cost, *list(options.values())[-1:])


# -- units ------------------------------------------------------------------------------------------------------------


@hypothesis_settings(deadline=None, max_examples=40)
@given(
    st.integers(0, 1000),
    st.integers(1, 25),
    st.integers(1, 25),
    st.integers(-6, 6),
    st.integers(-6, 6),
    st.floats(-1.0, 3.0),
    st.booleans(),
)
def test_a_certificate_means_the_same_in_any_unit(seed, n, m, cost_unit, mass_unit, weight, exact):
    rng = np.random.default_rng(seed)
    a, b, x, y = rng.random(n) + 0.01, rng.random(m) + 0.01, rng.random((n, 2)), rng.random((m, 2))
    b *= a.sum() / b.sum()
    money, mass = 4.0**cost_unit, 2.0**mass_unit  # powers of two, so that rounding is the same too
    options = {"marginals": "exact", "reg": 10.0**-weight} if exact else {"gamma": 10.0**weight}
    name = "reg" if exact else "gamma"
    other = {**options, name: options[name] * money / mass}
    first = pf.quadratic_transport(a, b, (x, y), **options)
    again = pf.quadratic_transport(a * mass, b * mass, (x * 2.0**cost_unit, y * 2.0**cost_unit), **other)
    assert first.converged and again.converged
    assert np.isclose(first.objective * money * mass, again.objective, rtol=1e-12)
    assert (first.n_iter, first.gap, first.row_error) == (again.n_iter, again.gap, again.row_error)
    (check_exact if exact else check_soft)(first, a, b, naive.costs(x, y), options[name])


# -- how costs are given ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"gamma": 50.0}, {"marginals": "exact", "reg": 0.3}])
def test_costs_as_points_matrix_file_or_function(rng, tmp_path, options, monkeypatch):
    monkeypatch.setattr(numbers, "LEAST_BLOCK", 8)
    monkeypatch.setattr(numbers, "BLOCK", 32)
    monkeypatch.setattr(numbers, "COARSE", 60)
    n, m = 150, 110
    x, y, a, b = colour_cloud(rng, n), colour_cloud(rng, m), np.full(n, 1 / n), np.full(m, 1 / m)
    cost = ((x[:, None] - y) ** 2).sum(axis=2)
    np.save(tmp_path / "cost.npy", cost)
    stored = zarr.create_array(tmp_path / "cost.zarr", shape=cost.shape, chunks=(40, 24), dtype="f8")
    stored[:] = cost
    most = []

    def function(rows, columns):
        most.append(len(rows) * len(columns))
        return ((x[rows][:, None] - y[columns]) ** 2).sum(axis=2)

    forms = {"points": (x, y), "array": cost, "file": np.load(tmp_path / "cost.npy", mmap_mode="r")}
    forms |= {"zarr": stored, "function": function, "list": cost.tolist()}
    found = {name: pf.quadratic_transport(a, b, form, tol=1e-13, **options) for name, form in forms.items()}
    for result in found.values():
        assert result.converged
        assert np.isclose(result.objective, found["points"].objective, rtol=1e-9)
        # With exact marginals reg/2 |P - P*|^2 is at most what the gap proves.
        near = 1e-9 if "gamma" in options else 2 * np.sqrt(2 * 1e-13 * result.objective / options["reg"])
        assert np.linalg.norm((result.plan - found["points"].plan).toarray()) <= near
    assert np.array_equal(found["array"].plan.toarray(), found["function"].plan.toarray())
    assert np.array_equal(found["array"].plan.toarray(), found["file"].plan.toarray())
    assert max(most) <= (32 * 32 if "gamma" in options else numbers.SLAB)


@pytest.mark.parametrize("options", [{"gamma": 50.0}, {"marginals": "exact", "reg": 0.3}])
def test_the_answer_does_not_depend_on_the_workers(rng, options):
    x, y, a = colour_cloud(rng, 700), colour_cloud(rng, 700), np.full(700, 1 / 700)
    one, three = (pf.quadratic_transport(a, a, (x, y), workers=workers, **options) for workers in (1, 3))
    assert (one.plan != three.plan).nnz == 0
    assert all(np.array_equal(*each) for each in zip(one.potentials, three.potentials, strict=True))
    assert (one.objective, one.lower_bound, one.n_iter) == (three.objective, three.lower_bound, three.n_iter)


# -- stopping ---------------------------------------------------------------------------------------------------------

BOTH = [{"gamma": 100.0}, {"marginals": "exact", "reg": 0.3}]


@pytest.mark.parametrize("options", BOTH)
def test_a_run_that_is_stopped_shows_a_plan_and_a_bound(clouds, options):
    a, b, x, y = clouds
    best = pf.quadratic_transport(a, b, (x, y), **options)
    for most in (0, 1, 2, 3):
        result = pf.quadratic_transport(a, b, (x, y), max_iter=most, **options)
        assert (result.status, result.n_iter) == ("iteration_limit", most)
        assert result.lower_bound <= best.objective * (1 + 1e-9)
        assert (result.plan.toarray() >= 0).all()
        assert best.lower_bound <= result.objective
        assert "gamma" in options or max(result.row_error, result.column_error) <= 1e-13
    assert pf.quadratic_transport(a, b, (x, y), max_time=0.0, **options).status == "time_limit"


@pytest.mark.parametrize("options", BOTH)
def test_the_callback_sees_every_iteration_and_can_stop(clouds, options, capsys):
    a, b, x, y = clouds
    seen = []
    result = pf.quadratic_transport(a, b, (x, y), callback=seen.append, progress=True, **options)
    assert [record["iteration"] for record in seen] == list(range(1, result.n_iter + 1)) and result.history == seen
    assert capsys.readouterr().err.count("  it ") == result.n_iter
    stopped = pf.quadratic_transport(a, b, (x, y), callback=lambda record: record["iteration"] == 2, **options)
    assert (stopped.status, stopped.n_iter) == ("callback", 2)


@pytest.mark.parametrize("options", BOTH)
def test_time_ends_a_run_in_a_thread(rng, options):
    x, y, a = colour_cloud(rng, 3000), colour_cloud(rng, 3000), np.full(3000, 1 / 3000)
    found = []
    work = threading.Thread(target=lambda: found.append(pf.quadratic_transport(a, a, (x, y), max_time=0.03, **options)))
    work.start()
    work.join()
    assert found[0].status in ("time_limit", "converged")


def test_a_budget_too_small_is_refused_with_the_least_that_will_do(clouds):
    a, b, x, y = clouds
    with pytest.raises(pf.BudgetError, match=r"least that will do is [0-9,]+ bytes"):
        pf.quadratic_transport(a, b, (x, y), gamma=1.0, memory=1000)
    assert pf.quadratic_transport(a, b, (x, y), gamma=1.0, memory="20MB").converged


def test_a_result_can_be_printed_and_pickled(clouds):
    a, b, x, y = clouds
    result = pf.quadratic_transport(a, b, (x, y), gamma=10.0)
    assert "row error" in repr(result) and "transport" in repr(result)
    again = pickle.loads(pickle.dumps(result))
    assert (again.plan != result.plan).nnz == 0 and np.array_equal(again.potentials[0], result.potentials[0])
    assert result.summary()["row_error"] == result.row_error
    assert (result.x != result.plan).nnz == 0


# -- what cannot be is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"a": [0.5, np.nan]}, r"a\[1\] is nan; masses must be finite"),
        ({"b": [0.5, -0.5, 1.0]}, r"b\[1\] is -0.5; masses must not be negative"),
        ({"a": [0.0, 0.0]}, "a has no support: all of its 2 masses are zero"),
        ({"a": []}, "a is empty"),
        ({"a": [[1.0, 2.0]]}, "a must be a vector of masses, found shape"),
        ({"a": ["x", "y"]}, "a must be a vector of masses"),
        ({"cost": (np.zeros(3), np.zeros(3))}, "X has 3 points, but a has 2 masses"),
        ({"cost": (np.zeros((2, 2)), np.zeros((3, 1)))}, "X has points of 2 coordinates, Y of 1"),
        ({"cost": (np.zeros(2), [0.0, np.inf, 1.0])}, r"Y\[1, 0\] is inf; coordinates must be finite"),
        ({"cost": np.zeros((3, 2))}, r"cost has shape \[3, 2\], but a and b have 2 and 3 masses"),
        ({"cost": np.array([[0.0, 1.0, 2.0], [0.0, np.nan, 1.0]])}, r"cost\[1, 1\] is nan; costs must be finite"),
        ({"cost": lambda rows, columns: np.zeros((1, 1))}, r"must return 2 x 3 numbers.*found shape \[1, 1\]"),
        ({"metric": "cityblock"}, "metric must be one of sqeuclidean, euclidean, found 'cityblock'"),
        ({"marginals": "hard"}, "marginals must be one of soft, exact, found 'hard'"),
        ({"method": "simplex"}, "method must be one of nodes, project_and_forget, found 'simplex'"),
        ({"gamma": None}, "gamma is needed"),
        ({"gamma": 0.0}, "gamma must be a positive number, found 0.0"),
        ({"gamma": -1}, "gamma must be a positive number, found -1"),
        ({"gamma": np.nan}, "gamma must be a positive number, found nan"),
        ({"gamma": "much"}, "gamma must be a positive number, found 'much'"),
        ({"reg": 1.0}, 'reg= is for marginals="exact"'),
        ({"marginals": "exact", "reg": 1.0}, 'gamma= is for marginals="soft"'),
        ({"marginals": "exact", "gamma": None}, "reg is needed"),
        ({"marginals": "exact", "gamma": None, "reg": -2.0}, "reg must be a positive number, found -2.0"),
        ({"marginals": "exact", "gamma": None, "reg": 1.0}, "a sums to 1 and b to 1.5.*equal masses"),
        ({"tol": 0.0}, "tol must be a positive number"),
        ({"max_iter": -1}, "max_iter must be a whole number"),
        ({"workers": 0}, "workers must be a positive whole number"),
    ],
)
def test_what_cannot_be_is_refused_by_name(changes, message):
    call = {"a": [0.5, 0.5], "b": [0.5, 0.5, 0.5], "cost": (np.zeros(2), np.arange(3.0)), "gamma": 1.0, **changes}
    with pytest.raises(pf.InputError, match=message):
        pf.quadratic_transport(call.pop("a"), call.pop("b"), call.pop("cost"), **call)


# -- workspaces -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", BOTH)
def test_a_run_goes_on_from_its_workspace(clouds, tmp_path, options):
    a, b, x, y = clouds
    path = tmp_path / "run.pf"
    whole = pf.quadratic_transport(a, b, (x, y), **options)
    first = pf.quadratic_transport(a, b, (x, y), workspace=path, max_iter=2, **options)
    assert (first.status, first.n_iter) == ("iteration_limit", 2)
    result = pf.quadratic_transport(a, b, (x, y), workspace=path, **options)
    assert result.converged and result.n_iter == whole.n_iter
    assert (result.plan != whole.plan).nnz == 0 and np.array_equal(result.potentials[0], whole.potentials[0])
    assert (result.objective, result.lower_bound) == (whole.objective, whole.lower_bound)
    assert pf.verify(path)["rows"] == result.n_active
    again = pf.quadratic_transport(a, b, (x, y), workspace=path, **options)
    assert again.n_iter == result.n_iter and again.row_error == result.row_error


def test_a_workspace_of_another_problem_is_refused(clouds, tmp_path):
    a, b, x, y = clouds
    path = tmp_path / "run.pf"
    pf.quadratic_transport(a, b, (x, y), gamma=10.0, workspace=path)
    with pytest.raises(pf.WorkspaceError, match="another pair of masses and their costs"):
        pf.quadratic_transport(a, b, (x, y + 1.0), gamma=10.0, workspace=path)
    with pytest.raises(pf.WorkspaceError, match=r"weight: 10\.0 then, 20\.0 now"):
        pf.quadratic_transport(a, b, (x, y), gamma=20.0, workspace=path)
    assert pf.quadratic_transport(a, b, (x, y), gamma=20.0, workspace=path, restart=True).converged
    cost = naive.costs(x, y)
    pf.quadratic_transport(a, b, cost, gamma=10.0, workspace=tmp_path / "matrix.pf", max_iter=1)
    assert pf.quadratic_transport(a, b, cost.copy(), gamma=10.0, workspace=tmp_path / "matrix.pf").converged
    cost[3, 4] += 0.1
    with pytest.raises(pf.WorkspaceError, match="another pair of masses and their costs"):
        pf.quadratic_transport(a, b, cost, gamma=10.0, workspace=tmp_path / "matrix.pf")


def test_damaged_state_is_refused(clouds, tmp_path):
    a, b, x, y = clouds
    path = tmp_path / "run.pf"
    pf.quadratic_transport(a, b, (x, y), gamma=10.0, workspace=path, max_iter=2)
    for file in path.glob("gen/*/rows/left/c/*"):
        file.write_bytes(b"\x07" + file.read_bytes()[1:])
    with pytest.raises(pf.WorkspaceError):
        pf.quadratic_transport(a, b, (x, y), gamma=10.0, workspace=path)
