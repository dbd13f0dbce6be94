"""Progress: a line that fits, for people and for logs, and a bar where one can be seen."""

import io
import logging
import sys
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ooc_pf as pf
from ooc_pf.engine.monitor import COLUMNS, Monitor, describe_iteration
from tests.gallery import random_signed

NUMBERS = st.floats(allow_nan=False, width=32)
RECORDS = st.fixed_dictionaries(
    {
        "iteration": st.integers(1, 10**6),
        "stage": st.sampled_from(("triangles", "trees", "certify", "scan")),
        "lower_bound": NUMBERS,
        "worst": st.floats(0, 1e300),
        "kept": st.integers(0, 10**12),
        "found": st.integers(0, 10**12),
    },
    optional={"ratio": st.floats(1, 1e9), "gap": st.floats(0, 1e300), "cost": NUMBERS},
)


@given(record=RECORDS)
def test_a_line_fits_and_says_how_far_it_is(record):
    line = describe_iteration(record, 1e-6, 1.001)
    assert len(line) <= COLUMNS < 80
    assert f"it {record['iteration']:4d}" in line and f"bound {record['lower_bound']:.8g}" in line
    if "ratio" in record and record["ratio"] < 1e3:
        assert f"ratio {record['ratio']:.5f} (goal 1.001)" in line
    elif "gap" in record and "ratio" not in record:
        assert f"gap {record['gap']:.1e} (goal 1e-06)" in line


def test_progress_in_a_log_has_no_control_characters_and_fits(rng, tmp_path, capsys):
    result = pf.correlation_clustering(random_signed(rng, 20, 70), progress=True, workspace=tmp_path / "run.pf")
    lines = capsys.readouterr().err.splitlines()
    assert sum("bound" in line for line in lines) == result.n_iter
    assert all(len(line) < 80 and line.isprintable() for line in lines if "compiling" not in line)
    assert any("(goal 1.01)" in line for line in lines)


def test_the_log_of_the_program_gets_the_same_lines(small, caplog, capsys):
    caplog.set_level(logging.INFO, logger="ooc_pf")
    pf.metric_nearness(small, progress=True)
    logged = [record.getMessage() for record in caplog.records if record.name == "ooc_pf"]
    assert logged == capsys.readouterr().err.splitlines()
    caplog.clear()
    result = pf.metric_nearness(small)
    assert len(caplog.records) == result.n_iter and not capsys.readouterr().err


def test_convert_draws_no_bar_into_a_log(tmp_path, capsys):
    (tmp_path / "links.txt").write_text("".join(f"{k} {k + 1} 1\n" for k in range(1000)))
    pf.convert(tmp_path / "links.txt", tmp_path / "links.pf", progress=True)
    assert "\r" not in capsys.readouterr().err


@pytest.mark.parametrize("installed", [True, False])
def test_a_notebook_gets_a_bar_of_its_own(installed, monkeypatch):
    drawn = []

    class Bar:
        def __init__(self, **options):
            drawn.append(options)

        def update(self):
            drawn.append("update")

        def close(self):
            drawn.append("close")

    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=Bar) if installed else None)
    stream = io.StringIO()
    monitor = Monitor(progress=True, stream=stream)
    with monitor.bar("certify", 2) as tick:
        assert tick() and tick()
    wanted = [{"total": 2, "desc": "certify", "unit": "block", "leave": False}, "update", "update", "close"]
    assert drawn == (wanted if installed else []) and stream.getvalue() == ""
    drawn.clear()
    with Monitor().bar("certify", 2) as tick:
        tick()
    assert drawn == []
