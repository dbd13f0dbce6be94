"""Reading edge lists: every format, every policy, every kind of bad input, and a dictionary-based twin."""

import filecmp
import gzip
import itertools
import json
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv, parquet

from ooc_pf.edgelist import convert as edgelist
from ooc_pf.edgelist import merge as edgesort
from ooc_pf.edgelist import text as edgetext
from ooc_pf.edgelist.convert import convert
from ooc_pf.edgelist.describe import describe
from ooc_pf.edgelist.fields import BLANKS, PLAIN_INTEGER
from ooc_pf.edgelist.layout import Asked
from ooc_pf.storage.arrays import read_labels
from tests.edgefiles import edges_of, read, refused, write

SCRIPT = Path(__file__).parent.parent / "tools" / "convert_edges.py"


# -- formats --------------------------------------------------------------------------------------------------------

EXPECTED = {(1, 2): 0.5, (2, 30): 1.5}
ONES = dict.fromkeys(EXPECTED, 1.0)
NAMES = {("ann", "bob"): 1.0, ("bob", "cid"): 1.0}


@pytest.mark.parametrize(
    "content",
    [
        "1 2 0.5\n30 2 1.5\n",
        "1\t2\t0.5\n30\t2\t1.5",
        "1,2,0.5\n30,2,1.5\n",
        "1, 2, 0.5\r\n30 ,2 ,1.5\r\n",
        '"1","2","0.5"\n"30","2",1.5\n',
        "# from to\n\n  1   2 \t 0.5  \n% more\n   # indented\n\n30 2 1.5 extra fields\n \n",
        "1,2,0.5\n# note, with, commas\n   # indented, note, 7\n\n30,2,1.5,extra\n",
        "1 2 +0.5\n30 2 15e-1\n",
        "\ufeff1 2 .5\n30 2 1.5\n",
        "# größe\n1 2 0.5\n30 2 1.5\n".encode("latin-1"),
        gzip.compress(b"1 2 0.5\n") + gzip.compress(b"30 2 1.5\n"),
    ],
)
def test_text_variants_read_the_same(tmp_path, content):
    source = edgetext.TextSource(write(tmp_path / "links.txt", content), Asked(), "distance", False, 1 << 20)
    rows = pa.concat_tables(source.tables()).select(["a", "b", "value"])
    assert rows.to_pydict() == {"a": [1, 30], "b": [2, 2], "value": [0.5, 1.5]}


@pytest.mark.parametrize(
    "header", ["from,to", "Source,Target", "u v", "src\tdst", "node1 node2", "FromNodeId ToNodeId"]
)
def test_usual_header_of_two_columns(tmp_path, header):
    row = "1,2" if "," in header else "1 2"
    source = edgetext.TextSource(write(tmp_path / "a.txt", f"{header}\n{row}\n"), Asked(), "distance", False, 1 << 20)
    assert [table.to_pylist() for table in source.tables()] == [[{"a": 1, "b": 2, "value": 1.0, "position": 2}]]


HEADER = "from,to,feature,time\n1,2,0.5,9\n30,2,1.5,9\n"
MIXED = "# made today\n\ntime feature to from\n9 0.5 2 1\n9 1.5 30 2\n"


