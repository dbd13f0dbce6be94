"""From a file of edges to a workspace: formats, labels, policies, the script, and a twin made of dictionaries."""

import filecmp
import gzip
import itertools
import json
import os
import runpy
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ooc_pf.edgelist import merge
from ooc_pf.edgelist.convert import convert
from ooc_pf.edgelist.describe import describe
from ooc_pf.edgelist.fields import PLAIN_INTEGER
from ooc_pf.storage.arrays import read_labels
from tests import naive
from tests.gallery import random_links, write
from tests.properties import edges_of, read, refused
from tests.settings import changed_settings

SCRIPT = Path(__file__).parents[2] / "tools" / "convert_edges.py"


# -- formats --------------------------------------------------------------------------------------------------------

EXPECTED = {(1, 2): 0.5, (2, 30): 1.5}
ONES = dict.fromkeys(EXPECTED, 1.0)
NAMES = {("ann", "bob"): 1.0, ("bob", "cid"): 1.0}


HEADER = "from,to,feature,time\n1,2,0.5,9\n30,2,1.5,9\n"
MIXED = "# made today\n\ntime feature to from\n9 0.5 2 1\n9 1.5 30 2\n"


@pytest.mark.parametrize(
    ("name", "content", "columns", "expected"),
    [
        ("a.txt", "1 2 0.5\n30 2 1.5\n", None, EXPECTED),
        ("a.csv", gzip.compress(HEADER.encode(), mtime=0), ("from", "to", "feature"), EXPECTED),
        ("a.csv", HEADER, (1, 2, 3), EXPECTED),
        ("a.csv.gz", HEADER, None, EXPECTED),
        ("a.txt", MIXED, "from,to,feature", EXPECTED),
        ("a.txt", MIXED, "from,to", ONES),
        ("a.txt", "1 2\n30 2\n", None, ONES),
        ("a.txt", "1 2 7\n30 2 8\n", "1,2", ONES),
        ("a.csv", "ann,bob\nbob,cid\n", None, NAMES),
    ],
)
def test_columns_and_headers(tmp_path, name, content, columns, expected):
    edges, report = read(tmp_path, content, name, columns=columns)
    assert edges == expected
    assert (report["file"], report["rows"]) == (name, 2)
    header = {HEADER: ["from", "to", "feature", "time"], MIXED: ["time", "feature", "to", "from"]}
    assert report["header"] == header.get(HEADER if isinstance(content, bytes) else content)


@pytest.mark.parametrize(
    ("name", "field", "values"),
    [("a.mtx", "real", ("3", "4")), ("a.mtx.gz", "integer", ("3", "4")), ("a.mtx", "pattern", ("", ""))],
)
def test_matrix_market(tmp_path, name, field, values):
    banner = f"%%MatrixMarket matrix coordinate {field} symmetric\n"
    edges, report = read(tmp_path, f"{banner}% note\n\n40 40 2\n2 1 {values[0]}\n30 2 {values[1]}\n", name)
    assert edges == {(1, 2): float(values[0] or 1), (2, 30): float(values[1] or 1)}
    assert report["format"] == "Matrix Market"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "   \n"])
def test_multicut(tmp_path, end):
    content = f"MULTICUT{end}0 1 2.5{end}1 2 -1{end}2 1 -0.5{end}"
    for name, kind in (("problem.txt", {"kind": "signed"}), ("problem.txt", {}), ("problem.gz", {})):
        edges, report = read(tmp_path, content, name, **kind)
        assert edges == {(0, 1): 2.5, (1, 2): -1.5}
        assert (report["format"], report["kind"], report["duplicates"]) == ("MULTICUT", "signed", "sum")
    refused(tmp_path, content, "signed weights, not distances", "leave kind= (--kind) out", kind="distance")
    assert read(tmp_path, content, "problem.txt", duplicates="sign")[0] == {(0, 1): 1.0, (1, 2): -1.0}
    refused(tmp_path, content, "leave `columns` out", kind="signed", columns="1,2,3")
    refused(tmp_path, "MULTICUT\n0 1\n", "line 2", kind="signed")
    assert read(tmp_path, "MULTICUT   a 1\nb c 2\n")[0] == {("MULTICUT", "a"): 1.0, ("b", "c"): 2.0}


# -- labels and policies --------------------------------------------------------------------------------------------

BIG = 2**63 - 1


