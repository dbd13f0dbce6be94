"""The report of a run."""

import types

import ooc_pf as pf
from ooc_pf.commands.cli import main
from ooc_pf.commands.report import _facts
from ooc_pf.commands.status import read_status


def test_report_tells_the_run(small, tmp_path, capsys):
    pf.metric_nearness(small, workspace=tmp_path / "run.pf", tol=1e-6)
    assert main(["report", str(tmp_path / "run.pf")]) == 0
    told = capsys.readouterr().out
    result = pf.open(tmp_path / "run.pf")
    assert f"converged after {result.n_iter} iterations" in told
    assert f"| lower bound | {result.lower_bound:.12g} |" in told
    assert "| certify |" in told and "## Iterations" in told
    assert main(["report", str(tmp_path / "run.pf"), "--output", str(tmp_path / "run.md"), "--json"]) == 0
    assert (tmp_path / "run.md").read_text().strip() == told.strip()


def test_progress_and_report_use_the_same_words(small, tmp_path, capsys):
    pf.metric_nearness(small, workspace=tmp_path / "run.pf", tol=1e-6, progress=True)
    shown, told = capsys.readouterr().err, pf.report(tmp_path / "run.pf")
    for words in ("gap", "violation"):
        assert f" {words} " in shown and f"| {words} |" in told


def test_a_run_that_proved_nothing_yet_has_no_gap(small, tmp_path):
    path = tmp_path / "run.pf"
    pf.metric_nearness(small, workspace=path, max_iter=0)
    assert "| gap | none yet |" in pf.report(path) and "gap" not in read_status(path)[1]


def test_a_bound_below_zero_proves_as_much_as_one_above():
    certified = types.SimpleNamespace(summary=lambda: {"gap": 1e-9}, lower_bound=-2.0, history=[])
    assert list(_facts(certified)) == [("gap", "1e-09")]
