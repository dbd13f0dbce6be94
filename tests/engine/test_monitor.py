"""Progress: a line that fits, for people and for logs, and a bar where one can be seen."""

import io
import logging
import sys
import time
import types
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ooc_pf as pf
from ooc_pf.engine import bars
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


class Display:
    """What IPython shows: outputs in order, each as it was last drawn."""

    def __init__(self):
        self.outputs, self.drawings = [], 0

    def __call__(self, shown, *, raw, display_id):
        assert raw and display_id
        self.outputs.append(shown)
        at = len(self.outputs) - 1

        def update(shown, *, raw):
            assert raw
            self.outputs[at], self.drawings = shown, self.drawings + 1

        return types.SimpleNamespace(update=update)


@pytest.fixture
def notebook(monkeypatch):
    """As within a cell of a notebook; every step is drawn."""
    display = Display()
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    shell = types.SimpleNamespace(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=display))
    monkeypatch.setattr(bars, "INTERVAL", -1.0)
    return display


def test_a_notebook_gets_one_bar_that_ends(notebook, capsys):
    with Monitor(progress=True).signals():
        pass
    assert notebook.outputs == []  # a run without a long pass shows none
    monitor = Monitor(progress=True)
    with monitor.signals():
        with monitor.bar("certify <1>", 4) as tick:
            assert tick() and tick()
            (shown,) = notebook.outputs
            assert shown["text/plain"] == f"certify <1> [{'#' * 15}{'.' * 15}] 2/4 blocks"
            assert shown["text/html"] == '<progress max="4" value="2"></progress> certify &lt;1&gt; 2/4 blocks'
        with monitor.bar("scan", 0) as tick:
            assert tick() and notebook.outputs[0]["text/plain"] == "scan 1 blocks"
            assert notebook.outputs[0]["text/html"] == "<progress></progress> scan 1 blocks"
    assert notebook.outputs == [{"text/plain": "", "text/html": ""}]
    with Monitor().bar("certify", 2) as tick:
        tick()
    assert len(notebook.outputs) == 1 and capsys.readouterr().err == ""


def test_steps_in_several_threads_share_the_bar(notebook, monkeypatch):
    slow = lambda *shown, **options: (time.sleep(0.05), notebook(*shown, **options))[1]  # noqa: E731
    monkeypatch.setattr(sys.modules["IPython.display"], "display", slow)
    monitor = Monitor(progress=True)
    with monitor.bar("trees", 4) as tick, ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: tick(), range(4)))
    assert len(notebook.outputs) == 1 and notebook.drawings == 3


def test_a_search_still_under_way_draws_no_bar_that_nobody_takes_away(notebook):
    bar = bars.new_bar(sys.stderr)
    bar.show("trees", 1, 4)
    bar.close()
    bar.show("trees", 2, 4)
    assert notebook.outputs == [{"text/plain": "", "text/html": ""}] and notebook.drawings == 1


def test_a_program_that_only_imports_what_notebooks_are_made_of_is_none(notebook, monkeypatch):
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None)
    assert isinstance(bars.new_bar(sys.stderr), bars.TerminalBar)


def test_a_run_in_a_notebook_writes_plain_lines_beside_its_bar(notebook, small, capsys):
    result = pf.metric_nearness(small, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert sum("bound" in line for line in lines) == result.n_iter and all(line.isprintable() for line in lines)
    assert notebook.drawings and notebook.outputs == [{"text/plain": "", "text/html": ""}]


def test_the_bar_of_a_terminal_goes_when_it_is_done(monkeypatch):
    monkeypatch.setattr(bars, "INTERVAL", -1.0)
    stream = io.StringIO()
    stream.isatty = lambda: True
    monitor = Monitor(progress=True, stream=stream)
    with monitor.bar("scan", 0) as tick:
        assert tick() and tick()
    with monitor.bar("certify", 2) as tick:
        assert tick() and tick() and tick()
    monitor.note("done")
    texts = [part.split("\r")[-2 if part.endswith("\r") else -1] for part in stream.getvalue().split("\x1b[K")]
    assert texts == ["  scan 2 blocks ", f"  certify [{'#' * 30}] 3/2 blocks ", "", "done\n"]
