"""The examples run, and end as they say."""

import runpy
from pathlib import Path

import pytest

import ooc_pf as pf

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, capsys):
    result = runpy.run_path(str(path))["main"]()
    assert result.proven.all() if isinstance(result, pf.LinkClusters) else result.converged
    assert capsys.readouterr().out
