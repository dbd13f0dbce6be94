"""What people are used to: times as they write them, the name they meant, examples in the help, a run to watch."""

import itertools
import shlex
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

import ooc_pf as pf
from ooc_pf.commands.cli import _parser, main
from ooc_pf.commands.parser import EXAMPLES
from ooc_pf.commands.status import follow, read_status
from ooc_pf.engine.limits import parse_duration
from tests.gallery import random_signed


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (None, None),
        (90, 90.0),
        (0.5, 0.5),
        (np.int64(7), 7.0),
        ("90", 90.0),
        ("1e3", 1000.0),
        ("90s", 90.0),
        ("90 sec", 90.0),
        ("30min", 1800.0),
        ("1.5 hours", 5400.0),
        ("6h", 21600.0),
        ("1h30m", 5400.0),
        ("2 days 3h", 183600.0),
        (" 2D ", 172800.0),
    ],
)
def test_times_are_read_as_people_write_them(written, seconds):
    assert parse_duration(written) == seconds


@pytest.mark.parametrize("written", [-1, "-1", "soon", "6 parsecs", "", "1h30", "1h-3m", np.nan, "nan", [5], True])
def test_what_is_no_time_is_refused(written, small):
    with pytest.raises(pf.InputError, match="max_time must be a time like"):
        parse_duration(written)
    with pytest.raises(pf.InputError, match="must be a time"):
        pf.metric_nearness(small, max_time=written)


def test_a_limit_of_no_time_stops_at_once(small):
    assert pf.metric_nearness(small, max_time="0s").status == "time_limit"


