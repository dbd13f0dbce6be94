"""What separates fields and ends lines; and the fast reading of a block against the exact one."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ooc_pf.edgelist import convert as edgelist
from ooc_pf.edgelist import text as edgetext
from ooc_pf.edgelist.columns import Unclear
from ooc_pf.edgelist.delimiters import NAMES, find_delimiter
from ooc_pf.edgelist.fields import BLANKS, PLAIN_INTEGER
from ooc_pf.errors import InputError
from tests.gallery import write
from tests.properties import read, refused


@pytest.mark.parametrize(
    ("lines", "delimiter"),
    [
        (["1 2 0.5"], b" "),
        (["1\t2\t0.5"], b"\t"),
        (["1 2\t0.5"], b" "),
        (["1\t2", "3 4"], b" "),
        (["ann lee\tbob\t1"], b"\t"),
        (["ann\tbob", "bob lee\tcid"], b"\t"),
        (["Smith, J\tDoe, D\t1"], b"\t"),
        (["1,2,0.5"], b","),
        (["1\t,2,\t0.5"], b","),
        (["ann lee,bob"], b","),
        (["1 2 0,5"], b" "),
        (["ann bob 0,5"], b" "),
        (["1;2;0.5"], b";"),
        (["1;2;0,5"], b";"),
        (["a|b|1"], b"|"),
        (["sp|P1 sp|P2 0.9", "sp|P1 sp|P3 0.8"], b" "),
        (["Smith J;Doe D;1"], b";"),
        (["1,2,a;b", "1,3,c"], b","),
    ],
)
def test_the_delimiter_is_found(lines, delimiter):
    assert find_delimiter([line.encode() for line in lines]) == delimiter


@pytest.mark.parametrize("line", [b"Smith, J;Doe, D;1", b"sp|P1 sp|P2", b"a;b,c,1"])
def test_what_may_be_two_delimiters_is_open(line, tmp_path):
    with pytest.raises(Unclear):
        find_delimiter([line])
    refused(tmp_path, line + b"\n", "line 1", "may be separated by", "--delimiter")


@pytest.mark.parametrize("delimiter", ["semicolon", ";"])
def test_the_user_decides_about_the_delimiter(tmp_path, delimiter):
    edges, report = read(tmp_path, "Smith, J;Doe, D;1\n", delimiter=delimiter)
    assert edges == {("Doe, D", "Smith, J"): 1.0}
    assert (report["delimiter"], report["format"]) == ("semicolon", "semicolon-separated text")


@pytest.mark.parametrize(
    ("delimiter", "content"),
    [(r"\t", "a b\tc\n"), ("\t", "a b\tc\n"), ("tab", "a b\tc\n"), ("|", "a b|c\n"), ("comma", "a b,c\n")],
)
def test_every_spelling_of_a_delimiter(tmp_path, delimiter, content):
    assert read(tmp_path, content, delimiter=delimiter)[0] == {("a b", "c"): 1.0}


def test_spaces_on_request(tmp_path):
    assert read(tmp_path, "1\t\t2  3\n", delimiter="space")[0] == {(1, 2): 3.0}
    refused(tmp_path, "1,2\n", "one field", "spaces", delimiter=" ")
    with pytest.raises(InputError, match="delimiter ':' is unknown"):
        edgelist.convert(write(tmp_path / "a.txt", "1:2\n"), tmp_path / "a.pf", delimiter=":")
    refused(tmp_path, "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1\n", "delimiter", delimiter=",")


def test_labels_with_spaces_stay_whole_between_tabs(tmp_path):
    edges, report = read(tmp_path, "ann lee\tbob ray\t1\nbob ray\tcid\t2\t\n")
    assert edges == {("ann lee", "bob ray"): 1.0, ("bob ray", "cid"): 2.0}
    assert (report["header"], report["delimiter"]) == (None, "tab")


# -- line ends ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
@pytest.mark.parametrize("block_bytes", [1, 7, 1 << 20])
def test_every_line_end_is_one(tmp_path, settings, end, block_bytes):
    settings.small_reads(block=block_bytes)
    edges, report = read(tmp_path, end.join(["from to", "1 2", "# note", "3 4", "5 6", ""]))
    assert edges == {(1, 2): 1.0, (3, 4): 1.0, (5, 6): 1.0}
    assert report["lines"] == 5
    refused(tmp_path, end.join(["1 2 1", "3 4 1", "5 6 x"]), "line 3", "'x'")


# -- integers and text ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", ["007", "+7", "-0", "00", "1_000", "0x7", "7.0", "9223372036854775808"])
@pytest.mark.parametrize("delimiter", NAMES)
def test_ids_that_integers_would_merge_stay_text(tmp_path, odd, delimiter):
    content = f"7 8 1\n0 1000 2\n8 {odd} 0.05\n".replace(" ", delimiter.decode())
    edges, report = read(tmp_path, content)
    assert report["labels"] == "text"
    assert edges == {("7", "8"): 1.0, ("0", "1000"): 2.0, tuple(sorted(["8", odd])): 0.05}


@pytest.mark.parametrize("value", ["007.5", "0.05", "1e-05", "1e05", "-0.5", "-0", "00", "1E+007"])
def test_only_ids_count_for_that(tmp_path, value):
    source = edgetext.TextSource(
        write(tmp_path / "a.txt", f"7 8 {value} 2020-01-05\n"),
        edgelist.Asked(("1", "2", "3")),
        "weight",
        False,
        1 << 20,
    )
    [table] = source.tables()
    assert table.to_pylist() == [{"a": 7, "b": 8, "value": float(value), "position": 1}]
    assert source._parse_block(1, f"7 8 {value} 2020-01-05\n".encode()) is not None  # not line by line


def test_indices_of_a_matrix_are_numbers(tmp_path):
    content = "%%MatrixMarket matrix coordinate real general\n8 8 2\n007 8 1\n7 1 2\n"
    assert read(tmp_path, content)[0] == {(7, 8): 1.0, (1, 7): 2.0}


# -- fast against exact ---------------------------------------------------------------------------------------------

FIELDS = [
    "1", "22", "-3", "+4", "007", "0", "-0", "00", "1_0", "0x1F", "a", "a b", '"q"', '"', '"a', 'a"b"', "é", "1.5",
    ".5", "1e3", "1e-05", "nan", "-inf", "#", "%", "", "x,y", "x;y", "x|y",
]  # fmt: skip
ENDS = ["\n", "\r\n", "\r", " \n", "\t\n"]


def reader(delimiter, text_labels, positions, width=None, start=0):
    """A source without a file."""
    source = object.__new__(edgetext.TextSource)
    source.path, source.value, source.skip_bad, source.bad, source.extra = Path("x"), "weight", False, 0, 0
    source.text_labels, source.has_value, source.positions = text_labels, len(positions) == 3, positions
    source.delimiter = "comma"
    source.layout = edgetext.Layout("x", delimiter, positions, start, width=width)
    return source


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(list(NAMES)),
    st.lists(st.tuples(st.lists(st.sampled_from(FIELDS), max_size=4), st.sampled_from(ENDS)), max_size=6),
    st.sampled_from(["", " ", "\t"]),
    st.booleans(),
    st.sampled_from([(0, 1), (0, 1, 2), (2, 0, 1)]),
    st.sampled_from([None, 2, 3]),
    st.integers(0, 1),
)
def test_fast_and_exact_reading_agree(delimiter, lines, padding, text_labels, positions, width, start):
    separator = padding + delimiter.decode() + padding
    text = "".join(separator.join(fields) + end for fields, end in lines) or "\n"
    block = text.replace("\r\n", "\n").replace("\r", "\n").encode()
    source, other = (reader(delimiter, text_labels, positions, width, start) for _ in range(2))
    fast = source._parse_block(1, block)
    if fast is not None:
        exact = [row for table in other._parse_lines(1, block) for row in table.to_pylist()]
        assert fast.to_pylist() == exact
        assert source.extra == other.extra


NAMED = st.sampled_from([None, "source,target,weight", "weight,source,target", "id,u,v,time,weight"])
IDS = st.sampled_from(["1", "2", "30", "007", "+2", "ann", "bob lee"])


@settings(max_examples=40, deadline=None)
@given(
    NAMED,
    st.sampled_from(["\t", ",", ";", "|"]),
    st.lists(st.tuples(IDS, IDS, st.sampled_from(["1", "0.5", "-2e-03"])), min_size=1, max_size=12),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from([1, 5, 64, 1 << 20]),
)
def test_a_file_is_read_the_same_with_any_delimiter_header_and_line_end(
    tmp_path_factory, names, delimiter, rows, end, block_bytes
):
    names = names.split(",") if names else None
    given_order = names or ["source", "target", "weight"]
    lines = [] if names is None else [names]
    for k, (a, b, value) in enumerate(rows):
        known = {"source": a, "u": a, "target": b, "v": b, "weight": value, "id": str(k), "time": "2020-01-05"}
        lines.append([known[name] for name in given_order])
    file = write(tmp_path_factory.mktemp("file") / "x.txt", end.join(delimiter.join(line) for line in lines))
    asked = edgelist.Asked(delimiter=delimiter.encode())
    source = edgetext.TextSource(file, asked, "weight", False, block_bytes)
    text = not all(PLAIN_INTEGER.fullmatch(label.encode()) for row in rows for label in row[:2])
    try:
        found = [tuple(row.values())[:3] for table in source.tables() for row in table.to_pylist()]
        assert not text
    except edgetext.TextLabels:
        assert text
        source.text_labels = True
        found = [tuple(row.values())[:3] for table in source.tables() for row in table.to_pylist()]
    kind = str if text else int
    assert found == [(kind(a), kind(b), float(value)) for a, b, value in rows]
    assert source.layout.delimiter == delimiter.encode() != BLANKS
