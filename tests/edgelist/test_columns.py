"""Which columns are used: names decide, what is open is refused, and the report tells."""

import json

import pyarrow as pa
import pytest
from pyarrow import parquet

from ooc_pf.edgelist.columns import Unclear, choose_columns
from ooc_pf.edgelist.describe import describe
from tests.properties import read, refused


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        ("source target weight", "source target weight"),
        ("id source target time weight", "source target weight"),
        ("Weight Target Source", "Source Target Weight"),
        ("from to", "from to"),
        ("from to feature time", "from to feature"),
        ("from to rating timestamp", "from to rating"),
        ("SRC DST", "SRC DST"),
        ("u v w", "u v w"),
        ("i j distance", "i j distance"),
        ("a b dist", "a b dist"),
        ("node_1 node_2 length", "node_1 node_2 length"),
        ("Node1 Node2", "Node1 Node2"),
        ("id_1 id_2 similarity", "id_1 id_2 similarity"),
        ("head tail cost", "head tail cost"),
        ("user1 user2 sign", "user1 user2 sign"),
        ("rater ratee rating time", "rater ratee rating"),
        ("FromNodeId ToNodeId Sign", "FromNodeId ToNodeId Sign"),
        ("source_id target_id value", "source_id target_id value"),
        ("match_weight match_probability unique_id_l unique_id_r", "unique_id_l unique_id_r match_weight"),
        ("Source Target Type Id Label timeset Weight", "Source Target Weight"),
        ("source target time", "source target"),
        ("source target event_time", "source target"),
        ("source target createdAt edgeId", "source target"),
        ("source target event_time closeness", "source target closeness"),
        ("from to trust_score comments_count", "from to trust_score"),
        ("from to matchKey maxDistance", "from to maxDistance"),
        ("person friend", "person friend"),
        ("score person friend", "person friend score"),
    ],
)
def test_known_names_decide(names, chosen):
    names = names.split()
    assert [names[k] for k in choose_columns(names)] == chosen.split()


@pytest.mark.parametrize(
    "names",
    [
        "foo bar baz qux",
        "foo bar baz",
        "id time",
        "id person friend weight",
        "source target weight score",
        "source target x y",
        "source target from to",
        "source target target",
        "weight score",
        "source target trust_score max_distance",
    ],
)
def test_names_that_leave_it_open(names):
    with pytest.raises(Unclear):
        choose_columns(names.split())


INTEGERS = "id,source,target,time,weight\n1,5,7,99,0.5\n2,7,8,99,0.6\n"


@pytest.mark.parametrize("ids", [(5, 7, 8), ("ann", "bob", "cid")])
def test_an_id_column_is_not_taken_for_a_node(tmp_path, ids):
    a, b, c = ids
    content = f"id,source,target,time,weight\n1,{a},{b},99,0.5\n2,{b},{c},99,0.6\n"
    edges, report = read(tmp_path, content)
    assert edges == {(a, b): 0.5, (b, c): 0.6}
    assert report["columns"] == [
        {"role": "node", "position": 2, "name": "source"},
        {"role": "node", "position": 3, "name": "target"},
        {"role": "value", "position": 5, "name": "weight"},
    ]
    assert report["unused_columns"] == ["id", "time"]
    told = "nodes source (column 2) and target (column 3), distance weight (column 5); not used: id, time"
    assert told in describe(report)


def test_the_report_tells_how_the_file_was_read(tmp_path):
    content = "# note\n1;2;0.5;x\n\n2;1;1.5;x;more\n3;3;1;x\nbad\n"
    _, report = read(tmp_path, content, columns="1,2,3", bad_lines="skip")
    wanted = {"delimiter": "semicolon", "header": None, "labels": "integer", "text_because": None, "lines": 6}
    wanted |= {"rows": 3, "self_loops": 1, "repeated_rows": 1, "bad_lines_skipped": 1, "extra_fields": 1, "nodes": 3}
    assert {name: report[name] for name in wanted} == wanted
    assert report["unused_columns"] == ["column 4"]
    assert "1 lines with more fields than the first" in describe(report)
    manifest = json.loads((next(tmp_path.glob("*.pf")) / "manifest.json").read_text())
    assert manifest["graph"]["source"] == report