# -- what was meant ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sovle", "x.pf"], "did you mean 'solve'"),
        (["solve", "x.pf", "--problem", "clusterin"], "did you mean 'clustering'"),
        (["solve", "x.pf", "--gama", "1"], "did you mean '--gamma'"),
        (["solve", "x.pf", "--tolerance", "1"], "did you mean '--tol'"),
        (["convert", "a", "b", "--kind", "singed"], "did you mean 'signed'"),
        (["export", "a", "b", "--formt", "csv"], "did you mean '--format'"),
    ],
)
def test_a_mistyped_word_of_a_command_is_guessed(arguments, words, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert words in capsys.readouterr().err


def test_a_mistyped_name_in_python_is_guessed(solved, tmp_path):
    for call, words in (
        (lambda: pf.solve(solved, problem="nearnes"), "did you mean 'nearness'"),
        (lambda: pf.solve(solved, max_itre=3), "no problem has such an option .did you mean 'max_iter'"),
        (lambda: pf.solve(solved, gamma=3), "belongs to clustering"),
        (lambda: pf.resume(solved, worker=3), "did you mean 'workers'"),
        (lambda: pf.convert("a", tmp_path / "b", kind="sign"), "did you mean 'signed'"),
    ):
        with pytest.raises(pf.InputError, match=words):
            call()
    with pytest.raises(AttributeError, match="did you mean 'metric_nearness'"):
        _ = pf.metric_nearnes


def test_a_mistyped_column_of_a_file_is_guessed(tmp_path):
    (tmp_path / "a.csv").write_text("source,target,weight\na,b,1\n")
    with pytest.raises(pf.InputError, match=r"'wieght' is missing .*did you mean 'weight'"):
        pf.convert(tmp_path / "a.csv", tmp_path / "a.pf", columns="source,target,wieght")


# -- help -------------------------------------------------------------------------------------------------------------


def test_every_command_shows_examples_that_can_be_typed(capsys):
    for command, text in EXAMPLES.items():
        lines = [line.strip() for line in text.strip().splitlines()]
        for line in lines:
            typed = shlex.split(line.split("   ")[0].split("|")[-1].split(">")[0])
            assert _parser().parse_args(typed[1:]).run
        with pytest.raises(SystemExit):
            main(["--help"] if command == "ooc-pf" else [command, "--help"])
        assert lines[0] in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--help"])
    listed = capsys.readouterr().out
    assert all(f"    {command}" in listed for command in EXAMPLES if command != "ooc-pf")


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_shells_complete_the_command(shell, capsys):
    assert main(["completion", shell]) == 0
    assert "--max-time" in (script := capsys.readouterr().out) and "ooc-pf" in script


def test_without_shtab_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 1
    assert "pip install 'ooc_pf[completion]'" in capsys.readouterr().err


def test_the_package_is_the_command():
    done = subprocess.run([sys.executable, "-m", "ooc_pf", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"ooc-pf {pf.__version__}\n"


# -- hints ------------------------------------------------------------------------------------------------------------


def test_a_graph_without_repulsion_hints_at_base(tmp_path, capsys):
    u, v = np.array([0, 1, 2]), np.array([1, 2, 3])
    with pytest.warns(UserWarning, match="give base="):
        pf.correlation_clustering((u, v, np.ones(3)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pf.correlation_clustering((u, v, np.ones(3)), base=-1.0)
        pf.correlation_clustering((u, v, np.array([1.0, 1.0, -1.0])))
    (tmp_path / "friends.txt").write_text("a b 1\nb c 1\n")
    path = str(tmp_path / "friends.pf")
    assert main(["convert", str(tmp_path / "friends.txt"), path, "--kind", "signed", "--quiet"]) == 0
    assert main(["solve", path, "--quiet"]) == 0
    assert capsys.readouterr().err.startswith("note: no weight is negative")


def test_the_usual_problem_is_that_of_the_values(tmp_path, rng):
    u, v, weight = random_signed(rng, 12, 40)
    for kind, values, name in (("distance", abs(weight), "nearness"), ("signed", weight, "clustering")):
        lines = [f"{a} {b} {w:.6f}" for a, b, w in zip(u, v, values, strict=True)]
        (tmp_path / "links.txt").write_text("\n".join(lines))
        pf.convert(tmp_path / "links.txt", tmp_path / f"{kind}.pf", kind=kind)
        assert pf.solve(tmp_path / f"{kind}.pf").problem == name


# -- watching ---------------------------------------------------------------------------------------------------------


def test_status_knows_whether_a_solve_runs(small, tmp_path):
    path, seen = tmp_path / "run.pf", []
    pf.metric_nearness(small, workspace=path, callback=lambda record: seen.append(read_status(path)))
    assert all(facts["running"] and "nearness: running, iteration" in text for facts, text in seen)
    facts, text = read_status(path)
    assert not facts["running"] and facts["gap"] <= 1e-6 and f"gap {facts['gap']:.1e}" in text


def test_status_knows_a_solve_that_died(small, tmp_path):
    def fail(record):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        pf.metric_nearness(small, workspace=tmp_path / "run.pf", callback=fail)
    facts, text = read_status(tmp_path / "run.pf")
    assert not facts["running"] and "stopped without notice; `ooc-pf resume" in text


def test_status_tells_what_clusters_cost(tmp_path, rng):
    result = pf.correlation_clustering(random_signed(rng, 20, 80), workspace=tmp_path / "run.pf")
    facts, text = read_status(tmp_path / "run.pf")
    assert facts["cost"] == result.cost and f"certified ratio {result.certified_ratio:.4f}" in text


def test_a_running_solve_can_be_watched_to_its_end(small, tmp_path, capsys):
    """Looking at the lock all the time neither stops the solve nor misses an iteration."""
    path, begun = tmp_path / "run.pf", threading.Event()

    def slowly(record):
        begun.set()
        time.sleep(0.02)

    solver = threading.Thread(target=lambda: pf.metric_nearness(small, workspace=path, callback=slowly))
    solver.start()
    assert begun.wait(60)
    lines = list(follow(path, pause=0.001))
    solver.join()
    told = [int(line.split()[1]) for line in lines]
    last = pf.open(path).n_iter
    assert told and told[-1] == last and all(b == a + 1 for a, b in itertools.pairwise(told))
    assert main(["status", str(path), "--watch"]) == 0
    assert capsys.readouterr().out.count("converged") == 1
    assert main(["status", str(path), "--watch", "--json"]) == 1


def test_what_is_no_workspace_is_told_what_makes_one(tmp_path, capsys):
    (tmp_path / "links.txt").write_text("1 2 3\n")
    for place, what in ((tmp_path, "it has no manifest.json"), (tmp_path / "links.txt", "it is a file")):
        assert main(["status", str(place)]) == 1
        said = capsys.readouterr().err
        assert f"{place} is not a workspace: {what}; `ooc-pf convert SOURCE NEW`" in said


def test_a_longer_name_of_an_option_is_known_in_python(small, tmp_path):
    pf.metric_nearness(small, workspace=tmp_path / "run.pf", max_iter=0)
    with pytest.raises(pf.InputError, match=r"did you mean 'tol'\?"):
        pf.solve(tmp_path / "run.pf", tolerance=1e-3)
