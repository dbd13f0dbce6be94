"""A run that begins with what another one left ends where it would have ended, and never claims too much."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ooc_pf as pf
from ooc_pf.commands.cli import main
from ooc_pf.cycles.warm import matched
from tests.gallery import random_signed, small_graph, symmetric
from tests.properties import assert_same_bits

EACH = settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
CHANGES = ("weights", "signs", "fewer edges", "more edges", "fewer nodes", "other numbers")


def change(graph, how, rng):
    """The graph after a change: (u, v, value), nodes named by text."""
    u, v, value = graph
    names = np.array([f"n{k}" for k in range(max(u.max(), v.max()) + 1)], object)
    value, some = value.copy(), rng.random(len(value)) < 0.2
    if how == "weights":
        value[some] *= rng.uniform(0.2, 5.0, some.sum())
    elif how == "signs":
        value[some] *= -1.0
    elif how == "fewer edges":
        u, v, value = u[~some], v[~some], value[~some]
    elif how == "fewer nodes":
        kept = (u > 3) & (v > 3)
        u, v, value = u[kept], v[kept], value[kept]
    elif how == "other numbers":
        order = rng.permutation(len(value))
        u, v, value = v[order], u[order], value[order]
    else:
        extra = [(a, b) for a in range(4) for b in range(len(names)) if a < b and not ((u == a) & (v == b)).any()]
        u, v = np.concatenate((u, [a for a, _ in extra])), np.concatenate((v, [b for _, b in extra]))
        value = np.concatenate((value, rng.normal(0.3, 1.0, len(extra))))
    return names[u], names[v], value


def solve_both(solve, before, after, path, tol, **options):
    """The new graph from nothing, and from a run on the old one."""
    names = np.array([f"n{k}" for k in range(max(before[0].max(), before[1].max()) + 1)], object)
    solve((names[before[0]], names[before[1]], before[2]), tol=tol, workspace=path, restart=path.exists(), **options)
    return solve(after, tol=tol, **options), solve(after, tol=tol, warm_start=path, **options)


def assert_same_answer(cold, warm, tol):
    """Either bound holds for the other answer, and both are as close as was asked for."""
    slack = 1e-9 * max(1.0, abs(cold.objective))
    assert warm.lower_bound <= cold.objective + slack and cold.lower_bound <= warm.objective + slack
    assert warm.converged
    if warm.status == cold.status == "converged":
        assert warm.objective - cold.lower_bound <= 3 * tol * max(abs(cold.lower_bound), slack) + slack


@pytest.mark.long
@EACH
@given(seed=st.integers(0, 10**6), how=st.sampled_from(CHANGES))
def test_clusters_of_the_linear_program(seed, how, tmp_path_factory):
    rng, path = np.random.default_rng(seed), tmp_path_factory.mktemp("warm") / "old.pf"
    before = random_signed(rng, 16, 60)
    cold, warm = solve_both(pf.correlation_clustering, before, change(before, how, rng), path, 1e-6, ratio=1.0)
    assert_same_answer(cold, warm, 1e-5)
    assert warm.lp_lower_bound <= cold.cost * (1 + 1e-9)


@pytest.mark.long
@EACH
@given(
    seed=st.integers(0, 10**6), how=st.sampled_from(CHANGES), options=st.sampled_from(({"gamma": 1.0}, {"base": -0.3}))
)
def test_clusters_of_the_quadratic_program_and_of_complete_graphs(seed, how, options, tmp_path_factory):
    rng, path = np.random.default_rng(seed), tmp_path_factory.mktemp("warm") / "old.pf"
    before = random_signed(rng, 20, 60)
    cold, warm = solve_both(pf.correlation_clustering, before, change(before, how, rng), path, 1e-5, **options)
    assert_same_answer(cold, warm, 1e-5)


@pytest.mark.long
@EACH
@given(seed=st.integers(0, 10**6), how=st.sampled_from(CHANGES))
def test_nearness(seed, how, tmp_path_factory):
    rng, path = np.random.default_rng(seed), tmp_path_factory.mktemp("warm") / "old.pf"
    before = small_graph(rng)
    cold, warm = solve_both(pf.metric_nearness, before, change(before, how, rng), path, 1e-8)
    assert_same_answer(cold, warm, 1e-7)
    assert np.allclose(warm.x, cold.x, atol=1e-3)


@pytest.mark.long
@EACH
@given(seed=st.integers(0, 10**6), how=st.sampled_from(CHANGES))
def test_the_bound_holds_before_anything_was_done(seed, how, tmp_path_factory):
    rng, folder = np.random.default_rng(seed), tmp_path_factory.mktemp("warm")
    before = random_signed(rng, 16, 60)
    after = change(before, how, rng)
    best, _ = solve_both(pf.correlation_clustering, before, after, folder / "old.pf", 1e-4)
    begun = pf.correlation_clustering(after, max_iter=0, warm_start=folder / "old.pf", workspace=folder / "new.pf")
    assert 0.0 <= begun.lower_bound <= best.objective * (1 + 1e-9)
    assert begun.n_active > 0 or how == "signs"
    pf.verify(folder / "new.pf")


def test_a_table(rng, tmp_path):
    table = symmetric(rng, 30, 0.2, 3.0)
    pf.metric_nearness(table, workspace=tmp_path / "old.pf")
    table[3, 7] = table[7, 3] = 5.0
    cold, warm = pf.metric_nearness(table), pf.metric_nearness(table, warm_start=tmp_path / "old.pf")
    assert_same_answer(cold, warm, 1e-9)
    limited = pf.metric_nearness(table, upper=4.0, warm_start=tmp_path / "old.pf", workspace=tmp_path / "new.pf")
    assert_same_answer(pf.metric_nearness(table, upper=4.0), limited, 1e-9)
    assert pf.verify(tmp_path / "new.pf")["rows"] == limited.n_active
    with pytest.raises(pf.InputError, match="a table of other nodes"):
        pf.metric_nearness(table[:20, :20], warm_start=tmp_path / "old.pf")


UNITS = {"linear": {"ratio": 1.0}, "quadratic": {"gamma": 1.0}, "complete": {"base": -0.2}, "nearness": {}, "table": {}}


@pytest.mark.long
@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("unit", [1e-12, 1e9, 1e12, 1e100])
def test_a_run_in_other_units_does_no_harm(rng, tmp_path, name, unit):
    """Multipliers that are far too large leave nothing behind: neither in the bound nor in the invariant."""
    distances = name in ("nearness", "table")
    solve = pf.metric_nearness if distances else pf.correlation_clustering
    u, v, value = small_graph(rng) if distances else random_signed(rng, 12, 40)
    graph, other = (u, v, value), (u, v, unit * value)
    if name == "table":
        graph = symmetric(rng, 12, 0.2, 3.0)
        other = unit * graph
    solve(other, workspace=tmp_path / "old.pf", tol=1e-4, **UNITS[name])
    cold = solve(graph, tol=1e-4, **UNITS[name])
    warm = solve(graph, tol=1e-4, warm_start=tmp_path / "old.pf", workspace=tmp_path / "new.pf", **UNITS[name])
    assert_same_answer(cold, warm, 1e-4)
    pf.verify(tmp_path / "new.pf", oracle="numba")


def test_an_unchanged_graph_takes_less(rng, tmp_path):
    graph = random_signed(rng, 20, 70)
    cold = pf.correlation_clustering(graph, workspace=tmp_path / "old.pf", tol=1e-4)
    warm = pf.correlation_clustering(graph, warm_start=tmp_path / "old.pf", tol=1e-4)
    assert warm.n_iter < cold.n_iter and warm.cost == cold.cost


@pytest.mark.long
def test_memory_and_disk_have_the_same_bits_and_a_run_goes_on(rng, tmp_path):
    before = random_signed(rng, 20, 70)
    pf.correlation_clustering(before, workspace=tmp_path / "old.pf", tol=1e-4)
    after = change(before, "weights", rng)
    old, new = str(tmp_path / "old.pf"), tmp_path / "new.pf"
    begun = pf.correlation_clustering(after, warm_start=old, workspace=new, tol=1e-6, ratio=1.0, max_iter=2)
    assert begun.status == "iteration_limit"
    # The other run is not asked again.
    on_disk = pf.correlation_clustering(after, warm_start="nowhere.pf", workspace=new, tol=1e-6, ratio=1.0)
    in_memory = pf.correlation_clustering(after, warm_start=old, tol=1e-6, ratio=1.0)
    assert_same_bits(in_memory, on_disk)


@pytest.mark.long
def test_from_the_command_line(rng, tmp_path, capsys):
    before = random_signed(rng, 20, 70)
    for name, weight in (("sunday", before[2]), ("monday", before[2] * 1.01)):
        lines = "\n".join(f"{a} {b} {w:.6f}" for a, b, w in zip(*before[:2], weight, strict=True))
        (tmp_path / f"{name}.txt").write_text(lines)
        args = [str(tmp_path / f"{name}.txt"), str(tmp_path / f"{name}.pf")]
        assert main(["convert", *args, "--kind", "signed", "--quiet"]) == 0
    assert main(["solve", str(tmp_path / "sunday.pf"), "--quiet"]) == 0
    assert main(["solve", str(tmp_path / "monday.pf"), "--warm-start", str(tmp_path / "sunday.pf")]) == 0
    assert "begins with" in capsys.readouterr().err
    assert pf.open(tmp_path / "monday.pf").n_iter < pf.open(tmp_path / "sunday.pf").n_iter


@pytest.mark.long
def test_what_cannot_be_taken_over_is_refused(rng, tmp_path, solved):
    graph = random_signed(rng, 20, 60)
    pf.correlation_clustering(graph, workspace=tmp_path / "old.pf")
    (tmp_path / "links.txt").write_text("a b 1\nb c 1\n")
    pf.convert(tmp_path / "links.txt", tmp_path / "raw.pf", kind="signed")
    for options, words in (
        ({"warm_start": tmp_path / "old.pf", "workspace": tmp_path / "old.pf"}, "is the workspace itself"),
        ({"warm_start": graph}, "must be the path of a workspace, found tuple"),
        ({"warm_start": solved}, "holds a run of nearness, not clustering of edges"),
        ({"warm_start": tmp_path / "old.pf", "workspace": tmp_path / "n.pf", "external": True}, "for graphs in memory"),
    ):
        with pytest.raises(pf.InputError, match=words):
            pf.correlation_clustering(graph, **options)
    with pytest.raises(pf.WorkspaceError, match="has not been solved"):
        pf.correlation_clustering(graph, warm_start=tmp_path / "raw.pf")
    with pytest.raises(pf.WorkspaceError):
        pf.correlation_clustering(graph, warm_start=tmp_path / "nowhere.pf")


def test_a_refused_one_costs_nothing_when_a_run_is_begun_again(rng, tmp_path, solved):
    graph = random_signed(rng, 12, 30)
    first = pf.correlation_clustering(graph, workspace=tmp_path / "votes.pf")
    with pytest.raises(pf.InputError, match="holds a run of nearness"):
        pf.correlation_clustering(graph, workspace=tmp_path / "votes.pf", warm_start=solved, restart=True)
    assert pf.open(tmp_path / "votes.pf").objective == first.objective


def test_clustering_begins_with_trees(rng, tmp_path):
    """Cycles without common edges are for a run that has no rows yet."""
    u, v, weight = random_signed(rng, 30, 120)
    pf.correlation_clustering((u, v, weight), tol=1e-6, workspace=tmp_path / "old.pf")
    warm = pf.correlation_clustering((u, v, weight * 1.1), tol=1e-6, warm_start=tmp_path / "old.pf", max_iter=1)
    assert [record["stage"] for record in warm.history] == ["trees"]


def test_the_quadratic_program_does_not_begin_with_triangles_again(rng, tmp_path):
    u, v, weight = random_signed(rng, 30, 120)
    pf.correlation_clustering((u, v, weight), gamma=1.0, tol=1e-6, workspace=tmp_path / "old.pf")
    options = {"gamma": 1.0, "tol": 1e-6, "warm_start": tmp_path / "old.pf"}
    warm = pf.correlation_clustering((u, v, rng.permutation(weight)), **options)
    assert warm.history[0]["stage"] == "squares" and "trees" in {record["stage"] for record in warm.history}
    assert "triangles" not in {record["stage"] for record in warm.history}


def test_labels_match_by_what_they_say():
    assert matched(np.array([5, 7, 9]), np.array([9, 5])).tolist() == [1, -1, 0]
    assert matched(np.array([5, 7]), np.array(["7", "x"], object)).tolist() == [-1, 0]
    assert matched(np.array([5, 7]), np.array([], np.int64)).tolist() == [-1, -1]
