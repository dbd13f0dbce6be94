"""The command as a person, or a script, meets it."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

import ooc_pf as pf
from ooc_pf.commands.cli import main


@pytest.fixture
def links(tmp_path, rng):
    """A small edge list with text labels, and its path."""
    lines = [f"n{a} n{b} {rng.random():.6f}" for a in range(25) for b in range(a + 1, 25) if rng.random() < 0.5]
    path = tmp_path / "links.txt"
    path.write_text("# from to distance\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture
def converted(links, capsys):
    path = links.with_suffix(".pf")
    assert main(["convert", str(links), str(path), "--quiet"]) == 0
    capsys.readouterr()
    return path


@pytest.mark.long
def test_from_edge_list_to_exported_answer(links, tmp_path, capsys):
    path = tmp_path / "run.pf"
    assert main(["convert", str(links), str(path)]) == 0
    assert "25 nodes" in capsys.readouterr().out
    assert main(["status", str(path)]) == 0
    assert "not solved yet" in capsys.readouterr().out
    assert main(["solve", str(path), "--problem", "nearness", "--tol", "1e-8"]) == 0
    out, err = capsys.readouterr()
    assert "lower bound" in out
    assert "it    1" in err
    assert main(["status", str(path), "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["status"], status["problem"], status["nodes"]) == ("converged", "nearness", 25)
    assert main(["verify", str(path), "--oracle", "numba"]) == 0
    assert "verified" in capsys.readouterr().out
    tables = {}
    for ending in ("csv", "parquet", "npz"):
        assert main(["export", str(path), str(tmp_path / f"answer.{ending}")]) == 0
    tables["csv"] = pyarrow.csv.read_csv(tmp_path / "answer.csv").to_pydict()
    tables["parquet"] = pyarrow.parquet.read_table(tmp_path / "answer.parquet").to_pydict()
    with np.load(tmp_path / "answer.npz") as file:
        tables["npz"] = {name: file[name].tolist() for name in file}
    assert tables["csv"] == tables["parquet"] == tables["npz"]
    given = {tuple(line.split()[:2]): float(line.split()[2]) for line in links.read_text().splitlines()[1:]}
    answer = tables["csv"]
    assert dict(zip(zip(answer["u"], answer["v"], strict=True), answer["value"], strict=True)) == given or {
        frozenset(k): v for k, v in given.items()
    } == dict(zip(map(frozenset, zip(answer["u"], answer["v"], strict=True)), answer["value"], strict=True))
    assert answer["x"] == pf.open(path).x.tolist()


def test_limit_resume_and_exit_codes(converted, capsys):
    assert main(["solve", str(converted), "--max-iter", "2", "--quiet"]) == 3
    assert f"ooc-pf resume {converted}" in capsys.readouterr().out
    assert main(["resume", str(converted), "--json"]) == 0
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert report["status"] == "converged"
    assert report["gap"] <= 1e-6
    assert "continuing" in err
    assert main(["solve", str(converted), "--json", "--max-time", "0", "--restart", "--quiet"]) == 3
    assert json.loads(capsys.readouterr().out)["violation"] is None


def test_failures_are_one_line_on_stderr(converted, tmp_path, capsys):
    for arguments, words in (
        (["solve", str(tmp_path / "none.pf")], "no such workspace"),
        (["export", str(converted), str(tmp_path / "a.csv")], "has not been solved yet"),
        (["resume", str(converted)], "no run yet"),
        (["solve", str(converted), "--memory", "much"], "is not a size"),
        (["convert", str(tmp_path / "none.txt"), str(tmp_path / "n.pf")], "none.txt"),
        (["convert", str(converted), str(converted)], "already exists"),
    ):
        assert main(arguments) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("error: ")
        assert words in err
    assert main(["solve", str(converted), "--quiet"]) == 0
    capsys.readouterr()
    assert main(["export", str(converted), str(tmp_path / "a.docx")]) == 1
    assert main(["solve", str(converted), "--tol", "1e-3"]) == 1
    assert "tol: 1e-06 then, 0.001 now" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        main(["solve"])
    assert caught.value.code == 2


@pytest.mark.long
def test_example_explains_a_certificate(capsys, tmp_path):
    assert main(["example"]) == 0
    out, _ = capsys.readouterr()
    assert "no grouping of any kind contradicts fewer" in out
    assert main(["example", "--keep", str(tmp_path / "kept"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["optimal"] is True
    assert pf.open(tmp_path / "kept" / "club.pf").converged


@pytest.mark.faults
def test_ctrl_c_ends_with_130_after_a_commit(tmp_path, rng):
    """The real command in its own process, interrupted in the middle of a pass."""
    nodes = 3000
    u, v = rng.integers(0, nodes, (2, 40_000))
    pairs = np.unique(np.sort(np.column_stack((u, v))[u != v], axis=1), axis=0)
    links = tmp_path / "links.txt"
    np.savetxt(links, np.column_stack((pairs, rng.random(len(pairs)))), fmt=["%d", "%d", "%.6f"])
    path = tmp_path / "run.pf"
    assert main(["convert", str(links), str(path), "--quiet"]) == 0
    command = [sys.executable, "-m", "ooc_pf", "solve", str(path), "--tol", "1e-8"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if "  it    3  " in line:
            break
    time.sleep(0.3)
    os.kill(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"ooc-pf resume {path}" in out
    assert pf.open(path).status == "interrupted"
    assert pf.resume(path, max_iter=1).n_iter >= 4


@pytest.mark.long
def test_the_script_is_the_command(links, tmp_path):
    script = [sys.executable, "tools/convert_edges.py", str(links), str(tmp_path / "s.pf"), "--json", "--quiet"]
    done = subprocess.run(script, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["nodes"] == 25


@pytest.mark.long
def test_clusters_of_a_signed_file(tmp_path, capsys):
    """Two friendly triangles that dislike each other, with labels of their own."""
    lines = ["a b 1", "b c 1", "a c 1", "x y 1", "y z 1", "x z 1", "a x -1", "b y -1", "c z 1"]
    (tmp_path / "trust.txt").write_text("\n".join(lines))
    path = tmp_path / "trust.pf"
    assert main(["convert", str(tmp_path / "trust.txt"), str(path), "--kind", "signed", "--quiet"]) == 0
    assert main(["solve", str(path), "--problem", "nearness", "--gamma", "2", "--quiet"]) == 1  # not its option
    assert main(["solve", str(path), "--gamma", "2", "--tol", "1e-6", "--quiet"]) == 0  # signed weights are clustered
    out = capsys.readouterr().out
    assert "certified" in out
    assert main(["resume", str(path), "--json", "--quiet"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["cost"] == 1.0
    assert main(["export", str(path), str(tmp_path / "clusters.csv"), "--clusters"]) == 0
    table = pyarrow.csv.read_csv(tmp_path / "clusters.csv").to_pydict()
    found = dict(zip(table["node"], table["cluster"], strict=True))
    assert {found[n] for n in "abc"} != {found[n] for n in "xyz"}
    assert len(set(found.values())) == 2
    assert main(["export", str(path), str(tmp_path / "edges.csv")]) == 0
    assert main(["status", str(path)]) == 0


def test_a_clustering_without_a_bound_yet_is_still_one_json_object(tmp_path, capsys):
    (tmp_path / "votes.txt").write_text("a b 1\nb c 1\na c -1\n")
    path = tmp_path / "votes.pf"
    assert main(["convert", str(tmp_path / "votes.txt"), str(path), "--kind", "signed", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["solve", str(path), "--problem", "clustering", "--max-iter", "0", "--json", "--quiet"]) == 3
    report = json.loads(capsys.readouterr().out, parse_constant=lambda word: pytest.fail(word))
    assert report["cost"] == 1.0
    assert main(["solve", str(path), "--problem", "clustering", "--max-iter", "0", "--quiet"]) == 3
    assert "none yet" in capsys.readouterr().out


def test_numbers_are_read_as_people_write_them(converted, capsys):
    with pytest.raises(SystemExit):
        main(["solve", str(converted), "--gamma", "foo"])
    assert "'foo' is neither a number nor 'none'" in capsys.readouterr().err
    assert main(["solve", str(converted), "--problem", "clustering", "--base", "-1e-1", "--quiet"]) == 1
    assert "kind" in capsys.readouterr().err  # the workspace is of distances; the number was understood


def test_the_example_does_not_write_into_what_is_there(tmp_path, capsys):
    assert main(["example", "--keep", str(tmp_path)]) == 1
    assert "is there already" in capsys.readouterr().err
