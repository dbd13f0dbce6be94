"""Compiling is announced when it happens, to those who look, and leaves nothing on the screen."""

import io
import logging
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from ooc_pf.kernels import compiling

KERNEL = SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=SimpleNamespace(__name__="walk"))})


class Screen(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def stream(monkeypatch):
    """Gives stderr another face, and compiling an announcement that finds everything long."""

    def use(stream, shown=None):
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setattr(compiling, "shown", shown)
        monkeypatch.setattr(compiling, "LONG", -1.0)
        announcement = compiling.Announcement()
        for _ in range(3):
            announcement.on_start(KERNEL)
            announcement.on_start(KERNEL)
            announcement.on_end(KERNEL)
            announcement.on_end(KERNEL)
        return stream.getvalue()

    return use


def test_a_terminal_sees_how_far_it_is_and_is_cleared(stream):
    text = stream(Screen())
    assert text.startswith(compiling.TEXT + "\n") and text.count(compiling.TEXT) == 1
    assert "2 done in 0 s, now walk" in text and text.endswith("\r\x1b[K")


def test_a_log_gets_one_line_if_it_is_wanted(stream):
    assert stream(io.StringIO(), shown=True) == compiling.TEXT + "\n"
    assert stream(io.StringIO()) == ""
    assert stream(Screen(), shown=False) == ""


def test_the_log_of_the_program_gets_it_in_any_case(stream, caplog):
    caplog.set_level(logging.INFO, logger="ooc_pf")
    stream(io.StringIO())
    assert [record.getMessage() for record in caplog.records] == [compiling.TEXT]


@pytest.mark.long
def test_only_what_is_compiled_is_announced(tmp_path):
    code = (
        "import numpy as np, ooc_pf as pf\n"
        "pf.metric_nearness((np.array([0, 1, 0]), np.array([1, 2, 2]), np.array([1.0, 1.0, 5.0])), progress=True)"
    )

    def run():
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)

    first, second = run().stderr, run().stderr
    assert compiling.TEXT in first.splitlines() and "\r" not in first
    assert compiling.TEXT not in second
