"""Where an edge list may come from, and where a workspace may go."""

import gzip
import io
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import ooc_pf as pf
from ooc_pf.errors import InputError
from tests.gallery import GOOD, write
from tests.properties import edges_of

EDGES = {(1, 2): 0.5, (2, 3): 1.5}


def run(*arguments, given=b"", **options):
    command = [sys.executable, "-m", "ooc_pf", "convert", *map(str, arguments), "--quiet"]
    return subprocess.run(command, input=given, capture_output=True, check=False, **options)


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input_through_a_pipe(tmp_path, name, pack):
    done = run(name, tmp_path / "a.pf", given=pack(GOOD.encode()))
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"stdin: text separated by spaces or tabs, no header, 2 rows")
    assert edges_of(tmp_path / "a.pf") == EDGES
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.pf"]
    assert sorted(entry.name for entry in (tmp_path / "a.pf").iterdir()) == ["edges.zarr", "lock", "manifest.json"]


def test_standard_input_in_python(tmp_path, monkeypatch):
    for content, name in ((b"001 2\n", "a"), (b"1 2 x\n", "b"), (b"", "c")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        if name == "a":
            assert pf.convert("-", tmp_path / "a.pf")["file"] == "stdin"
        else:
            with pytest.raises(InputError, match="stdin"):
                pf.convert("-", tmp_path / f"{name}.pf")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.pf"]
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="no standard input"):
        pf.convert("-", tmp_path / "b.pf")


def test_a_named_pipe(tmp_path):
    (tmp_path / "out").mkdir()
    os.mkfifo(tmp_path / "links.csv")
    writer = threading.Thread(target=(tmp_path / "links.csv").write_bytes, args=(b"1,2,0.5\n2,3,1.5\n",))
    writer.start()
    assert pf.convert(tmp_path / "links.csv", tmp_path / "out" / "a.pf")["file"] == "links.csv"
    writer.join()
    assert edges_of(tmp_path / "out" / "a.pf") == EDGES


def test_ctrl_c_while_waiting_for_input_leaves_nothing(tmp_path):
    command = [sys.executable, "-m", "ooc_pf", "convert", "-", str(tmp_path / "new" / "a.pf"), "--quiet"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.write(b"1 2\n")
    process.stdin.flush()
    spool = tmp_path / "new" / "a.pf.partial" / "scratch" / "given" / "stdin"
    while not spool.exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert list(tmp_path.iterdir()) == []


def test_home_is_expanded(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    write(tmp_path / "home" / "links.txt", GOOD)
    pf.convert("~/links.txt", "~/x.pf")
    assert edges_of(tmp_path / "home" / "x.pf") == EDGES
    pf.convert("~/links.txt", "~x.pf")  # the name of no user
    assert edges_of(tmp_path / "here" / "~x.pf") == EDGES
    assert [entry.name for entry in (tmp_path / "here").iterdir()] == ["~x.pf"]


def test_file_addresses(tmp_path):
    write(tmp_path / "my links.txt", GOOD)
    pf.convert(f"file://{tmp_path}/my%20links.txt", f"file://{tmp_path}/a.pf")
    assert edges_of(tmp_path / "a.pf") == EDGES
    for source, words in (("file://elsewhere/x", "elsewhere"), ("https://example.org/x.txt", "convert - WORKSPACE")):
        with pytest.raises(InputError, match=words):
            pf.convert(source, tmp_path / "b.pf")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.pf", "my links.txt"]


def test_a_failure_leaves_no_parent_directories(tmp_path):
    with pytest.raises(InputError):
        pf.convert(write(tmp_path / "links.txt", "1 2 x\n"), tmp_path / "new" / "newer" / "a.pf")
    assert [entry.name for entry in tmp_path.iterdir()] == ["links.txt"]
