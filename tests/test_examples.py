"""The examples run, and end as they say."""

import runpy
from pathlib import Path

import pytest

import ooc_pf as pf

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


NEEDS = {"superpixels": "skimage", "cluster": "distributed"}
MARKS = {"cluster": pytest.mark.server, "restart": pytest.mark.faults}


@pytest.mark.parametrize(
    "path", [pytest.param(path, marks=MARKS.get(path.stem, ()), id=path.stem) for path in EXAMPLES]
)
def test_example(path, capsys):
    pytest.importorskip(NEEDS.get(path.stem, "numpy"))
    result = runpy.run_path(str(path))["main"]()
    assert result.proven.all() if isinstance(result, pf.LinkClusters) else result.converged
    assert capsys.readouterr().out
