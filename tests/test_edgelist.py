"""Reading edge lists: every format, every policy, every kind of bad input, and a dictionary-based twin."""

import filecmp
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import csv, parquet

from ooc_pf import edgelist, edgetext
from ooc_pf.edgelist import convert, describe
from ooc_pf.errors import BudgetError, InputError, WorkspaceError
from ooc_pf.workspace import read_array, read_labels

SCRIPT = Path(__file__).parent.parent / "tools" / "convert_edges.py"


def write(path, content):
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def edges_of(workspace):
    """The edges of a workspace as {(label, label): value}, after checking the promises of the layout."""
    group = workspace / "edges.zarr"
    u, v, value = (read_array(group, name) for name in ("u", "v", "value"))
    labels = read_labels(group).tolist()
    assert (u.dtype, v.dtype, value.dtype) == (np.int32, np.int32, np.float64)
    assert (u < v).all()
    assert labels == sorted(set(labels))
    pairs = list(zip(u.tolist(), v.tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    graph = json.loads((workspace / "manifest.json").read_text())["graph"]
    assert (graph["nodes"], graph["edges"]) == (len(labels), len(u))
    return {(labels[a], labels[b]): x for (a, b), x in zip(pairs, value.tolist(), strict=True)}


def read(tmp_path, content, name="links.txt", **options):
    """Convert ``content`` and return (edges, report)."""
    number = len(list(tmp_path.iterdir()))
    workspace = tmp_path / f"{number}.pf"
    report = convert(write(tmp_path / name, content), workspace, **options)
    assert sorted(entry.name for entry in workspace.iterdir()) == ["edges.zarr", "lock", "manifest.json"]
    return edges_of(workspace), report


def refused(tmp_path, content, *parts, name="links.txt", **options):
    """Check that ``content`` is refused with a message that has all ``parts``, and that nothing is left behind."""
    source = tmp_path / name
    if content is not None:
        write(source, content)
    before = set(tmp_path.iterdir())
    with pytest.raises(InputError) as caught:
        convert(source, tmp_path / "out.pf", **options)
    assert set(tmp_path.iterdir()) == before
    for part in (name, *parts):
        assert part in str(caught.value)
    return str(caught.value)


# -- formats --------------------------------------------------------------------------------------------------------

EXPECTED = {(1, 2): 0.5, (2, 30): 1.5}


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
        "01 2 0.5\n+30 2 1.5\n",
        "# größe\n1 2 0.5\n30 2 1.5\n".encode("latin-1"),
    ],
)
def test_text_variants_read_the_same(tmp_path, content):
    edges, report = read(tmp_path, content)
    assert edges == EXPECTED
    assert report["rows"] == 2


def test_gzip_is_found_by_content(tmp_path):
    content = gzip.compress(b"1 2 0.5\n") + gzip.compress(b"30 2 1.5\n")
    for name in ("a.txt", "b.csv"):
        edges, report = read(tmp_path, content, name)
        assert edges == EXPECTED
        assert report["file"] == name
    assert read(tmp_path, "1,2,0.5\n30,2,1.5\n", "c.csv.gz")[0] == EXPECTED


@pytest.mark.parametrize("columns", [("from", "to", "feature"), "from,to,feature", (1, 2, 3), None])
def test_csv_header(tmp_path, columns):
    edges, report = read(tmp_path, "from,to,feature,time\n1,2,0.5,9\n30,2,1.5,9\n", "a.csv", columns=columns)
    assert edges == EXPECTED
    assert report["header"] == ["from", "to", "feature", "time"]


def test_named_columns_in_another_order_after_comments(tmp_path):
    content = "# made today\n\ntime feature to from\n9 0.5 2 1\n9 1.5 30 2\n"
    assert read(tmp_path, content, columns="from,to,feature")[0] == EXPECTED
    assert read(tmp_path, content, columns="from,to")[0] == dict.fromkeys(EXPECTED, 1.0)


