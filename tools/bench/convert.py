"""How fast, and in how much memory, edge lists are converted.

    python tools/bench/convert.py --rows 20000000 --memory 1GB
    python tools/bench/convert.py --rows 20000000 --ids text --nodes 40000000

The file is generated in a temporary directory, with a tenth as many nodes as rows, and converted in a process of its
own; its memory is the peak resident set less what it held after its imports.
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
from pyarrow import csv

IDS = ("integer", "wide", "text")

CHILD = """
import json, re, sys, time
from ooc_pf.edgelist.convert import convert
def peak():
    # Not ru_maxrss: a new process begins with that of its parent.
    with open("/proc/self/status") as status:
        return 1024 * int(re.search("VmHWM: *([0-9]+)", status.read().replace("\\t", " "))[1])
source, workspace, memory = sys.argv[1:]
before, start = peak(), time.perf_counter()
report = convert(source, workspace, memory=memory)
seconds = time.perf_counter() - start
print(json.dumps({"seconds": seconds, "baseline": before, "peak": peak(), **report}))
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
    """Generate, convert in a child process, and return what it measured."""
    with tempfile.TemporaryDirectory() as directory:
        source, workspace = Path(directory) / "edges.txt", Path(directory) / "out.pf"
        start = time.perf_counter()
        generate(source, arguments.rows, arguments.nodes or arguments.rows // 10, arguments.ids, not arguments.no_value)
        generated = time.perf_counter() - start
        size = source.stat().st_size
        command = [sys.executable, "-c", CHILD, source, workspace, arguments.memory]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return {"file_bytes": size, "generate_seconds": generated, **json.loads(done.stdout)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how fast an edge list is converted, and its peak memory.")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--nodes", type=int, help="number of possible node ids (default: a tenth of the rows)")
    parser.add_argument("--ids", choices=IDS, default="integer")
    parser.add_argument("--no-value", action="store_true", help="two columns only")
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = measure(arguments)
    if arguments.json:
        print(json.dumps({**vars(arguments), **found}))
        return
    table = {
        "rows": f"{found['rows']:,}",
        "file": f"{found['file_bytes'] / 1e6:,.0f} MB",
        "nodes, edges": f"{found['nodes']:,}, {found['edges']:,}",
        "time": f"{found['seconds']:.1f} s",
        "speed": f"{found['rows'] / found['seconds']:,.0f} rows/s",
        "memory allowed": arguments.memory,
        "memory used": f"{(found['peak'] - found['baseline']) / 1e6:,.0f} MB above {found['baseline'] / 1e6:,.0f} MB",
    }
    for name, value in table.items():
        print(f"{name:<16}{value}")


if __name__ == "__main__":
    main()
