"""Metric nearness on the complete graph: right answers, valid certificates, limits, the same bits however run."""

import itertools
import os
import signal
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ooc_pf as pf
from ooc_pf.storage import workspace as ws
from ooc_pf.triangles import schedule as problem
from ooc_pf.triangles import sweeps as sweeping
from tests import naive
from tests.gallery import by_edge
from tests.properties import assert_certificate_holds, assert_kkt, assert_same_bits


@pytest.mark.parametrize(
    ("n", "kind", "objective"),
    [
        (50, np.asarray, 566.0743844),
        (100, np.asarray, 2283.945477),
        (200, np.asarray, 9173.142086),
        (50, np.abs, 84.87077823),
        (100, np.abs, 344.4533336),
        (200, np.abs, 1419.608994),
    ],
)
def test_known_objectives(n, kind, objective):
    d = kind(pf.random_dissimilarities(n, "I", seed=0))
    result = pf.metric_nearness(d, tol=1e-10)
    assert result.converged
    assert float(f"{result.objective:.10g}") == objective
    assert result.violation <= 1e-10 * np.abs(d).max() and abs(result.gap) <= 1e-10
    assert naive.triangles.largest_violation(result.x) <= 1e-14
    assert_kkt(result, d, 1e-8)


def random_problem(seed):
    """A small problem and its options: weights, and limits of every kind."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    u = np.triu_indices(n, 1)
    d = np.zeros((n, n))
    d[u] = rng.normal(0.4, 1.0, len(u[0]))
    d += d.T
    options = {"weights": rng.uniform(0.2, 3.0, len(u[0]))}
    points = rng.random((n, 3))
    between = np.linalg.norm(points[:, None] - points[None], axis=2)[u]
    kind = seed % 5
    if kind == 1:
        options["upper"] = np.maximum(d[u], 0.0)
    elif kind == 2:
        options["lower"] = d[u]
    elif kind == 3:
        options |= {"lower": 0.8 * between, "upper": 1.2 * between}
    elif kind == 4:
        options["upper"] = np.where(rng.random(len(u[0])) < 0.5, np.inf, np.maximum(d[u], 0.0) + 0.2)
    return d, options


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_agrees_with_an_interior_point_solver(seed):
    d, options = random_problem(seed)
    result = pf.metric_nearness(d, tol=1e-9, workers=1, **options)
    lower, upper = options.get("lower", -np.inf), options.get("upper", np.inf)
    x, value = naive.triangles.nearness(d, options["weights"], lower, upper)
    assert result.converged
    assert result.objective == pytest.approx(value, rel=1e-6, abs=1e-7)
    assert result.lower_bound <= result.objective + 1e-9 * max(1.0, value)
    assert by_edge(result.x) == pytest.approx(x, abs=1e-3)
    assert naive.triangles.largest_violation(result.x) <= 1e-11
    assert (by_edge(result.x) >= np.maximum(lower, 0.0) - 1e-11).all()
    assert (by_edge(result.x) <= upper + 1e-11).all()
    if "lower" not in options and "upper" not in options:
        assert_certificate_holds(_flat(result), *np.triu_indices(len(d), 1), by_edge(d), options["weights"])


def _flat(result):
    return replace(result, read_x=lambda: by_edge(result.x))


@given(st.integers(0, 2**32 - 1), st.integers(0, 12))
@settings(max_examples=15, deadline=None)
def test_bounds_hold_wherever_a_run_stops(seed, iterations):
    d, options = random_problem(seed)
    best = pf.metric_nearness(d, tol=1e-9, workers=1, **options)
    result = pf.metric_nearness(d, tol=1e-9, workers=1, max_iter=iterations, **options)
    room = 1e-8 * max(1.0, best.objective)
    assert result.lower_bound <= best.objective + room
    assert result.objective >= best.lower_bound - room
    assert naive.triangles.largest_violation(result.x) <= 1e-11


def test_only_decreasing_is_the_closure(table):
    result = pf.metric_nearness(table, upper=table, tol=1e-10)
    assert result.converged
    assert result.x == pytest.approx(naive.triangles.close(table), abs=1e-9)


def test_only_increasing_where_duals_drift():
    """Points whose duals wander at constant speed: plain sweeps would take tens of thousands."""
    d = np.abs(pf.random_dissimilarities(120, "I", seed=0))
    result = pf.metric_nearness(d, lower=d, tol=1e-9, max_iter=400)
    assert result.converged
    assert (result.x >= d - 1e-12 * d.max()).all()
    assert naive.triangles.largest_violation(result.x) <= 1e-11


def test_limits_may_be_a_number_a_square_or_a_vector(table):
    answers = [
        pf.metric_nearness(table, upper=upper, lower=lower, tol=1e-10).x
        for lower, upper in ((0.3, 1.2), (np.full((30, 30), 0.3), np.full((30, 30), 1.2)), ([0.3] * 435, [1.2] * 435))
    ]
    assert np.array_equal(answers[0], answers[1]) and np.array_equal(answers[0], answers[2])
    assert by_edge(answers[0]).min() >= 0.3 - 1e-12 and by_edge(answers[0]).max() <= 1.2 + 1e-12


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_smallest_tables(n):
    d = np.full((n, n), -2.0)
    np.fill_diagonal(d, 0.0)
    result = pf.metric_nearness(d, tol=1e-10)
    assert result.converged and np.array_equal(result.x, np.zeros((n, n)))
    assert result.objective == pytest.approx(n * (n - 1))
    assert result.lower_bound == pytest.approx(n * (n - 1))
    above = pf.metric_nearness(d, lower=1.0, upper=3.0, tol=1e-10)
    assert above.converged and np.array_equal(above.x, 1.0 - np.eye(n))


# -- stopped and resumed -----------------------------------------------------------------------------------------------


@pytest.mark.long
def test_stops_are_honoured_and_resumable(table, tmp_path, settings):
    settings.small_tiles()
    whole = pf.metric_nearness(table, tol=1e-9)

    def interrupt(record):
        if record["iteration"] == 3:
            os.kill(os.getpid(), signal.SIGINT)

    path = tmp_path / "run.pf"
    with pytest.raises(pf.Interrupted) as caught:
        pf.metric_nearness(table, tol=1e-9, workspace=path, callback=interrupt)
    result = caught.value.result
    assert (result.status, result.n_iter) == ("interrupted", 3)
    assert naive.triangles.largest_violation(result.x) <= 1e-14
    assert pf.resume(path, max_time=0.0).status == "time_limit"
    assert pf.resume(path, callback=lambda record: True).status == "callback"
    assert pf.verify(path)["rows"] > 0
    assert np.array_equal(pf.resume(path).x, by_edge(whole.x))


def interrupting(kernel, at):
    """The kernel, with a Ctrl-C during its call number ``at``."""
    calls = itertools.count(1)

    def called(*args):
        if next(calls) == at:
            os.kill(os.getpid(), signal.SIGINT)
        return kernel(*args)

    return called


@pytest.mark.long
def test_a_stop_in_the_middle_of_an_iteration_leaves_the_committed_state(table, tmp_path, settings, monkeypatch):
    settings.small_tiles()
    whole = pf.metric_nearness(table, tol=1e-9)
    path = tmp_path / "run.pf"
    pf.metric_nearness(table, tol=1e-9, workspace=path, max_iter=3)
    before = pf.open(path)
    for module, name, at in (
        (problem, "scan_triples", 2),
        (sweeping, "sweep_triples", 1),
        (sweeping, "sweep_triples", 30),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, interrupting(getattr(module, name), at))
            with pytest.raises(pf.Interrupted) as caught:
                pf.resume(path)
            stopped = caught.value.result
        assert (stopped.status, stopped.n_iter) == ("interrupted", before.n_iter)
        assert np.array_equal(stopped.duals.values, before.duals.values)
        pf.verify(path, oracle="numba")
    assert np.array_equal(pf.resume(path).x, by_edge(whole.x))


def test_a_stop_in_memory_leaves_a_valid_certificate(table, settings, monkeypatch):
    settings.small_tiles()
    best = pf.metric_nearness(table, tol=1e-9)
    monkeypatch.setattr(sweeping, "sweep_triples", interrupting(sweeping.sweep_triples, 50))
    with pytest.raises(pf.Interrupted) as caught:
        pf.metric_nearness(table, tol=1e-9)
    result = caught.value.result
    assert result.status == "interrupted"
    assert_certificate_holds(_flat(result), *np.triu_indices(30, 1), by_edge(table))
    assert result.lower_bound <= best.objective


@pytest.mark.long
def test_a_tighter_tolerance_restart_and_other_options(table, tmp_path):
    path = tmp_path / "run.pf"
    loose = pf.metric_nearness(table, tol=1e-2, workspace=path, upper=1.5)
    tight = pf.resume(path, tol=1e-10)
    assert tight.n_iter > loose.n_iter and tight.gap <= 1e-10
    with pytest.raises(pf.WorkspaceError, match=r"upper: .* then, None now"):
        pf.metric_nearness(table, tol=1e-10, workspace=path)
    assert pf.metric_nearness(path, tol=1e-10, upper=np.full(435, 1.5)).n_iter == tight.n_iter
    fresh = pf.metric_nearness(path, tol=1e-6, restart=True)
    assert fresh.converged and fresh.objective < tight.objective


def test_a_converted_list_of_all_pairs_is_solved_as_a_table(table, tmp_path):
    file = tmp_path / "pairs.txt"
    u, v = np.triu_indices(30, 1)
    file.write_text("".join(f"{a} {b} {d!r}\n" for a, b, d in zip(u, v, by_edge(table).tolist(), strict=True)))
    pf.convert(file, tmp_path / "pairs.pf")
    result = pf.solve(tmp_path / "pairs.pf", tol=1e-9)
    assert np.array_equal(result.x, by_edge(pf.metric_nearness(table, tol=1e-9).x))
    assert pf.export(tmp_path / "pairs.pf", tmp_path / "out.npz") == 435
    assert np.array_equal(np.load(tmp_path / "out.npz")["x"], result.x)


def test_a_table_may_be_a_memory_map_or_nested_lists(table, tmp_path):
    np.save(tmp_path / "table.npy", table)
    mapped = np.load(tmp_path / "table.npy", mmap_mode="r")
    whole = pf.metric_nearness(table)
    assert_same_bits(whole, pf.metric_nearness(mapped))
    assert_same_bits(whole, pf.metric_nearness(table.tolist()))


def test_a_budget_too_small_names_the_least_that_will_do(table, tmp_path):
    for options in ({}, {"workspace": tmp_path / "run.pf"}):
        with pytest.raises(pf.BudgetError, match=r"least that will do is [\d,]+ bytes") as caught:
            pf.metric_nearness(table, memory="1MB", **options)
        least = int(str(caught.value).rsplit("is ", 1)[1].split(" ")[0].replace(",", ""))
        assert pf.metric_nearness(table, memory=least, **options).converged
    with pytest.raises(pf.BudgetError):
        pf.metric_nearness(tmp_path / "run.pf", memory="1MB", restart=True)
    assert pf.open(tmp_path / "run.pf").converged


def test_external_and_client_are_for_lists_of_edges(table, tmp_path):
    path = tmp_path / "run.pf"
    result = pf.metric_nearness(table, tol=1e-6, workspace=path, external=True)
    assert result.converged and pf.resume(path).converged
    assert result.objective == pytest.approx(pf.metric_nearness(table, tol=1e-6).objective, rel=1e-5)
    assert pf.metric_nearness(path, tol=1e-6, restart=True).violation > 0
    assert "side" in ws.Workspace(path).manifest["problem"]["options"]["settings"]
    for use in (pf.resume, pf.metric_nearness):
        with pytest.raises(pf.InputError, match="client="):
            use(path, client="tcp://nowhere:1")
    with pytest.raises(pf.WorkspaceError, match="external: None then, True now"):
        pf.metric_nearness(path, tol=1e-6, external=True)


def test_distances_of_very_different_sizes_are_solved_as_edges_are(rng):
    """Two tight groups of points whose dissimilarities reach from 0 to far beyond what any detour allows."""
    x = np.repeat([0.0, 1.0], 15)[:, None] + 0.1 * rng.normal(size=(30, 2))
    apart, size = np.abs(x[:, None] - x).sum(axis=2), np.abs(x[:, None] + x).sum(axis=2)
    table = np.divide(apart, size, out=np.zeros_like(apart), where=size > 0)
    pairs = np.triu_indices(30, 1)
    result = pf.metric_nearness(table, max_iter=300)
    assert result.converged
    assert result.objective == pytest.approx(pf.metric_nearness((*pairs, table[pairs])).objective, rel=1e-5)
    bounds = [record["lower_bound"] for record in result.history]
    assert result.lower_bound >= max(bounds) * (1 - 1e-9)
