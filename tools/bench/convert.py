"""How fast, and in how much memory, edge lists are converted, beside plain SQL of DuckDB.

    python tools/bench/convert.py --rows 20000000 --memory 1GB
    python tools/bench/convert.py --rows 20000000 --ids text --nodes 40000000 --alone

The file is generated in a temporary directory, with a tenth as many nodes as rows, and converted in a process of its
own; its memory is the peak resident set less what it held after its imports. The SQL makes of the same file what a
conversion does at the least: nodes are numbered, rows of one pair are joined, and the edges are sorted and written
to a Parquet file. It looks at no row for errors, and writes no workspace.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from common import table
from pyarrow import csv

IDS = ("integer", "wide", "text")

PEAK = """
import json, os, re, sys, time
def peak():
    # Not ru_maxrss: a new process begins with that of its parent.
    with open("/proc/self/status") as status:
        return 1024 * int(re.search("VmHWM: *([0-9]+)", status.read().replace("\\t", " "))[1])
def measured(convert):
    before, start, spent = peak(), time.perf_counter(), sum(os.times()[:2])
    report = convert()
    times = {"seconds": time.perf_counter() - start, "processor_seconds": sum(os.times()[:2]) - spent}
    print(json.dumps({**times, "baseline": before, "peak": peak(), **report}))
source, output, memory = sys.argv[1:]
"""
OURS = """
from ooc_pf.edgelist.convert import convert
measured(lambda: convert(source, output, memory=memory))
"""
PLAIN = """
import duckdb
SQL = '''
    CREATE VIEW listed AS SELECT column0 AS a, column1 AS b, {value} AS value
        FROM read_csv(?, header=false, delim='\\t');
    CREATE TABLE nodes AS SELECT id, row_number() OVER (ORDER BY id) - 1 AS number
        FROM (SELECT a AS id FROM listed UNION SELECT b FROM listed);
    COPY (SELECT least(x.number, y.number) AS u, greatest(x.number, y.number) AS v, min(value) AS value
        FROM listed JOIN nodes AS x ON a = x.id JOIN nodes AS y ON b = y.id WHERE a <> b
        GROUP BY ALL ORDER BY u, v) TO '{output}' (FORMAT parquet);
'''
def run():
    base = duckdb.connect(output + ".duckdb", config={"memory_limit": memory, "threads": 2})
    base.execute("SET enable_progress_bar = false")
    quoted = source.replace("'", "''")
    columns = len(base.read_csv(source, header=False, delimiter="\\t").columns)
    value = "column2" if columns > 2 else "1.0"
    for statement in SQL.format(value=value, output=output).replace("?", f"'{quoted}'").split(";")[:-1]:
        base.execute(statement)
    nodes = base.execute("SELECT count(*) FROM nodes").fetchone()[0]
    edges = base.execute(f"SELECT count(*) FROM '{output}'").fetchone()[0]
    return {"nodes": nodes, "edges": edges}
measured(run)
"""


def generate(file: Path, rows: int, nodes: int, ids: str, values: bool) -> None:
    """Write random rows: ids below ``nodes`` as they are, spread over 64 bits, or as text."""
    random = np.random.default_rng(0)
    options = csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    with open(file, "wb") as sink:
        for start in range(0, rows, 1_000_000):
            count = min(1_000_000, rows - start)
            columns = [_labels(random.integers(0, nodes, count), ids) for _ in range(2)]
            if values:
                columns.append(pa.array(np.round(random.random(count) * 10, 6)))
            csv.write_csv(pa.table(columns, names=["a", "b", "value"][: len(columns)]), sink, options)


def _labels(numbers: np.ndarray, ids: str) -> pa.Array:
    if ids == "wide":
        # An odd factor permutes the 64-bit integers, so different numbers stay different.
        return pa.array((numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)).view(np.int64))
    labels = pa.array(numbers)
    return pc.binary_join_element_wise("user-", labels.cast(pa.string()), "") if ids == "text" else labels


def measure(arguments: argparse.Namespace) -> dict:
    """Generate, convert in child processes, and return what they measured."""
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "edges.txt"
        start = time.perf_counter()
        generate(source, arguments.rows, arguments.nodes or arguments.rows // 10, arguments.ids, not arguments.no_value)
        generated = time.perf_counter() - start
        size = source.stat().st_size
        found = {"file_bytes": size, "generate_seconds": generated}
        found["ooc_pf"] = run_child(OURS, source, Path(directory) / "out.pf", arguments.memory)
        if not arguments.alone:
            found["DuckDB"] = run_child(PLAIN, source, Path(directory) / "edges.parquet", arguments.memory)
            same = all(found["DuckDB"][name] == found["ooc_pf"][name] for name in ("nodes", "edges"))
            assert same, f"not the same graph: {found}"
    return found


def run_child(code: str, *arguments: object) -> dict:
    """What a process of its own measured."""
    command = [sys.executable, "-c", PEAK + code, *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how fast an edge list is converted, and its peak memory.")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--nodes", type=int, help="number of possible node ids (default: a tenth of the rows)")
    parser.add_argument("--ids", choices=IDS, default="integer")
    parser.add_argument("--no-value", action="store_true", help="two columns only")
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--alone", action="store_true", help="without DuckDB")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = measure(arguments)
    if arguments.json:
        print(json.dumps({**vars(arguments), **found}))
        return
    ours = found["ooc_pf"]
    print(
        f"{ours['rows']:,} rows, {found['file_bytes'] / 1e6:,.0f} MB; {ours['nodes']:,} nodes, {ours['edges']:,} edges"
    )
    print(table([line(name, found[name], arguments) for name in ("ooc_pf", "DuckDB") if name in found]))


def line(name: str, facts: dict, arguments: argparse.Namespace) -> dict:
    """A line of the table."""
    return {
        "converted by": name,
        "memory allowed": arguments.memory,
        "time, s": round(facts["seconds"], 1),
        "processor time, s": round(facts["processor_seconds"], 1),
        "rows a second": f"{arguments.rows / facts['seconds']:,.0f}",
        "peak above the start, MB": round((facts["peak"] - facts["baseline"]) / 1e6),
        "at the start, MB": round(facts["baseline"] / 1e6),
    }


if __name__ == "__main__":
    main()
