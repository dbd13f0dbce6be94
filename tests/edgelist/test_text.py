"""Text is read the same however it is spelled."""

import gzip

import pyarrow as pa
import pytest

from ooc_pf.edgelist import text as edgetext
from ooc_pf.edgelist.layout import Asked
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
        "# größe\n1 2 0.5\n30 2 1.5\n".encode("latin-1"),
        gzip.compress(b"1 2 0.5\n", mtime=0) + gzip.compress(b"30 2 1.5\n", mtime=0),
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