def test_the_report_says_why_labels_are_text(tmp_path):
    report = read(tmp_path, "1 2\n2 007\n")[1]
    assert (report["labels"], report["text_because"]) == ("text", "'007' in line 2 is not a plain integer")
    assert "text labels, as '007' in line 2" in describe(report)
    assert "it is 1 everywhere" in describe(report)


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("foo,bar,baz,qux\n1,2,3,4\n", ["line 1", "foo, bar, baz, qux", "--columns 'foo,bar,baz'"]),
        ("id,person,friend,weight\n1,2,3,4\n", ["line 1", "--columns"]),
        ("source,target,weight,score\n1,2,3,4\n", ["weight, score", "--columns 'source,target,weight'"]),
        ("1,2,3,4\n", ["line 1", "4 columns", "--columns 1,2,3", "--header"]),
        ("1\t2\t\t4\n", ["4 columns", "--delimiter space"]),
        ("17,ann,bob\n18,bob,cid\n", ["line 1", "'bob'", "column 3", "--columns '1,2'"]),
        ("source,target,kind\n1,2,good\n3,4,bad\n", ["line 2", "'good'", "kind", "--columns 'source,target'"]),
        ("source target weight\n1 ann bob 0.5\n", ["line 2", "4 fields", "names only 3", "--columns 2,3,4"]),
        ("person friend\n1 2\n3 4\n", ["line 1", "'person', 'friend'", "--header", "--no-header"]),
        ("a b\nc d\n", ["line 1", "'a', 'b'", "--header", "--no-header"]),
        ("1;2;0,5\n2;3;0,6\n", ["'0,5'", "decimals need a point"]),
    ],
)
@pytest.mark.parametrize("bad_lines", ["error", "skip"])
def test_what_is_open_is_refused_with_what_to_type(tmp_path, content, parts, bad_lines):
    refused(tmp_path, content, *parts, bad_lines=bad_lines)


@pytest.mark.parametrize("content", ["node_1 node_2\n1 2\n2 3\n", "node1,node2\n1,2\n2,3\n", "A\tB\n1\t2\n2\t3\n"])
def test_names_of_nodes_above_integers_are_a_header(tmp_path, content):
    edges, report = read(tmp_path, content)
    assert edges == {(1, 2): 1.0, (2, 3): 1.0}
    assert report["labels"] == "integer"


@pytest.mark.parametrize(
    "content", ["node1 node2\nnode2 node3\n", "a,b\nb,c\n", "a b 1\nc d 1\n", "ann,bob\ncid,dan\n"]
)
def test_labels_are_not_taken_for_a_header(tmp_path, content):
    edges, report = read(tmp_path, content)
    assert (len(edges), report["header"]) == (2, None)


def test_the_user_decides_about_the_header(tmp_path):
    content = "person friend\n1 2\n3 4\n"
    assert read(tmp_path, content, header=True)[0] == {(1, 2): 1.0, (3, 4): 1.0}
    assert ("friend", "person") in read(tmp_path, content, header=False)[0]
    assert read(tmp_path, "1 2\n2 3\n", header=True)[0] == {(2, 3): 1.0}
    assert read(tmp_path, "x,y,z,t\n1,2,5,4\n", header=True, columns="1,2,4")[0] == {(1, 2): 4.0}
    refused(tmp_path, content, "are names", "--no-header", columns="person,friend", header=False)


def test_quoted_names(tmp_path):
    content = '"Weight";"Source";"Target"\n0.5;"a";"b"\n'
    assert read(tmp_path, content)[0] == {("a", "b"): 0.5}
    assert read(tmp_path, '"source" "target"\n1 2\n')[0] == {(1, 2): 1.0}
    assert read(tmp_path, ",source,target\n0,1,2\n")[0] == {(1, 2): 1.0}
    assert read(tmp_path, "source,target,weight\n1,2,3,\n")[0] == {(1, 2): 3.0}


def table_file(path, **columns):
    parquet.write_table(pa.table(columns), path)
    return path.read_bytes()


def test_parquet_follows_the_same_names(tmp_path):
    data = table_file(tmp_path / "p", id=[1, 2], source=[5, 7], target=[7, 8], time=[9, 9], weight=[0.5, 0.6])
    edges, report = read(tmp_path, data, "a.parquet")
    assert edges == {(5, 7): 0.5, (7, 8): 0.6}
    assert [column["position"] for column in report["columns"]] == [2, 3, 5]
    assert "source (column 2)" in describe(report)
    assert read(tmp_path, data, "b.parquet", columns="2,3")[0] == {(5, 7): 1.0, (7, 8): 1.0}
    data = table_file(tmp_path / "p", foo=[1], bar=[2], baz=[3.0])
    refused(tmp_path, data, "foo, bar, baz", "--columns", name="c.parquet")
    refused(tmp_path, data, "neither delimiter nor header", name="c.parquet", delimiter=",")
