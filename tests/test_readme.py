"""What the README says can be typed in works as it stands there."""

import re
import runpy
import shlex
from pathlib import Path

import pytest

from ooc_pf.commands.cli import main
from tests.gallery import random_graph

README = (Path(__file__).parents[1] / "README.md").read_text()


@pytest.mark.long
def test_the_commands_of_the_readme_run_in_order(tmp_path, monkeypatch, rng, capsys):
    monkeypatch.chdir(tmp_path)
    u, v = random_graph(rng, 30, 120)
    weights = rng.normal(0.3, 1.0, len(u))
    for name, values in (("links.txt", abs(weights)), ("votes.txt", weights)):
        lines = [f"{a} {b} {w:.6f}" for a, b, w in zip(u, v, values, strict=True)]
        Path(name).write_text("\n".join(lines))
    commands = re.findall(r"^(ooc-pf [^#\n]*)", README, re.MULTILINE)
    assert len(commands) > 8
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0, command
    assert Path("answer.parquet").exists()
    assert Path("clusters.csv").exists()


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
