"""Kill a solve without warning, and go on where it stopped: the answer has the same bits as one that was let alone."""

import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import ooc_pf as pf

TOL = 1e-10


def make_graph() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    u, v = np.triu_indices(300, 1)
    chosen = rng.random(len(u)) < 0.1
    return u[chosen], v[chosen], rng.random(chosen.sum())


def main() -> pf.Result:
    alone = pf.metric_nearness(make_graph(), tol=TOL)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.pf"
        solver = subprocess.Popen([sys.executable, __file__, str(path)])
        while not (path / "history.jsonl").exists() and solver.poll() is None:  # until something is committed
            time.sleep(0.01)
        solver.send_signal(signal.SIGKILL)
        solver.wait()
        print(f"killed at iteration {len((path / 'history.jsonl').read_text().splitlines())} or later")

        result = pf.resume(path)
        same = np.array_equal(result.x, alone.x)
        print(f"{result.status} at iteration {result.n_iter}, the same bits as without a kill: {same}")
    return result


if __name__ == "__main__":
    if len(sys.argv) > 1:
        pf.metric_nearness(make_graph(), tol=TOL, workspace=sys.argv[1])
    else:
        main()
