"""The examples run, and end as they say."""

import runpy
import tempfile
from pathlib import Path

import pytest

import ooc_pf as pf

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


NEEDS = {"superpixels": "skimage", "cluster": "distributed"}
PICTURES = {
    "colour_transfer": {"evening.png", "meadow.png", "evening-in-the-colours-of-meadow.png"},
    "metric_learning": {"metric_learning.png"},
    "svm": {"svm.png"},
}
MARKS = {"cluster": pytest.mark.server, "restart": pytest.mark.faults}


@pytest.mark.parametrize(
    "path", [pytest.param(path, marks=MARKS.get(path.stem, ()), id=path.stem) for path in EXAMPLES]
)
def test_example(path, capsys, tmp_path, monkeypatch):
    pytest.importorskip(NEEDS.get(path.stem, "numpy"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    result = runpy.run_path(str(path))["main"]()
    assert result.proven.all() if isinstance(result, pf.LinkClusters) else result.converged
    assert capsys.readouterr().out
    if path.stem in PICTURES:
        pytest.importorskip("matplotlib")
        pictures = {file.name: file.read_bytes() for file in tmp_path.glob("*.png")}
        assert pictures.keys() == PICTURES[path.stem]
        assert all(bits.startswith(b"\x89PNG") and len(bits) > 1000 for bits in pictures.values())
