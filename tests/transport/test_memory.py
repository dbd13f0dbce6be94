"""What a run holds grows with the points and the support, measured in a process of its own."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.memory

CODE = """
import json, sys
import numpy as np
import ooc_pf as pf
from tests.gallery import colour_cloud, normal_masses
from tests.measure import Watch, resident

kind, n, memory = sys.argv[1], int(sys.argv[2]), sys.argv[3]

def run(n, memory=None):
    if kind == "soft":
        a, b, x = normal_masses(n)
        return pf.quadratic_transport(a, b, (x, x), gamma=1000.0, memory=memory)
    rng = np.random.default_rng(0)
    a = np.full(n, 1.0 / n)
    return pf.quadratic_transport(
        a, a, (colour_cloud(rng, n), colour_cloud(rng, n)), marginals="exact", reg=10.0, memory=memory
    )

run(300)
run(600)
before, watch = resident(), Watch()
watch.start()
result = run(n, memory)
print(json.dumps({"peak": watch.stop() - before, "status": result.status}))
"""


@pytest.mark.parametrize("kind, n, memory", [("soft", 20_001, 200_000_000), ("exact", 6_000, 60_000_000)])
def test_peak_memory_stays_within_the_budget(kind, n, memory):
    command = [sys.executable, "-c", CODE, kind, str(n), str(memory)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["status"] == "converged"
    assert facts["peak"] <= memory < 8 * n * n