def test_two_columns_mean_distance_one(tmp_path):
    assert read(tmp_path, "1 2\n30 2\n")[0] == dict.fromkeys(EXPECTED, 1.0)
    assert read(tmp_path, "1 2 7\n30 2 8\n", columns="1,2")[0] == dict.fromkeys(EXPECTED, 1.0)


@pytest.mark.parametrize("header", ["from,to", "Source,Target", "u v", "src\tdst", "FromNodeId ToNodeId"])
def test_usual_header_of_two_columns(tmp_path, header):
    separator = "," if "," in header else " "
    edges, _ = read(tmp_path, f"{header}\n1{separator}2\n")
    assert edges == {(1, 2): 1.0}


def test_a_header_is_not_guessed_where_it_could_be_data(tmp_path):
    assert read(tmp_path, "ann,bob\nbob,cid\n")[0] == {("ann", "bob"): 1.0, ("bob", "cid"): 1.0}
    refused(tmp_path, "1,2,abc\n2,3,1\n", "line 1", "'abc'")
    refused(tmp_path, "ann,bob,nan\nbob,cid,1\n", "line 1", "'nan'")


def test_decimal_comma_is_not_taken_for_a_separator(tmp_path):
    refused(tmp_path, "1 2 0,5\n", "line 1", "'0,5'", "not a number")


@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
@pytest.mark.parametrize("name", ["a.mtx", "a.mtx.gz"])
def test_matrix_market(tmp_path, field, name):
    values = ("", "") if field == "pattern" else (" 3", " 4")
    content = (
        f"%%MatrixMarket matrix coordinate {field} symmetric\n% note\n\n40 40 2\n2 1{values[0]}\n30 2{values[1]}\n"
    )
    edges, report = read(tmp_path, content, name)
    assert edges == ({(1, 2): 1.0, (2, 30): 1.0} if field == "pattern" else {(1, 2): 3.0, (2, 30): 4.0})
    assert report["format"] == "Matrix Market"


MARKET = "%%MatrixMarket matrix coordinate real general\n"


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (MARKET + "3 3 2\n1 2 1\n1 4 1\n", ["line 4", "'4'", "1 to 3"]),
        (MARKET + "3 3 1\n0 2 1\n", ["line 3", "'0'"]),
        (MARKET + "3 3 1\na 2 1\n", ["line 3", "'a'"]),
        (MARKET + "3 3 5\n1 2 1\n", ["5 entries", "1 follow"]),
        (MARKET + "3 3 0\n1 2 1\n", ["0 entries", "1 follow"]),
        (MARKET + "3 4 1\n1 2 1\n", ["line 2", "3 x 4", "square"]),
        (MARKET + "3 3\n1 2 1\n", ["line 2", "size line"]),
        (MARKET.replace("real", "complex") + "3 3 1\n1 2 1 1\n", ["line 1", "complex", "real|integer|pattern"]),
        (MARKET.replace("coordinate", "array") + "3 3\n1\n", ["line 1", "array"]),
        ("3 3 1\n1 2 1\n", ["line 1", "%%MatrixMarket"]),
    ],
)
def test_bad_matrix_market(tmp_path, content, parts):
    refused(tmp_path, content, *parts, name="a.mtx")


def parquet_file(path, **columns):
    parquet.write_table(pa.table(columns), path)
    return path.read_bytes()


def test_parquet(tmp_path):
    data = parquet_file(tmp_path / "p", time=[9, 9], w=pa.array([0.5, 1.5], pa.float32()), b=[2, 2], a=[1, 30])
    edges, report = read(tmp_path, data, "a.parquet", columns="a,b,w")
    assert edges == EXPECTED
    assert report["format"] == "Parquet"
    data = parquet_file(tmp_path / "p", a=["ann", "bob"], b=pa.array(["bob", "cid"]).dictionary_encode())
    assert read(tmp_path, data, "b.parquet")[0] == {("ann", "bob"): 1.0, ("bob", "cid"): 1.0}


