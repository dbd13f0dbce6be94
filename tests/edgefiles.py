"""Edge list files for the tests of the converter."""

import gzip
import json

import numpy as np
import pytest

from ooc_pf.edgelist.convert import convert
from ooc_pf.errors import InputError
from ooc_pf.storage.arrays import read_array, read_labels

GOOD = "# head\n1 2 0.5\n\n2 3 1.5\n"


def write(path, content):
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def edges_of(workspace):
    """The edges of a workspace as {(label, label): value}, after checking the promises of the layout."""
    group = workspace / "edges.zarr"
    u, v, value = (read_array(group, name) for name in ("u", "v", "value"))
    labels = read_labels(group).tolist()
    assert (u.dtype, v.dtype, value.dtype) == (np.int32, np.int32, np.float64)
    assert (u < v).all()
    assert labels == sorted(set(labels))
    pairs = list(zip(u.tolist(), v.tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    graph = json.loads((workspace / "manifest.json").read_text())["graph"]
    assert (graph["nodes"], graph["edges"]) == (len(labels), len(u))
    return {(labels[a], labels[b]): x for (a, b), x in zip(pairs, value.tolist(), strict=True)}


def read(tmp_path, content, name="links.txt", **options):
    """Convert ``content`` and return (edges, report)."""
    workspace = tmp_path / f"{len(list(tmp_path.iterdir()))}.pf"
    report = convert(write(tmp_path / name, content), workspace, **options)
    assert sorted(entry.name for entry in workspace.iterdir()) == ["edges.zarr", "lock", "manifest.json"]
    return edges_of(workspace), report


def refused(tmp_path, content, *parts, name="links.txt", **options):
    """Check that ``content`` is refused with a message that has all ``parts``, and that nothing is left behind."""
    source = tmp_path / name
    if content is not None:
        write(source, content)
    before = set(tmp_path.iterdir())
    with pytest.raises(InputError) as caught:
        convert(source, tmp_path / "out.pf", **options)
    assert set(tmp_path.iterdir()) == before
    for part in (name, *parts):
        assert part in str(caught.value)