@pytest.mark.parametrize(
    ("content", "labels", "expected"),
    [
        (
            f"{BIG} -5 1\n{-BIG - 1} 0 2\n7 -5 3\n",
            "integer",
            {(-5, BIG): 1.0, (-BIG - 1, 0): 2.0, (-5, 7): 3.0},
        ),
        ("10 9 1\n9 héllo 2\n0x10 07 3\n", "text", {("10", "9"): 1.0, ("9", "héllo"): 2.0, ("07", "0x10"): 3.0}),
        (f"{BIG + 1} 1\n", "text", {("1", str(BIG + 1)): 1.0}),
        (
            'from,to,w\n"Smith, J","Doe ""D""",1\n  ann lee , bob,2\n',
            "text",
            {('Doe "D"', "Smith, J"): 1.0, ("ann lee", "bob"): 2.0},
        ),
    ],
)
def test_labels(tmp_path, content, labels, expected):
    edges, report = read(tmp_path, content)
    assert (edges, report["labels"]) == (expected, labels)


def test_labels_of_dropped_rows_stay_nodes(tmp_path):
    edges, report = read(tmp_path, "1 1 5\n2 3 1\n3 2 -1\n4 5 1\n6 7 0\n", kind="signed")
    assert edges == {(4, 5): 1.0}
    counted = ("rows", "self_loops", "zero_weights", "repeated_rows", "both_directions", "cancelled_pairs", "nodes")
    assert [report[name] for name in counted] == [5, 1, 1, 1, 1, 1, 7]


@pytest.mark.parametrize(
    ("policy", "kind", "expected"),
    [
        (None, "distance", -3.5),
        ("sum", "distance", -14.0),
        ("first", "distance", 3.0),
        (None, "signed", -14.0),
        ("mean", "signed", -3.5),
        ("sign", "signed", 1.0),
        ("first", "signed", 3.0),
    ],
)
def test_policies(tmp_path, policy, kind, expected):
    edges, report = read(tmp_path, "2 1 3\n1 2 -20\n1 3 1\n2 1 2\n1 2 1\n", kind=kind, duplicates=policy)
    assert edges == {(1, 2): expected, (1, 3): 1.0}
    assert report["duplicates"] == (policy or {"distance": "mean", "signed": "sum"}[kind])
    assert (report["repeated_rows"], report["both_directions"]) == (3, 1)


def test_error_policy_names_the_first_repeat_in_the_file(tmp_path):
    content = "# note\nz y 1\na b 1\ny z 2\na b 1\n"
    refused(tmp_path, content, "line 4", "'y', 'z'", "line 2", duplicates="error")
    assert len(read(tmp_path, "1 2\n2 3\n", duplicates="error")[0]) == 2


# -- the whole ------------------------------------------------------------------------------------------------------


@st.composite
def edge_files(draw):
    """(rows, text): the rows as convert should understand them, and a file that spells them in odd ways."""
    labels = draw(st.sampled_from([st.integers(-3, 3), st.text("ab1é'-", min_size=1, max_size=2)]))
    values = draw(st.sampled_from([st.integers(-2, 2).map(float), st.floats(-1e6, 1e6)]))
    rows = draw(st.lists(st.tuples(labels, labels, values), min_size=1, max_size=30))
    blank, comma = st.sampled_from(["", " ", "\t"]), draw(st.booleans())
    lines = []
    for a, b, value in rows:
        lines += draw(st.lists(st.sampled_from(["", "  ", "# x, y", " % 1 2 3"]), max_size=1))
        separator = draw(blank) + "," + draw(blank) if comma else draw(st.sampled_from([" ", "\t", "   "]))
        indent = draw(st.sampled_from(["", " "]))  # a tab at the beginning follows an empty field
        lines.append(indent + separator.join([str(a), str(b), repr(value)]) + draw(blank))
    spelled = [str(label) for row in rows for label in row[:2]]
    kind = int if all(PLAIN_INTEGER.fullmatch(label.encode()) for label in spelled) else str
    return [(kind(a), kind(b), value) for a, b, value in rows], draw(st.sampled_from(["\n", "\r\n"])).join(lines)


RULES = [("signed", "sign"), *itertools.product(("distance", "signed"), ("mean", "sum", "first"))]


@settings(max_examples=12, deadline=None)
@given(edge_files(), st.sampled_from(RULES), st.sampled_from([1, 7, 64, 1 << 20]))
def test_same_as_dictionaries(tmp_path_factory, made, rule, block_bytes):
    (rows, text), (kind, policy) = made, rule
    directory = tmp_path_factory.mktemp("twin")
    expected = naive.edges.merged(rows, kind, policy)
    if not expected:
        refused(directory, text, "no edge is left", kind=kind, duplicates=policy)
        return
    with changed_settings() as numbers:
        numbers.small_reads(block=block_bytes)
        report = convert(write(directory / "links.txt", text), directory / "out.pf", kind=kind, duplicates=policy)
    assert edges_of(directory / "out.pf") == expected
    assert read_labels(directory / "out.pf" / "edges.zarr").tolist() == sorted({x for row in rows for x in row[:2]})
    parts = ("self_loops", "zero_weights", "repeated_rows", "cancelled_pairs", "edges")
    assert report["rows"] == len(rows) == sum(report[part] for part in parts)