def test_bad_parquet(tmp_path):
    good = parquet_file(tmp_path / "p", a=[1, 2, 3], b=[4, 5, 6], w=[1.0, 1.0, 1.0])
    refused(tmp_path, good[:-20], "not a readable Parquet file", name="a.parquet")
    refused(tmp_path, good, "'x'", "missing", "a, b, w", name="a.parquet", columns="a,x")
    data = parquet_file(tmp_path / "p", a=[1, 2, 3], b=[4, 5, None], w=[1.0, np.inf, 1.0])
    refused(tmp_path, data, "row 2", "inf", "finite", name="a.parquet")
    edges, report = read(tmp_path, data, "b.parquet", bad_lines="skip")
    assert (edges, report["bad_lines_skipped"]) == ({(1, 4): 1.0}, 2)
    data = parquet_file(tmp_path / "p", a=[1.5], b=[4], w=["x"])
    refused(tmp_path, data, "'a'", "double", "integers or text", name="a.parquet")
    data = parquet_file(tmp_path / "p", a=[1], b=[4], w=["x"])
    refused(tmp_path, data, "'w'", "string", "numbers", name="a.parquet")


# -- labels ---------------------------------------------------------------------------------------------------------


def test_any_integer_labels(tmp_path):
    big = 2**63 - 1
    edges, report = read(tmp_path, f"{big} -5 1\n{-(2**63)} 0 2\n7 -5 3\n")
    assert edges == {(-5, big): 1.0, (-(2**63), 0): 2.0, (-5, 7): 3.0}
    assert report["labels"] == "integer"


def test_text_labels_anywhere_make_all_labels_text(tmp_path):
    edges, report = read(tmp_path, "10 9 1\n9 héllo 2\n0x10 07 3\n")
    assert edges == {("10", "9"): 1.0, ("9", "héllo"): 2.0, ("07", "0x10"): 3.0}
    assert report["labels"] == "text"
    assert read(tmp_path, f"{2**63} 1\n")[0] == {("1", str(2**63)): 1.0}


def test_quoted_labels_with_commas_and_spaces(tmp_path):
    edges, _ = read(tmp_path, 'from,to,w\n"Smith, J","Doe ""D""",1\n  ann lee , bob,2\n', "a.csv")
    assert edges == {('Doe "D"', "Smith, J"): 1.0, ("ann lee", "bob"): 2.0}


def test_labels_of_dropped_rows_stay_nodes(tmp_path):
    edges, report = read(tmp_path, "1 1 5\n2 3 1\n3 2 -1\n4 5 1\n6 7 0\n", kind="signed")
    assert edges == {(4, 5): 1.0}
    counted = ("rows", "self_loops", "zero_weights", "repeated_rows", "both_directions", "cancelled_pairs", "nodes")
    assert [report[name] for name in counted] == [5, 1, 1, 1, 1, 1, 7]


# -- policies -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "kind", "expected"),
    [
        (None, "distance", {(1, 2): -3.5, (1, 3): 4.0}),
        ("mean", "distance", {(1, 2): -3.5, (1, 3): 4.0}),
        ("sum", "distance", {(1, 2): -14.0, (1, 3): 4.0}),
        ("first", "distance", {(1, 2): 3.0, (1, 3): 4.0}),
        (None, "signed", {(1, 2): -14.0, (1, 3): 4.0}),
        ("sum", "signed", {(1, 2): -14.0, (1, 3): 4.0}),
        ("sign", "signed", {(1, 2): 1.0, (1, 3): 1.0}),
        ("first", "signed", {(1, 2): 3.0, (1, 3): 4.0}),
    ],
)
def test_policies(tmp_path, policy, kind, expected):
    content = "2 1 3\n1 2 -20\n1 3 4\n2 1 2\n1 2 1\n"
    edges, report = read(tmp_path, content, kind=kind, duplicates=policy)
    assert edges == expected
    assert (report["repeated_rows"], report["both_directions"]) == (3, 1)


def test_error_policy_names_the_first_repeat_in_the_file(tmp_path):
    content = "# note\nz y 1\na b 1\ny z 2\na b 1\n"
    refused(tmp_path, content, "line 4", "'y', 'z'", "line 2", duplicates="error")
    assert len(read(tmp_path, "1 2\n2 3\n", duplicates="error")[0]) == 2


