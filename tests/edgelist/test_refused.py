"""What the converter refuses, and how it says so."""

import gzip

import numpy as np
import pytest

from ooc_pf.edgelist import text as edgetext
from ooc_pf.edgelist.convert import convert
from ooc_pf.errors import BudgetError, InputError, WorkspaceError
from tests.gallery import GOOD, write
from tests.properties import edges_of, read, refused

BAD_AMONG_BLANKS = {
    b"4 5": ["distance is missing", "2 field", "at least 3"],
    b"4": ["1 field"],
    b"4 5 abc": ["distance 'abc' is not a number"],
    b"4 5 1_0": ["'1_0'", "not a number"],
    b"4 5 0x1p3": ["'0x1p3'", "not a number"],
    b"4 5 0,5": ["'0,5'", "not a number"],
    b"4 5 nan": ["distance 'nan' is not a finite number"],
    b"4 5 -inf": ["'-inf'", "finite"],
    b"4 5 1e999": ["'1e999'", "finite"],
    b"4 \0 1": ["NUL"],
    b"4 \xff\xfe 1": ["not UTF-8"],
}
BAD_AMONG_COMMAS = {b'"4,5,1': [], b",5,1": ["empty"], b"4,,1": ["empty"], b"4,5,": ["''"], b"4;5;1": ["1 field"]}


@pytest.mark.parametrize(("separator", "bad"), [(b" ", BAD_AMONG_BLANKS), (b",", BAD_AMONG_COMMAS)])
def test_bad_lines_are_named_or_skipped(tmp_path, separator, bad):
    before, after = (text.replace(b" ", separator) for text in (b"1 2 0.5\n\n2 3 1.5\n", b"\n7 8 2\n"))
    for line, parts in bad.items():
        refused(tmp_path, before + line + after, "line 4", "bad_lines='skip'", *parts)
    edges, report = read(tmp_path, before + b"\n".join(bad) + after, bad_lines="skip")
    assert list(edges.values()) == [0.5, 1.5, 2.0]
    assert (report["rows"], report["bad_lines_skipped"]) == (3, len(bad))


def test_a_quote_ends_with_its_line(tmp_path):
    refused(tmp_path, 'x,y,1\n"a\nb",c,1\n', "line 2", "1 field")
    assert len(read(tmp_path, '1,2,0.5\n4,5,"1\n7,8,2\n')[0]) == 3


def test_bad_line_far_into_the_file(tmp_path, settings):
    lines = [f"{k} {k + 1} 1" for k in range(5_000)]
    lines[0], lines[100], lines[4_000] = "rubbish", "# comment", "5 6 nan"
    settings.small_reads(block=2_000)
    refused(tmp_path, "\n".join(lines[1:]), "line 4000", "'nan'")
    edges, report = read(tmp_path, "\n".join(lines), bad_lines="skip")
    assert (len(edges), report["bad_lines_skipped"]) == (4_997, 2)


MARKET = "%%MatrixMarket matrix coordinate real general\n"
SIGNED = {"kind": "signed"}