def files_below(directory):
    return sorted(path.relative_to(directory) for path in directory.rglob("*") if path.is_file())


@pytest.mark.parametrize("prefix", ["", "n"])
def test_same_bits_whatever_the_memory_and_threads(tmp_path, monkeypatch, settings, prefix):
    random = np.random.default_rng(0)
    lines = (f"{prefix}{a} {prefix}{b} {random.random()}" for a, b in random.integers(0, 60, (10_000, 2)))
    source = write(tmp_path / "links.txt", "\n".join(lines))
    first = convert(source, tmp_path / "a.pf", memory="2GB")
    settings.small_reads(block=10_000, batch=700)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    assert convert(source, tmp_path / "b.pf", memory="400MB") == first
    names = files_below(tmp_path / "a.pf")
    assert names == files_below(tmp_path / "b.pf")
    assert filecmp.cmpfiles(tmp_path / "a.pf", tmp_path / "b.pf", names, shallow=False)[0] == names


def test_describe_and_progress(tmp_path, capsys, monkeypatch):
    content = "1 2 1\n2 1 3\n4 4 1\n5 6 x\n5 6 2.5\n"
    _, report = read(tmp_path, content, bad_lines="skip")
    assert capsys.readouterr() == ("", "")
    assert describe(report).splitlines() == [
        "links.txt: text separated by spaces or tabs, no header, 4 rows",
        "  nodes column 1 and column 2, distance column 3",
        "  1 bad lines skipped",
        "  1 self loops dropped",
        "  1 repeated rows merged (mean)",
        "  1 pairs given in both directions",
        "  5 nodes (integer labels), 2 edges, distances from 2 to 2.5",
    ]
    assert json.loads(json.dumps(report)) == report
    read(tmp_path, content, bad_lines="skip", progress=True)
    assert capsys.readouterr() == ("", "")  # a log is no place for a bar
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    read(tmp_path, content, bad_lines="skip", progress=True)
    out, err = capsys.readouterr()
    assert (out, "reading" in err, "100%" in err) == ("", True, True)


# -- the script -----------------------------------------------------------------------------------------------------


def run_script(monkeypatch, *arguments):
    """The exit code; in this process, because a new one would spend seconds on imports."""
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *map(str, arguments)])
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    return caught.value.code


def test_script(tmp_path, monkeypatch, capsys):
    source = write(tmp_path / "links.txt", "a,b,w\n1,2,1\n2,3,-1\n3,2,-1\nx\n")
    options = ("--columns=a,b,w", "--kind=signed", "--duplicates=sign", "--bad-lines=skip", "--memory=1GB", "--quiet")
    assert run_script(monkeypatch, source, tmp_path / "a.pf", *options, "--json") == 0
    out, err = capsys.readouterr()
    assert (json.loads(out)["edges"], err) == (2, "")
    assert run_script(monkeypatch, source, tmp_path / "a.pf", "--quiet") == 1
    out, err = capsys.readouterr()
    assert (out, err[:7]) == ("", "error: ")
    assert run_script(monkeypatch, source) == 2


@pytest.mark.long
@pytest.mark.parametrize("stage", ["scratch/rows.parquet", "scratch/half.parquet"])
def test_ctrl_c_leaves_nothing(tmp_path, monkeypatch, stage):
    source, workspace = random_links(tmp_path / "links.txt", 300_000), tmp_path / "out.pf"

    def press_ctrl_c():
        while not workspace.exists():
            if (tmp_path / "out.pf.partial" / stage).exists():
                os.kill(os.getpid(), signal.SIGINT)
                return
            time.sleep(0.001)

    thread = threading.Thread(target=press_ctrl_c)
    thread.start()
    try:
        code = run_script(monkeypatch, source, workspace, "--quiet")
        thread.join()
    except KeyboardInterrupt:
        pytest.fail("the signal came after the conversion")
    assert code == 130
    assert [entry.name for entry in tmp_path.iterdir()] == ["links.txt"]


def test_a_database_that_tells_no_progress_converts_all_the_same(tmp_path, monkeypatch):
    """In a notebook without ipywidgets DuckDB refuses to measure progress."""
    connect = merge.duckdb.connect

    class Silent:
        def __init__(self, *given, **options):
            self._connection = connect(*given, **options)

        def execute(self, query):
            raise merge.duckdb.InvalidInputException("required package 'ipywidgets' is missing")

        def __getattr__(self, name):
            return getattr(self._connection, name)

    monkeypatch.setattr(merge.duckdb, "connect", Silent)
    assert read(tmp_path, HEADER, progress=True)[0] == EXPECTED