def test_signed_file_needs_weights(tmp_path):
    refused(tmp_path, "1 2\n", "no third column", "kind='distance'", kind="signed")
    refused(tmp_path, "1 2 3\n", "no third column", kind="signed", columns="1,2")


# -- bad input ------------------------------------------------------------------------------------------------------

GOOD = "# head\n1 2 0.5\n\n2 3 1.5\n"


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        (b"4 5", ["distance is missing", "2 field", "at least 3"]),
        (b"4", ["1 field"]),
        (b"4 5 abc", ["distance 'abc' is not a number"]),
        (b"4 5 1_0", ["'1_0'", "not a number"]),
        (b"4 5 0x1p3", ["'0x1p3'", "not a number"]),
        (b"4 5 nan", ["distance 'nan' is not a finite number"]),
        (b"4 5 -inf", ["'-inf'", "finite"]),
        (b"4 5 1e999", ["'1e999'", "finite"]),
        (b"4 \0 1", ["NUL"]),
        (b"4 \xff\xfe 1", ["not UTF-8"]),
        (b"4 a\rb", ["'b'"]),
    ],
)
def test_bad_line_is_named_or_skipped(tmp_path, line, parts):
    content = GOOD.encode() + line + b"\n7 8 2\n"
    message = refused(tmp_path, content, "line 5", *parts)
    assert "bad_lines='skip'" in message
    edges, report = read(tmp_path, content, bad_lines="skip")
    assert list(edges.values()) == [0.5, 1.5, 2.0]
    assert (report["rows"], report["bad_lines_skipped"]) == (3, 1)


@pytest.mark.parametrize("line", ['"4,5,1', ",5,1", "4,,1", '4,5,"1', "4,5,", "4;5;1"])
def test_bad_line_among_commas(tmp_path, line):
    content = f"1,2,0.5\n2,3,1.5\n{line}\n7,8,2\n"
    if line == '4,5,"1':  # an unclosed quote ends with its line
        assert len(read(tmp_path, content)[0]) == 4
        return
    refused(tmp_path, content, "line 3")
    edges, report = read(tmp_path, content, bad_lines="skip")
    assert list(edges.values()) == [0.5, 1.5, 2.0]
    assert report["bad_lines_skipped"] == 1


def test_bad_line_far_into_the_file(tmp_path, monkeypatch):
    lines = [f"{k} {k + 1} 1" for k in range(20_000)]
    lines[15_000] = "5 6 nan"
    lines[100] = "# comment"
    monkeypatch.setattr(edgelist, "BLOCK_BYTES", 5_000)
    refused(tmp_path, "\n".join(lines), "line 15001", "'nan'", kind="distance")
    edges, report = read(tmp_path, "\n".join(lines), bad_lines="skip")
    assert (len(edges), report["bad_lines_skipped"]) == (19_998, 1)


def test_bad_first_line_can_be_skipped(tmp_path):
    refused(tmp_path, "rubbish\n1 2 3\n", "line 1", "'rubbish'")
    edges, report = read(tmp_path, "rubbish\n1 2 3\n", bad_lines="skip")
    assert (edges, report["bad_lines_skipped"]) == ({(1, 2): 3.0}, 1)


@pytest.mark.parametrize("content", ["", "\n \n", "# only\n% comments\n"])
@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_empty_file(tmp_path, content, name):
    refused(tmp_path, content, "holds no edges", name=name)


def test_header_only_and_all_skipped(tmp_path):
    refused(tmp_path, "from,to,w\n", "holds no edges")
    refused(tmp_path, "1 2 nan\n", "holds no edges", "1 bad", bad_lines="skip")


def test_no_edge_left(tmp_path):
    refused(tmp_path, "1 1\n", "no edge is left", "1 self loops")
    refused(tmp_path, "1 2 1\n2 1 -1\n", "1 pairs that cancel", kind="signed")


def test_missing_file_and_directory(tmp_path):
    refused(tmp_path, None, "No such file", name="absent.txt")
    (tmp_path / "folder").mkdir()
    refused(tmp_path, None, "directory", name="folder")