@pytest.mark.parametrize(
    ("name", "content", "options", "parts"),
    [
        ("absent.txt", None, {}, ["No such file"]),
        ("empty.txt", "", {}, ["holds no edges"]),
        ("empty.txt.gz", "", {}, ["holds no edges"]),
        ("blank.txt", "\n \n", {}, ["holds no edges"]),
        ("comments.txt.gz", "# only\n% comments\n", {}, ["holds no edges"]),
        ("header.csv", "from,to,w\n", {}, ["holds no edges"]),
        ("skipped.txt", "1 2 nan\n", {"bad_lines": "skip"}, ["holds no edges", "1 bad"]),
        ("loops.txt", "1 1\n", {}, ["no edge is left", "1 self loops"]),
        ("cancelled.txt", "1 2 1\n2 1 -1\n", SIGNED, ["1 pairs that cancel"]),
        ("unsigned.txt", "1 2\n", SIGNED, ["no third column", "kind='distance'"]),
        ("unsigned.txt", "1 2 3\n", {"columns": "1,2", **SIGNED}, ["no third column"]),
        ("overflow.txt", "1 2 1e308\n2 1 1e308\n", {"duplicates": "sum"}, ["more than a float holds"]),
        ("a.csv", "1,2,3\n", {"columns": "from,to,w"}, ["'from'", "looks like data", "positions from 1"]),
        ("a.csv", "from,to,w\n1,2,3\n", {"columns": "from,to,weight"}, ["'weight'", "missing", "from, to, w"]),
        ("a.csv", "from,to,to\n1,2,3\n", {"columns": "from,to"}, ["'to'", "twice"]),
        ("a.txt", "1 2\n", {"columns": "1,2,3"}, ["1, 2, 3"]),
        ("no_header.csv", "1,2,abc\n2,3,1\n", {}, ["line 1", "'abc'"]),
        ("no_header.csv", "ann,bob,nan\nbob,cid,1\n", {}, ["line 1", "'nan'"]),
        ("a.txt", "rubbish\n1 2 3\n", {}, ["line 1", "'rubbish'"]),
        ("a.txt", "1 2 0,5\n", {}, ["line 1", "'0,5'", "not a number"]),
        ("binary", bytes(range(256)) * 100, {}, []),
        ("binary", np.random.default_rng(1).bytes(100_000), {}, []),
        ("binary", "1 2 3\n".encode("utf-16"), {}, ["NUL"]),
        ("binary", b"\x89PNG\r\n\x1a\n", {}, []),
        ("long.txt", b"1 2\n" + b"x" * (edgetext.MAX_LINE + 1), {}, ["line 2", "longer"]),
        ("a.mtx", MARKET + "3 3 2\n1 2 1\n1 4 1\n", {}, ["line 4", "'4'", "1 to 3"]),
        ("a.mtx", MARKET + "3 3 1\n0 2 1\n", {}, ["line 3", "'0'"]),
        ("a.mtx", MARKET + "3 3 1\na 2 1\n", {}, ["line 3", "'a'"]),
        ("a.mtx", MARKET + "3 3 5\n1 2 1\n", {}, ["5 entries", "1 follow"]),
        ("a.mtx", MARKET + "3 3 0\n1 2 1\n", {}, ["0 entries", "1 follow"]),
        ("a.mtx", MARKET + "3 4 1\n1 2 1\n", {}, ["line 2", "3 x 4", "square"]),
        ("a.mtx", MARKET + "3 3\n1 2 1\n", {}, ["line 2", "size line"]),
        ("a.mtx", MARKET + "3 3 1\n1 2 1\n", {"columns": "1,2"}, ["no named columns"]),
        ("a.mtx", MARKET.replace("real", "complex") + "3 3 1\n1 2 1 1\n", {}, ["line 1", "real|integer|pattern"]),
        ("a.mtx", MARKET.replace("coordinate", "array") + "3 3\n1\n", {}, ["line 1", "array"]),
        ("a.mtx", "3 3 1\n1 2 1\n", {}, ["line 1", "%%MatrixMarket"]),
    ],
)
def test_bad_file(tmp_path, name, content, options, parts):
    refused(tmp_path, content, *parts, name=name, **options)


def test_directory_and_damaged_gzip(tmp_path):
    (tmp_path / "folder").mkdir()
    refused(tmp_path, None, "directory", name="folder")
    random = np.random.default_rng(0).integers(0, 10**6, (20_000, 2))
    data = gzip.compress("\n".join(f"{a} {b}" for a, b in random).encode(), 1)
    refused(tmp_path, data[: len(data) // 2], "cut off or damaged")
    refused(tmp_path, data[:50_000] + bytes(1000) + data[51_000:], "cut off or damaged")


@pytest.mark.parametrize(
    ("options", "error", "parts"),
    [
        ({"kind": "sign"}, InputError, ["'sign'", "distance, signed"]),
        ({"duplicates": "max"}, InputError, ["'max'", "mean, sum, first, error"]),
        ({"duplicates": "sign"}, InputError, ["'sign'", "mean, sum, first, error"]),
        ({"bad_lines": "ignore"}, InputError, ["'ignore'", "error, skip"]),
        ({"header": "yes"}, InputError, ["'yes'", "True, False, None"]),
        ({"delimiter": "::"}, InputError, ["'::'", "tab ('\\t')"]),
        ({"columns": "a"}, InputError, ["two or three"]),
        ({"columns": "a,b,a"}, InputError, ["two or three different"]),
        ({"memory": "lots"}, InputError, ["'lots'"]),
        ({"memory": "10MB"}, BudgetError, ["400MB"]),
    ],
)
def test_unusable_options(tmp_path, options, error, parts):
    with pytest.raises(error) as caught:
        convert(write(tmp_path / "links.txt", GOOD), tmp_path / "out.pf", **options)
    assert all(part in str(caught.value) for part in parts)
    assert [entry.name for entry in tmp_path.iterdir()] == ["links.txt"]


def test_existing_workspace_is_refused_before_reading(tmp_path):
    (tmp_path / "out.pf").mkdir()
    with pytest.raises(WorkspaceError, match="already exists"):
        convert(tmp_path / "absent.txt", tmp_path / "out.pf")


@pytest.mark.parametrize(("limit", "what"), [(3, "nodes"), (4, "edges")])
def test_too_many(tmp_path, settings, limit, what):
    settings.small_reads(most=limit)
    refused(tmp_path, "1 2\n2 3\n3 4\n1 3\n1 4\n", f"more than {limit} {what}")


def test_strange_workspace_path(tmp_path):
    workspace = tmp_path / "value=9" / 'we\'ird [1]*? "x".pf'
    convert(write(tmp_path / "links.txt", "1 2 0.5\n30 2 1.5\n"), workspace)
    assert edges_of(workspace) == {(1, 2): 0.5, (2, 30): 1.5}
