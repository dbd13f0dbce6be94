"""The benchmarks: what they share, what they say of opponents, and that what is written about them can be run."""

import importlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

import ooc_pf as pf

HERE = Path(__file__).parents[1]
BENCH = HERE / "tools/bench"
NOTES = (BENCH / "README.md").read_text()


@pytest.fixture
def bench(monkeypatch):
    """A module of the benchmarks, by name."""
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module


# -- what is written --------------------------------------------------------------------------------------------------


def test_every_command_of_the_notes_can_be_typed():
    commands = re.findall(r"`(?:\w+=\S+ )?(?:nice -n \d+ )?python (tools/\S+\.py)([^`]*)`", NOTES)
    assert len(commands) > 20
    for script, options in commands:
        code = (HERE / script).read_text() + (BENCH / "common.py").read_text()
        for option in re.findall(r"--[a-z-]+", options):
            assert f'"{option}"' in code, (script, option)


def test_the_notes_begin_with_one_table_and_each_section_has_a_command():
    head, *sections = re.split(r"^## ", NOTES, flags=re.MULTILINE)
    assert head.startswith("# Measured\n\n| problem |") and head.count("\n|---|") == 1
    for section in sections:
        assert re.search(r"`[^`]*python (?:-m )?\S+", section), section.splitlines()[0]


def test_all_benchmarks_name_scripts_that_are_there(bench):
    run = bench("run")
    for command in (*run.QUICK.values(), *run.FULL.values(), run.BEFORE):
        script, *words = command.split()
        code = (BENCH / script).read_text() + (BENCH / "common.py").read_text()
        assert all(f'"{word}"' in code for word in words if word.startswith("--")), command


@pytest.mark.long
def test_benchmarks_are_saved_with_their_circumstances(bench, tmp_path, monkeypatch, capsys):
    run = bench("run")
    saved = tmp_path / "bench.json"
    monkeypatch.setattr("sys.argv", ["run.py", "--quick", "--only", "convert,commits", "--output", str(saved)])
    monkeypatch.setitem(run.QUICK, "convert", "convert.py --rows 1000 --json")
    monkeypatch.setitem(run.QUICK, "commits", "commits.py no-number")
    assert run.main() == 1
    report = json.loads(saved.read_text())
    assert {"commit", "machine", "versions", "seed", "python"} <= report.keys()
    assert report["results"]["convert"]["error"] is None and report["results"]["convert"]["printed"]["rows"] == 1000
    assert "no-number" in report["results"]["commits"]["error"]
    assert "| convert | `convert.py --rows 1000 --json` |" in capsys.readouterr().out


# -- what they share --------------------------------------------------------------------------------------------------


def test_a_generated_network_is_simple_and_the_same_every_time(bench):
    common = bench("common")
    u, v, sign = common.signed_network(500, 60)
    assert (u < v).all() and len(np.unique(60 * u + v)) == len(u) <= 500 and set(sign) == {-1.0, 1.0}
    assert all(np.array_equal(a, b) for a, b in zip((u, v, sign), common.signed_network(500, 60)))


def test_a_network_that_was_written_is_read_again(bench, tmp_path):
    common = bench("common")
    common.write_network(tmp_path / "graph.txt", 500, 60)
    u, v, sign = common.signed_network(500, 60)
    assert len(np.unique((u, v))) == 60
    assert all(np.array_equal(a, b) for a, b in zip((u, v, sign), common.read_edges(tmp_path / "graph.txt")))
    assert common.read_pairs(tmp_path / "graph.txt")[2] == 60


def test_tables_leave_unknown_cells_empty(bench):
    rows = [{"n": 1000, "gap": 1.25e-9, "cost": 3736.0}, {"n": 2, "gap": None, "cost": "not done"}]
    lines = bench("common").table(rows).splitlines()
    assert lines == ["| n | gap | cost |", "|---|---|---|", "| 1,000 | 1.25e-09 | 3,736 |", "| 2 |  | not done |"]