def test_truncated_and_damaged_gzip(tmp_path):
    random = np.random.default_rng(0).integers(0, 10**6, (20_000, 2))
    data = gzip.compress("\n".join(f"{a} {b}" for a, b in random).encode())
    (tmp_path / "a.txt.gz").write_bytes(data[: len(data) // 2])
    refused(tmp_path, None, "cut off or damaged", name="a.txt.gz")
    (tmp_path / "a.txt.gz").write_bytes(data[:50_000] + bytes(1000) + data[51_000:])
    refused(tmp_path, None, "cut off or damaged", name="a.txt.gz")


def test_unknown_column(tmp_path):
    refused(tmp_path, "from,to,w\n1,2,3\n", "'weight'", "missing", "from, to, w", columns="from,to,weight")
    refused(tmp_path, "from,to,to\n1,2,3\n", "'to'", "twice", columns="from,to")
    refused(tmp_path, "1 2\n", "1, 2, 3", columns="1,2,3")


def test_binary_rubbish(tmp_path):
    refused(tmp_path, bytes(range(256)) * 100)
    refused(tmp_path, np.random.default_rng(1).bytes(100_000))
    refused(tmp_path, "1 2 3\n".encode("utf-16"), "NUL")
    refused(tmp_path, b"\x89PNG\r\n\x1a\n")
    refused(tmp_path, b"1 2\n" + b"x" * (edgetext.MAX_LINE + 1), "line 2", "longer")


def test_overflowing_sum(tmp_path):
    refused(tmp_path, "1 2 1e308\n2 1 1e308\n", "more than a float holds", duplicates="sum")


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"kind": "sign"}, ["'sign'", "distance, signed"]),
        ({"duplicates": "max"}, ["'max'", "mean, sum, first, error"]),
        ({"duplicates": "sign"}, ["'sign'", "mean, sum, first, error"]),
        ({"bad_lines": "ignore"}, ["'ignore'", "error, skip"]),
        ({"columns": "a"}, ["two or three"]),
        ({"columns": "a,b,a"}, ["two or three different"]),
        ({"memory": "lots"}, ["'lots'"]),
    ],
)
def test_unknown_options(tmp_path, options, parts):
    source = write(tmp_path / "links.txt", GOOD)
    with pytest.raises(InputError) as caught:
        convert(source, tmp_path / "out.pf", **options)
    assert all(part in str(caught.value) for part in parts)
    assert not (tmp_path / "out.pf").exists()


def test_too_little_memory(tmp_path):
    with pytest.raises(BudgetError, match="400MB"):
        convert(write(tmp_path / "links.txt", GOOD), tmp_path / "out.pf", memory="10MB")


def test_existing_workspace_is_refused_before_reading(tmp_path):
    (tmp_path / "out.pf").mkdir()
    with pytest.raises(WorkspaceError, match="already exists"):
        convert(tmp_path / "absent.txt", tmp_path / "out.pf")


def test_too_many_nodes_or_edges(tmp_path, monkeypatch):
    monkeypatch.setattr(edgelist, "MAX_COUNT", 3)
    refused(tmp_path, "1 2\n2 3\n3 4\n", "more than 3 nodes")
    monkeypatch.setattr(edgelist, "MAX_COUNT", 4)
    refused(tmp_path, "1 2\n2 3\n3 4\n1 3\n1 4\n", "more than 4 edges")


def test_strange_workspace_path(tmp_path):
    workspace = tmp_path / "k=v" / 'we\'ird [1]*? "x".pf'
    convert(write(tmp_path / "links.txt", "1 2 0.5\n30 2 1.5\n"), workspace)
    assert edges_of(workspace) == EXPECTED


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


def spell(draw, fields, separator):
    blank = st.sampled_from(["", " ", "\t"])
    if separator == ",":
        return ",".join(draw(blank) + field + draw(blank) for field in fields)
    return draw(blank) + draw(st.sampled_from([" ", "\t", "   "])).join(fields) + draw(blank)


