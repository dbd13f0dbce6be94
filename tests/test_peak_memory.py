"""Runs keep within their budget of memory, each measured in a process of its own."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import ooc_pf as pf
from tests.gallery import random_links

pytestmark = pytest.mark.memory

SOLVERS = {"clustering": pf.correlation_clustering, "nearness": pf.metric_nearness}


def measured(problem, nodes, degree, memory, iterations, folder):
    """Peak resident memory of a run above that of a process that has done a small one; see `tests/measure.py`."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "tests.measure", problem, nodes, degree, memory, iterations, folder]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("problem", SOLVERS)
def test_peak_memory_stays_within_the_budget(problem, tmp_path):
    facts = measured(problem, 30_000, 40, "90MB", 3, tmp_path)
    assert facts["edges"] > 400_000
    assert facts["read_bytes"] > 0  # it did not all fit
    assert facts["peak"] <= 90_000_000


@pytest.mark.slow
@pytest.mark.parametrize("problem", SOLVERS)
def test_peak_memory_with_ten_times_as_much_state(problem, tmp_path):
    facts = measured(problem, 225_000, 1200, "128MB", 4, tmp_path / "small")
    assert facts["state"] >= 10 * 128_000_000
    assert facts["peak"] <= 128_000_000
    shutil.rmtree(tmp_path / "small")
    unlimited = measured(problem, 225_000, 1200, "128MB:none", 4, tmp_path / "large")
    assert unlimited["peak"] > 128_000_000
    assert all(facts[name] == unlimited[name] for name in ("lower_bound", "rows"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "memory"), [("whole", 90_000_000), ("linear", 90_000_000), ("complete", 400_000_000)]
)
def test_peak_memory_of_graphs_laid_out_for_memory(problem, memory, tmp_path):
    facts = measured(problem, 10_000, 20, str(memory), 12, tmp_path)
    assert facts["rows"] > 20_000
    assert facts["peak"] <= memory


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
    command = [sys.executable, "-c", code, random_links(tmp_path / "links.txt", 400_000), tmp_path / "out.pf"]
    assert int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) < 400e6


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize("rows", ["X.npy", "rows.parquet", "wide.npy"])
def test_peak_memory_of_rows_in_files(rows, tmp_path):
    """120 MB of rows, of a Parquet file in one row group; fitted in 80 MB."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150_000, 100))
    for name, part in (("small", X[:2000]), ("", X)):
        labels = (part[:, 0] + rng.normal(size=len(part)) > 0).astype(int)
        np.save(tmp_path / f"{name}y.npy", labels)
        np.save(tmp_path / f"{name}X.npy", part)
        np.save(tmp_path / f"{name}wide.npy", part)
        table = pa.table({str(k): column for k, column in enumerate(part.T)})
        pyarrow.parquet.write_table(table, tmp_path / f"{name}rows.parquet", row_group_size=len(part))
    code = (
        "import sys; from ooc_pf.commands.cli import main; from tests.measure import Watch, resident\n"
        "def run(name):\n"
        "    wide = ['--columns', '1,2,3'] if 'wide' in sys.argv[1] else []\n"
        "    files = [name + sys.argv[1], name + 'y.npy', '-o', name + 'o.pf']\n"
        "    main(['svm', *files, '--memory', '80MB', '--json', *wide])\n"
        "run('small'); watch = Watch(); before = resident(); watch.start(); run(''); print(watch.stop() - before)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-c", code, rows]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert '"status": "converged"' in done.stdout.splitlines()[-2]
    assert int(done.stdout.splitlines()[-1]) < 80e6
