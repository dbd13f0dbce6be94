"""Text is read the same however it is spelled, by the fast parser and the exact one."""

import gzip
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ooc_pf.edgelist import text as edgetext
from tests.gallery import write


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
        gzip.compress(b"1 2 0.5\n") + gzip.compress(b"30 2 1.5\n"),
    ],
)
def test_text_variants_read_the_same(tmp_path, content):
    source = edgetext.TextSource(write(tmp_path / "links.txt", content), None, "distance", False, 1 << 20)
    rows = pa.concat_tables(source.tables()).select(["a", "b", "value"])
    assert rows.to_pydict() == {"a": [1, 30], "b": [2, 2], "value": [0.5, 1.5]}


@pytest.mark.parametrize(
    "header", ["from,to", "Source,Target", "u v", "src\tdst", "node1 node2", "FromNodeId ToNodeId"]
)
def test_usual_header_of_two_columns(tmp_path, header):
    row = "1,2" if "," in header else "1 2"
    source = edgetext.TextSource(write(tmp_path / "a.txt", f"{header}\n{row}\n"), None, "distance", False, 1 << 20)
    assert [table.to_pylist() for table in source.tables()] == [[{"a": 1, "b": 2, "value": 1.0, "position": 2}]]


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
    source.layout = edgetext.Layout("x", comma, positions)
    fast = source._parse_block(1, block)
    if fast is not None:
        exact = [row for table in source._parse_lines(1, block) for row in table.to_pylist()]
        assert fast.to_pylist() == exact