@st.composite
def edge_files(draw):
    labels = draw(st.sampled_from([st.integers(-3, 3), st.text("ab1é'-", min_size=1, max_size=2)]))
    values = draw(st.sampled_from([st.integers(-2, 2).map(float), st.floats(-1e6, 1e6)]))
    rows = draw(st.lists(st.tuples(labels, labels, values), min_size=1, max_size=30))
    separator = draw(st.sampled_from([" ", ","]))
    lines = []
    for a, b, value in rows:
        lines += draw(st.lists(st.sampled_from(["", "  ", "# x, y", " % 1 2 3"]), max_size=1))
        lines.append(spell(draw, [str(a), str(b), repr(value)], separator))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    if not all(
        isinstance(label, int) or edgetext._INTEGER.fullmatch(label.encode()) for a, b, _ in rows for label in (a, b)
    ):
        rows = [(str(a), str(b), value) for a, b, value in rows]
    else:
        rows = [(int(a), int(b), value) for a, b, value in rows]
    return rows, end.join(lines)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    edge_files(), st.sampled_from(["distance", "signed"]), st.sampled_from(["mean", "sum", "first", "sign"]), st.data()
)
def test_same_as_dictionaries(tmp_path_factory, made, kind, policy, data):
    rows, text = made
    policy = "mean" if policy == "sign" and kind == "distance" else policy
    directory = tmp_path_factory.mktemp("twin")
    source = write(directory / "links.txt", text)
    expected = naive(rows, kind, policy)
    if not expected:
        refused(directory, text, "no edge is left", kind=kind, duplicates=policy)
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edgelist, "BLOCK_BYTES", data.draw(st.sampled_from([1, 7, 64, 1 << 20])))
        report = convert(source, directory / "out.pf", kind=kind, duplicates=policy)
    assert edges_of(directory / "out.pf") == expected
    assert read_labels(directory / "out.pf" / "edges.zarr").tolist() == sorted({x for row in rows for x in row[:2]})
    parts = ("self_loops", "zero_weights", "repeated_rows", "cancelled_pairs", "edges")
    assert report["rows"] == len(rows) == sum(report[part] for part in parts)


FIELDS = [
    "1",
    "22",
    "-3",
    "+4",
    "007",
    "0x1F",
    "a",
    '"q"',
    '"',
    '"a',
    'a"b"',
    "é",
    "1.5",
    ".5",
    "1e3",
    "nan",
    "-inf",
    "",
    "#",
    "%",
]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.lists(st.sampled_from(FIELDS), max_size=4), st.sampled_from([",", ", ", " ", "\t", "  ", "\r"])),
        max_size=6,
    ),
    st.booleans(),
    st.booleans(),
    st.sampled_from([(0, 1), (0, 1, 2), (2, 0, 1)]),
)
def test_fast_and_exact_parser_agree(lines, comma, text_labels, positions):
    block = "".join(separator.join(fields) + "\n" for fields, separator in lines).encode() or b"\n"
    source = object.__new__(edgetext.TextSource)
    source.path, source.value, source.skip_bad, source.bad = Path("x"), "weight", False, 0
    source.text_labels, source.has_value = text_labels, len(positions) == 3
    source.layout = edgetext.Layout("x", comma, positions)
    fast = source._parse_block(1, block)
    if fast is not None:
        exact = [row for table in source._parse_lines(1, block) for row in table.to_pylist()]
        assert fast.to_pylist() == exact


def same_files(left, right):
    compared = filecmp.dircmp(left, right)
    names = compared.common_files
    return (
        not compared.left_only
        and not compared.right_only
        and filecmp.cmpfiles(left, right, names, shallow=False)[0] == names
        and all(same_files(Path(left) / name, Path(right) / name) for name in compared.common_dirs)
    )