@pytest.mark.parametrize(
    ("name", "content", "columns", "expected"),
    [
        ("a.txt", "1 2 0.5\n30 2 1.5\n", None, EXPECTED),
        ("a.csv", gzip.compress(HEADER.encode()), ("from", "to", "feature"), EXPECTED),
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


def parquet_file(path, **columns):
    parquet.write_table(pa.table(columns), path)
    return path.read_bytes()


def test_parquet(tmp_path):
    data = parquet_file(tmp_path / "p", time=[9, 9], w=pa.array([0.5, 1.5], pa.float32()), b=[2, 2], a=[1, 30])
    edges, report = read(tmp_path, data, "a.parquet", columns="a,b,w")
    assert (edges, report["format"]) == (EXPECTED, "Parquet")
    data = parquet_file(tmp_path / "p", a=["ann", "bob"], b=pa.array(["bob", "cid"]).dictionary_encode())
    assert read(tmp_path, data, "b.parquet")[0] == NAMES


def test_bad_parquet(tmp_path):
    good = parquet_file(tmp_path / "p", a=[1, 2, 3], b=[4, 5, 6], w=[1.0, 1.0, 1.0])
    refused(tmp_path, good[:-20], "not a readable Parquet file", name="a.parquet")
    refused(tmp_path, good, "'x'", "missing", "a, b, w", name="a.parquet", columns="a,x")
    for columns, parts in [
        ({"a": [1.5], "b": [4], "w": ["x"]}, ("'a'", "double", "integers or text")),
        ({"a": [1], "b": [4], "w": ["x"]}, ("'w'", "string", "numbers")),
        ({"a": [1]}, ("1 column",)),
        ({"a": pa.array([2**63], pa.uint64()), "b": [4]}, ("'a'", "2**63 - 1")),
        ({"a": ["x", ""], "b": ["y", "z"]}, ("row 2", "two node ids")),
    ]:
        refused(tmp_path, parquet_file(tmp_path / "p", **columns), *parts, name="a.parquet")
    data = parquet_file(tmp_path / "p", a=[1, 2, 3], b=[4, 5, None], w=[1.0, np.inf, 1.0])
    refused(tmp_path, data, "row 2", "inf", "finite", name="a.parquet")
    edges, report = read(tmp_path, data, "b.parquet", bad_lines="skip")
    assert (edges, report["bad_lines_skipped"]) == ({(1, 4): 1.0}, 2)


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


def naive(rows, kind, policy):
    """What convert should make of (a, b, value) rows, with dictionaries."""
    votes = {}
    for a, b, value in rows:
        if a != b and not (kind == "signed" and value == 0):
            votes.setdefault((min(a, b), max(a, b)), []).append(value)
    merge = {
        "mean": lambda values: sum(values) / len(values),
        "sum": sum,
        "first": lambda values: values[0],
        "sign": lambda values: float(np.sign(sum(np.sign(values)))),
    }[policy]
    edges = {pair: merge(values) for pair, values in votes.items()}
    return {pair: value for pair, value in edges.items() if kind == "distance" or value != 0}


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
    expected = naive(rows, kind, policy)
    if not expected:
        refused(directory, text, "no edge is left", kind=kind, duplicates=policy)
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edgelist, "BLOCK_BYTES", block_bytes)
        report = convert(write(directory / "links.txt", text), directory / "out.pf", kind=kind, duplicates=policy)
    assert edges_of(directory / "out.pf") == expected
    assert read_labels(directory / "out.pf" / "edges.zarr").tolist() == sorted({x for row in rows for x in row[:2]})
    parts = ("self_loops", "zero_weights", "repeated_rows", "cancelled_pairs", "edges")
    assert report["rows"] == len(rows) == sum(report[part] for part in parts)


FIELDS = [
    "1", "22", "-3", "+4", "007", "0x1F", "a", '"q"', '"', '"a', 'a"b"', "é", "1.5", ".5", "1e3", "nan", "-inf", "#",
    "%", "",
]  # fmt: skip
SEPARATORS = [",", ", ", " ", "\t", "  ", "\r"]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.lists(st.sampled_from(FIELDS), max_size=4), st.sampled_from(SEPARATORS)), max_size=6),
    st.booleans(),
    st.booleans(),
    st.sampled_from([(0, 1), (0, 1, 2), (2, 0, 1)]),
)
def test_fast_and_exact_parser_agree(lines, comma, text_labels, positions):
    block = "".join(separator.join(fields) + "\n" for fields, separator in lines).encode() or b"\n"
    source = object.__new__(edgetext.TextSource)
    source.path, source.value, source.skip_bad, source.bad = Path("x"), "weight", False, 0
    source.text_labels, source.has_value = text_labels, len(positions) == 3
    source.layout = edgetext.Layout("x", b"," if comma else BLANKS, positions)
    source.positions, source.extra, source.delimiter = positions, 0, "comma"
    fast = source._parse_block(1, block)
    if fast is not None:
        exact = [row for table in source._parse_lines(1, block) for row in table.to_pylist()]
        assert fast.to_pylist() == exact


def files_below(directory):
    return sorted(path.relative_to(directory) for path in directory.rglob("*") if path.is_file())


@pytest.mark.parametrize("prefix", ["", "n"])
def test_same_bits_whatever_the_memory_and_threads(tmp_path, monkeypatch, prefix):
    random = np.random.default_rng(0)
    lines = (f"{prefix}{a} {prefix}{b} {random.random()}" for a, b in random.integers(0, 60, (10_000, 2)))
    source = write(tmp_path / "links.txt", "\n".join(lines))
    first = convert(source, tmp_path / "a.pf", memory="2GB")
    monkeypatch.setattr(edgelist, "BLOCK_BYTES", 10_000)
    monkeypatch.setattr(edgesort, "BATCH_ROWS", 700)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    assert convert(source, tmp_path / "b.pf", memory="400MB") == first
    names = files_below(tmp_path / "a.pf")
    assert names == files_below(tmp_path / "b.pf")
    assert filecmp.cmpfiles(tmp_path / "a.pf", tmp_path / "b.pf", names, shallow=False)[0] == names


def test_a_pair_over_many_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(edgesort, "BATCH_ROWS", 100)
    values = np.random.default_rng(0).random(5_000).tolist()
    edges, report = read(tmp_path, "\n".join(f"{1 + k % 2} {2 - k % 2} {x!r}" for k, x in enumerate(values)))
    assert edges == {(1, 2): sum(values) / len(values)}
    assert (report["repeated_rows"], report["both_directions"]) == (4_999, 1)


def random_links(tmp_path, rows):
    pairs = np.random.default_rng(0).integers(0, rows, (rows, 2))
    csv.write_csv(pa.table(list(pairs.T), names=["from", "to"]), tmp_path / "links.txt")
    return tmp_path / "links.txt"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_peak_memory_is_within_the_budget(tmp_path):
    # Not ru_maxrss: a new process begins with that of its parent.
    code = (
        "import sys; from ooc_pf.edgelist.convert import convert\n"
        "def peak():\n"
        "    [line] = [line for line in open('/proc/self/status') if line.startswith('VmHWM')]\n"
        "    return 1024 * int(line.split()[1])\n"
        "before = peak(); convert(sys.argv[1], sys.argv[2], memory='400MB'); print(peak() - before)"
    )
    command = [sys.executable, "-c", code, random_links(tmp_path, 400_000), tmp_path / "out.pf"]
    assert int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) < 400e6


def test_describe_and_progress(tmp_path, capsys):
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


@pytest.mark.parametrize("stage", ["scratch/rows.parquet", "scratch/half.parquet"])
def test_ctrl_c_leaves_nothing(tmp_path, monkeypatch, stage):
    source, workspace = random_links(tmp_path, 300_000), tmp_path / "out.pf"

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


def test_leaving_the_database_stops_its_query(tmp_path):
    """The query would take hours: that the test ends at all is the point."""

    def press_ctrl_c(stage, done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), edgesort.Database(tmp_path, None, press_ctrl_c) as database:
        next(database.stream("SELECT sum(hash(a.range, b.range)) FROM range(1000000) a, range(3000000) b", "sorting"))
