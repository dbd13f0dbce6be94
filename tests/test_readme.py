"""What the README says can be typed in works as it stands there."""

import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

import ooc_pf as pf
from ooc_pf.commands.cli import main
from tests.gallery import random_graph

HERE = Path(__file__).parents[1]
README = (HERE / "README.md").read_text()


@pytest.mark.long
def test_the_commands_of_the_readme_run_in_order(tmp_path, monkeypatch, rng, capsys):
    monkeypatch.chdir(tmp_path)
    u, v = random_graph(rng, 30, 120)
    weights = rng.normal(0.3, 1.0, len(u))
    for name, values in (("links.txt", abs(weights)), ("votes.txt", weights)):
        lines = [f"{a} {b} {w:.6f}" for a, b, w in zip(u, v, values, strict=True)]
        Path(name).write_text("\n".join(lines))
    rows = rng.normal(size=(60, 4))
    np.save("rows.npy", rows)
    np.save("labels.npy", rows[:, 0] > 0)
    columns = {"f1": rows[:, 0], "f2": rows[:, 1], "spam": rows[:, 2] > 0}
    pyarrow.parquet.write_table(pyarrow.table(columns), "table.parquet")
    for name, values in (("X", rows), ("Y", rows + 0.1), ("a", np.full(60, 1 / 60)), ("b", np.full(60, 1 / 60))):
        np.save(f"{name}.npy", values)
    commands = re.findall(r"^(ooc-pf [^#\n]*)", README, re.MULTILINE)
    assert len(commands) > 8
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0, command
    assert Path("answer.parquet").exists()
    assert Path("clusters.csv").exists()


def test_the_example_prints_what_is_shown(capsys):
    assert main(["example"]) == 0
    assert f"<!-- example -->\n```\n{capsys.readouterr().out}```" in README


def test_the_test_command_is_the_one_of_the_checks():
    command = re.search(r"<!-- test-command -->\n```sh\n(.*)\n```", README).group(1)
    assert command.startswith("python")
    assert "pytest" in command


def test_a_problem_of_ones_own_is_solved_as_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = re.search(r"<!-- own-problem -->\n```python\n(.*?)```", README, re.DOTALL).group(1)
    assert len([line for line in code.splitlines() if line.strip()]) <= 20
    Path("own.py").write_text(code)
    for _ in range(2):
        result = runpy.run_path("own.py")["result"]
        assert result.converged and result.gap <= 1e-9
        assert abs(result.x.sum() - 1.0) < 1e-8 and result.x.max() <= 0.02 + 1e-8


def test_the_links_shown_are_clustered(tmp_path):
    code = re.search(r"<!-- links -->\n```python\n(.*?)```", README, re.DOTALL).group(1)
    (tmp_path / "links.py").write_text(code)
    found = runpy.run_path(str(tmp_path / "links.py"))["found"]
    assert found.table["cluster_id"].tolist() == [0, 0, 1, 1] and found.proven.all()


def test_the_forms_shown_are_taken(tmp_path):
    code = re.search(r"<!-- forms -->\n```python\n(.*?)```", README, re.DOTALL).group(1)
    (tmp_path / "forms.py").write_text(code.replace("pf.correlation", "labels = pf.correlation"))
    assert runpy.run_path(str(tmp_path / "forms.py"))["labels"] == {"Ann": 0, "Bob": 0, "Cleo": 1}


# -- every other block ------------------------------------------------------------------------------------------------


@pytest.fixture
def given(rng):
    """What the blocks of the README begin with, by name."""
    u, v = random_graph(rng, 40, 160)
    X = rng.normal(size=(60, 4))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=60) > 0, 1, -1)
    matrix = np.corrcoef(rng.normal(size=(20, 30))) + 0.2 * rng.normal(size=(20, 20))
    return {
        "np": np,
        "pf": pf,
        "u": u,
        "v": v,
        "d": rng.random(len(u)),
        "weight": rng.choice([-1.0, 1.0], len(u)),
        "X": X,
        "Y": X + 0.1,
        "y": y,
        "a": np.full(60, 1 / 60),
        "b": np.full(60, 1 / 60),
        "more": X,
        "labels": y,
        "pairs": X.reshape(30, 2, 4),
        "blocks": lambda: iter([(X.reshape(30, 2, 4), y[:30])]),
        "indices": np.arange(60).reshape(30, 2),
        "matrix": 0.5 * (matrix + matrix.T),
        "diagonal": np.arange(20) * 21,
    }


# What a block needs beside that: labels of pairs instead of points, distances that are not negative.
BESIDE = {
    "pf.ITML(": "y = y[:30]\n",
    "braycurtis": "X = abs(X)\n",
}


def unmarked_blocks():
    found = re.finditer(r"(<!-- [a-z-]+ -->\n)?```python\n(.*?)```", README, re.DOTALL)
    return [match.group(2) for match in found if not match.group(1)]


@pytest.mark.long
@pytest.mark.parametrize("block", unmarked_blocks(), ids=lambda block: block.splitlines()[-1][:40])
def test_every_block_runs(block, given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", given["X"])
    code = block.replace("random_dissimilarities(500", "random_dissimilarities(30")
    for line in code.splitlines(keepends=True):
        for word, first in BESIDE.items():
            if word in line and "Supervised" not in line:
                exec(first, given)
        exec(line, given)


def test_no_block_is_left_out():
    kinds = re.findall(r"^```(\w*)$", README, re.MULTILINE)
    assert set(kinds) == {"", "sh", "python"}
    marks = set(re.findall(r"<!-- ([a-z-]+) -->", README))
    assert marks == {"example", "test-command", "forms", "links", "own-problem", "new-problem"}
    for line in re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL):
        known = ("ooc-pf ", "python3 -m venv ", ".venv/bin/python -m pytest")
        assert all(command.startswith(known) for command in line.splitlines()), line


def test_every_place_it_names_is_there():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (HERE / target).exists(), target
    for file in re.findall(r"`((?:examples|tools|tests)/[\w/.]+)`", README):
        assert (HERE / file).exists(), file


def test_the_picture_is_of_the_history_that_is_kept(tmp_path):
    script = runpy.run_path(str(HERE / "tools/bench/picture.py"))
    history = script["read_history"](HERE / "tools/bench/slashdot.json")
    drawn = script["draw"](history, "Slashdot: 82,140 people, 498,532 friends and foes")
    assert drawn == (HERE / "tools/bench/slashdot.svg").read_text()
    assert history[-1]["cost"] / history[-1]["bound_of_clusterings"] <= 1.0015


@pytest.mark.long
@pytest.mark.parametrize("table", ["transport --sizes 501 --as-paper 501", "colours --sizes 512"])
def test_the_paper_s_tables_are_rebuilt_with_its_figures_beside(table):
    script = HERE / "tools/bench/paper_applications.py"
    done = subprocess.run([sys.executable, script, *table.split()], capture_output=True, text=True, cwd=HERE)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith(f"| {table.split()[2]} |")]
    if table.startswith("transport"):
        assert [line.split(" | ")[2] for line in rows] == ["3.841607714"] * 2
        assert all(line.endswith("| 3.8416077 | 1.7e-09 | 12 |") for line in rows)
    else:
        assert len(rows) == 1 and rows[0].endswith("| 8e-11 | 9.8e-11 | 611 | 6 |")