def test_the_peak_begins_anew(bench):
    common = bench("common")
    before = common.peak_from_here()
    held = np.ones(20_000_000)
    assert common.peak_mb() >= before + held.nbytes // 2**20 - 8


# -- opponents --------------------------------------------------------------------------------------------------------


def test_ours_is_looked_up_at_the_time_of_an_opponent(bench):
    ratio = bench("ratio")
    known = [
        {"seconds": 1.0, "processor_seconds": 1.5, "cost": 9.0, "bound": 5.0},
        {"seconds": 2.0, "processor_seconds": 3.0, "cost": 7.0, "bound": 6.5},
    ]
    facts = {"cost": 8.0, "seconds": 2.5, "processor_seconds": 2.5, "peak_mb": 1}
    row = ratio.row("other", facts, known, "nothing")
    assert row["our cost and bound by then"] == "7, 6.5" and row["after as much processor time"] == "9, 5"
    assert row["ours was as good after, s"] == 2.0
    assert ratio.by_then(known, {"seconds": 0.5}, "seconds") == "none yet"


@pytest.mark.long
def test_leiden_finds_two_camps_in_a_process_of_its_own(bench):
    u, v = np.triu_indices(10, 1)
    graph = u, v, np.where(u // 5 == v // 5, 1.0, -1.0)
    found = bench("opponents").measure("Leiden", graph, limit=120.0)
    assert found["cost"] == 0.0 and found["peak_mb"] > 0


def test_greedy_clusters_cost_no_less_than_the_bound(bench):
    pytest.importorskip("bioimage_cpp")
    opponents, graph = bench("opponents"), bench("common").signed_network(400, 60)
    bound = pf.correlation_clustering(graph, tol=1e-3).lp_lower_bound
    for find in (opponents.gaec, opponents.kernighan_lin):
        assert opponents.clustering_cost(*graph, find(graph)) >= bound * (1.0 - 1e-9)


def test_a_loop_of_cuts_reaches_the_same_optimum(bench, tmp_path, monkeypatch, capsys):
    pytest.importorskip("highspy")
    cuts, path = bench("cuts"), tmp_path / "small.txt"
    bench("common").write_network(path, 100, 25)
    monkeypatch.setattr("sys.argv", ["cuts.py", str(path), "--output", str(tmp_path)])
    cuts.main()
    (row,) = json.loads((tmp_path / "cuts.json").read_text())["rows"]
    assert row["HiGHS"] == pytest.approx(row["our lower bound"], rel=1e-5)
    assert "| small | 25 |" in capsys.readouterr().out


def test_before_and_after_stand_over_each_other(bench):
    old, new = ({"processor_seconds": s, "seconds": s, "peak_mb": 100, "gap": 1e-3, "cost": 5.0} for s in (4.0, 1.0))
    *_, over = bench("compare").rows("wiki", [old, old], [new, new])
    assert over["clock, s"] == 0.25 and over["cost"] == 1.0 and over["certified ratio"] is None


# -- the paper --------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_table_of_sizes_and_its_picture(bench, tmp_path, monkeypatch, capsys):
    words = ["paper.py", "nearness", "--sizes", "20,30", "--curve", "20", "--output", str(tmp_path)]
    monkeypatch.setattr("sys.argv", words)
    bench("paper").main()
    rows = json.loads((tmp_path / "paper-nearness.json").read_text())["rows"]
    assert [row["n"] for row in rows] == [20, 30] and all(row["gap"] <= 1e-10 for row in rows)
    assert "cyclic Bregman" in (tmp_path / "paper-nearness.svg").read_text()
    assert "another machine" in capsys.readouterr().out


def test_the_largest_violation_of_a_triangle(bench):
    x = np.triu(np.array([[0.0, 5.0, 1.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]))
    assert bench("paper").worst_triangle(x) == 2.0