@pytest.mark.parametrize("labels", ["integer", "text"])
def test_same_bits_whatever_the_memory(tmp_path, monkeypatch, labels):
    random = np.random.default_rng(0)
    prefix = "" if labels == "integer" else "n"
    lines = (f"{prefix}{a} {prefix}{b} {random.random()}" for a, b in random.integers(0, 60, (30_000, 2)))
    source = write(tmp_path / "links.txt", "\n".join(lines))
    first = convert(source, tmp_path / "a.pf", memory="2GB")
    monkeypatch.setattr(edgelist, "BLOCK_BYTES", 10_000)
    monkeypatch.setattr(edgelist, "BATCH_ROWS", 700)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    second = convert(source, tmp_path / "b.pf", memory="400MB")
    assert first == second
    assert first["edges"] < 60 * 59 / 2 + 1
    assert same_files(tmp_path / "a.pf", tmp_path / "b.pf")


def test_a_pair_over_many_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(edgelist, "BATCH_ROWS", 100)
    values = np.random.default_rng(0).random(5_000).tolist()
    edges, report = read(tmp_path, "\n".join(f"{1 + k % 2} {2 - k % 2} {x!r}" for k, x in enumerate(values)))
    assert edges == {(1, 2): sum(values) / len(values)}
    assert (report["repeated_rows"], report["both_directions"]) == (4_999, 1)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_peak_memory_is_within_the_budget(tmp_path):
    random = np.random.default_rng(0).integers(0, 300_000, (700_000, 2))
    csv.write_csv(pa.table(list(random.T), names=["from", "to"]), tmp_path / "links.txt")
    # Not ru_maxrss: a new process begins with that of its parent.
    code = (
        "import sys; from ooc_pf.edgelist import convert\n"
        "def peak():\n"
        "    [line] = [line for line in open('/proc/self/status') if line.startswith('VmHWM')]\n"
        "    return 1024 * int(line.split()[1])\n"
        "before = peak(); convert(sys.argv[1], sys.argv[2], memory='400MB'); print(peak() - before)"
    )
    command = [sys.executable, "-c", code, tmp_path / "links.txt", tmp_path / "out.pf"]
    used = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert used < 400e6


def test_describe(tmp_path):
    _, report = read(tmp_path, "1 2 1\n2 1 3\n4 4 1\n5 6 x\n5 6 2.5\n", bad_lines="skip")
    text = describe(report)
    for part in (
        "links.txt",
        "4 rows",
        "1 bad lines",
        "1 self loops",
        "1 repeated rows merged (mean)",
        "1 pairs given",
    ):
        assert part in text
    assert "5 nodes (integer labels), 2 edges, distances from 2 to 2.5" in text
    assert "cancelled" not in text
    assert json.loads(json.dumps(report)) == report


def test_progress_only_when_asked(tmp_path, capsys, monkeypatch):
    source = write(tmp_path / "links.txt", GOOD)
    convert(source, tmp_path / "a.pf")
    assert capsys.readouterr() == ("", "")
    convert(source, tmp_path / "b.pf", progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "reading" in err
    assert "100%" in err


# -- the script -----------------------------------------------------------------------------------------------------


def run_script(*arguments):
    environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parent.parent)}
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, env=environment)


def test_script(tmp_path):
    source = write(tmp_path / "links.txt", "1 2 1\n2 3 -1\n")
    done = run_script(source, tmp_path / "a.pf", "--kind", "signed", "--quiet", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["edges"] == 2
    done = run_script(source, tmp_path / "a.pf", "--quiet")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
    assert run_script(source).returncode == 2


@pytest.mark.parametrize("stage", ["scratch/rows.parquet", "edges.zarr/u"])
def test_ctrl_c_leaves_nothing(tmp_path, stage):
    pairs = np.random.default_rng(0).integers(0, 10**6, (700_000, 2))
    csv.write_csv(pa.table(list(pairs.T), names=["from", "to"]), tmp_path / "links.txt")
    environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parent.parent)}
    command = [sys.executable, SCRIPT, tmp_path / "links.txt", tmp_path / "out.pf", "--quiet"]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment)
    while not (tmp_path / "out.pf.partial" / stage).exists():
        assert child.poll() is None
        time.sleep(0.002)
    start = time.monotonic()
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=20)
    assert child.returncode == 130
    assert time.monotonic() - start < 3
    assert [entry.name for entry in tmp_path.iterdir()] == ["links.txt"]
