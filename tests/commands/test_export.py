"""Exported answers: what they say of an unfinished run, and how much memory they take."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

import ooc_pf as pf
from ooc_pf.commands.cli import main
from ooc_pf.storage.arrays import write_array
from ooc_pf.storage.workspace import create_workspace


@pytest.fixture
def stopped(small, tmp_path):
    """A workspace whose run was stopped before it converged."""
    pf.metric_nearness(small, tol=1e-9, workspace=tmp_path / "run.pf", max_iter=1)
    return tmp_path / "run.pf"


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_an_unfinished_run_is_told(stopped, tmp_path, capsys, ending):
    target = tmp_path / f"a.{ending}"
    assert main(["export", str(stopped), str(target), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["status"] == "iteration_limit"
    assert err.startswith("note: ") and "has not converged" in err and f"ooc-pf resume {stopped}" in err
    if ending == "parquet":
        facts = json.loads(pyarrow.parquet.read_schema(target).metadata[b"ooc_pf"])
        assert (facts["status"], "has not converged" in facts["note"]) == ("iteration_limit", True)
    elif ending == "npz":
        assert "has not converged" in str(np.load(target)["note"])
    else:
        assert target.read_text().startswith('"u","v","value","x"\n')


def test_a_script_can_insist_on_convergence(stopped, tmp_path, capsys):
    target = tmp_path / "a.parquet"
    assert main(["export", str(stopped), str(target), "--require-converged"]) == 1
    out, err = capsys.readouterr()
    assert (out, err.startswith("error: "), "has not converged" in err) == ("", True, True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.pf"]
    pf.resume(stopped)
    assert main(["export", str(stopped), str(target), "--require-converged"]) == 0
    assert capsys.readouterr().err == ""
    facts = json.loads(pyarrow.parquet.read_schema(target).metadata[b"ooc_pf"])
    assert (facts["status"], "note" in facts) == ("converged", False)


def test_python_is_warned(stopped, tmp_path):
    with pytest.warns(UserWarning, match="has not converged"):
        pf.export(stopped, tmp_path / "a.csv")
    with pytest.raises(pf.WorkspaceError, match="has not converged"):
        pf.export(stopped, tmp_path / "b.csv", require_converged=True)
    assert not (tmp_path / "b.csv").exists()


# -- memory and long labels ------------------------------------------------------------------------------------------


def test_export_keeps_within_a_budget_too(small, tmp_path, settings):
    run, whole, parts = tmp_path / "run.pf", tmp_path / "whole.csv", tmp_path / "parts.csv"
    pf.metric_nearness(small, tol=1e-3, workspace=run)
    pf.export(run, whole)
    with pytest.raises(pf.BudgetError, match="least that will do") as caught:
        pf.export(run, parts, memory="1MB")
    assert not parts.exists()
    least = int(str(caught.value).rsplit("is ", 1)[1].split(" ")[0].replace(",", ""))
    settings.small_exports(50)  # so that it takes several parts
    pf.export(run, parts, memory=least)
    assert len(small[0]) > 100
    assert parts.read_bytes() == whole.read_bytes()


def star(path, labels):
    """A solved workspace: a star whose centre is the first label."""
    ends = np.arange(1, len(labels), dtype=np.int32)
    centre = np.zeros_like(ends)
    create_workspace(path, centre, ends, np.ones(len(ends)), labels, kind="distance", source={})
    pf.solve(path)
    return path


LONG = ["A" * 50_000, *(f"é{k:04}" for k in range(2_000))]


@pytest.mark.memory
def test_a_long_label_does_not_break_the_budget(tmp_path):
    """In a process of its own, whose peak counts; fixed width would take 400 MB."""
    star(tmp_path / "run.pf", LONG)
    with pytest.raises(pf.BudgetError, match="longest, 50000 bytes; csv and parquet do not"):
        pf.export(tmp_path / "run.pf", tmp_path / "a.npz", memory="200MB")
    if not Path("/proc/self/status").exists():
        pytest.skip("needs /proc")
    code = (
        "import sys, pandas, pyarrow.csv, pyarrow.parquet; from ooc_pf.commands.export import export\n"
        "from ooc_pf.problems import nearness\n"  # modules do not count; pyarrow loads pandas, igraph matplotlib
        "def peak():\n"
        "    [line] = [line for line in open('/proc/self/status') if line.startswith('VmHWM')]\n"
        "    return 1024 * int(line.split()[1])\n"
        "before = peak(); export(sys.argv[1], sys.argv[2], memory=sys.argv[3]); print(peak() - before)"
    )
    for ending in ("csv", "parquet"):
        command = [sys.executable, "-c", code, tmp_path / "run.pf", tmp_path / f"a.{ending}", "60MB"]
        assert int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) < 60e6
    table = pyarrow.parquet.read_table(tmp_path / "a.parquet")
    assert table["v"].to_pylist() == LONG[1:]
    assert set(table["u"].to_pylist()) == {LONG[0]}
    assert (tmp_path / "a.csv").stat().st_size > 2_000 * 50_000


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
@pytest.mark.parametrize("text", [1, 30, 1 << 20])
def test_parts_make_the_same_file(tmp_path, settings, ending, text):
    run = star(tmp_path / "run.pf", ["A" * 40, *(f"é{k}" for k in range(50))])
    pf.export(run, tmp_path / f"whole.{ending}")
    settings.short_parts(rows=7, text=text)
    assert pf.export(run, tmp_path / f"parts.{ending}") == 50
    read = {
        "csv": pyarrow.csv.read_csv,
        "parquet": pyarrow.parquet.read_table,
        "npz": lambda file: {name: values.tolist() for name, values in np.load(file).items()},
    }[ending]
    assert read(tmp_path / f"parts.{ending}") == read(tmp_path / f"whole.{ending}")


def test_damaged_labels_are_named(tmp_path):
    run = star(tmp_path / "run.pf", ["a", "b", "c"])
    for name, values in (("u", np.array([0, 9], np.int32)), ("label_end", np.array([1, 9, 3]))):
        shutil.rmtree(run / "edges.zarr" / name)
        write_array(run / "edges.zarr", name, values)
        with pytest.raises(pf.WorkspaceError, match="damaged"):
            pf.export(run, tmp_path / "a.parquet")
    assert not (tmp_path / "a.parquet").exists()


def test_home_is_expanded(stopped, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.warns(UserWarning):
        pf.export("~/run.pf", "~/a.csv")
    assert (tmp_path / "a.csv").exists()
