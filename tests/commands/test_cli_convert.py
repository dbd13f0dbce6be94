"""`ooc-pf convert` as a person, or a script, meets it: it says what it used, or what to type."""

import json

import pytest

from ooc_pf.commands.cli import main
from tests.properties import edges_of

ORDERS = "id,source,target,time,weight\n1,{0},{1},99,0.5\n2,{1},{2},99,0.6\n"


def convert(tmp_path, content, *options):
    source, workspace = tmp_path / "links.txt", tmp_path / "links.pf"
    source.write_bytes(content.encode())
    return main(["convert", str(source), str(workspace), "--quiet", *options]), workspace


@pytest.mark.parametrize("ids", [(5, 7, 8), ("ann", "bob", "cid")])
def test_the_columns_used_are_printed(tmp_path, capsys, ids):
    code, workspace = convert(tmp_path, ORDERS.format(*ids))
    assert code == 0
    assert edges_of(workspace) == {ids[:2]: 0.5, ids[1:]: 0.6}
    told = capsys.readouterr().out
    assert "header id,source,target,time,weight" in told
    assert "nodes source (column 2) and target (column 3), distance weight (column 5)" in told
    assert "not used: id, time" in told


def test_the_columns_used_are_in_the_json_and_the_manifest(tmp_path, capsys):
    code, workspace = convert(tmp_path, "# note\r1\t2\t0.5\r2\t007\t1\r3\t3\t1\r", "--json")
    report = json.loads(capsys.readouterr().out)
    assert code == 0
    wanted = {"delimiter": "tab", "header": None, "labels": "text", "lines": 4, "rows": 3, "self_loops": 1, "nodes": 4}
    assert {name: report[name] for name in wanted} == wanted
    assert [(column["role"], column["position"]) for column in report["columns"]] == [
        ("node", 1),
        ("node", 2),
        ("value", 3),
    ]
    assert json.loads((workspace / "manifest.json").read_text())["graph"]["source"] == report


@pytest.mark.parametrize(
    ("content", "options", "edges"),
    [
        ("ann lee\tbob\n", ["--delimiter", r"\t"], {("ann lee", "bob"): 1.0}),
        ("ann lee;bob;2\n", ["--delimiter", ";"], {("ann lee", "bob"): 2.0}),
        ("ann lee|bob|2\n", ["--delimiter", "pipe"], {("ann lee", "bob"): 2.0}),
        ("1\t\t2 3\n", ["--delimiter", " "], {(1, 2): 3.0}),
        ("p q\n1 2\n", ["--header"], {(1, 2): 1.0}),
        ("p q\n1 2\n", ["--no-header"], {("p", "q"): 1.0, ("1", "2"): 1.0}),
        ("9 1 2 3\n", ["--columns", "2,3,4"], {(1, 2): 3.0}),
        ("foo,bar,baz,qux\n9,1,2,3\n", ["--columns", "bar,baz,qux"], {(1, 2): 3.0}),
    ],
)
def test_what_the_user_says_counts(tmp_path, capsys, content, options, edges):
    code, workspace = convert(tmp_path, content, *options)
    assert (code, capsys.readouterr().err) == (0, "")
    assert edges_of(workspace) == edges


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        ("foo,bar,baz,qux\n9,1,2,3\n", [], "--columns 'foo,bar,baz'"),
        ("9 1 2 3\n", [], "--columns 1,2,3"),
        ("17,ann,bob\n18,bob,cid\n", [], "--columns '1,2'"),
        ("p q\n1 2\n", [], "--no-header"),
        ("a;b,c\n", [], "--delimiter"),
        ("1 2\n", ["--delimiter", ":"], "semicolon (';')"),
    ],
)
def test_what_is_open_ends_with_what_to_type(tmp_path, capsys, content, options, words):
    code, _ = convert(tmp_path, content, *options)
    out, err = capsys.readouterr()
    assert (code, out, err.startswith("error: "), err.count("\n")) == (1, "", True, 1)
    assert words in err
    assert "--bad-lines" not in err
    assert [entry.name for entry in tmp_path.iterdir()] == ["links.txt"]
