"""The store of rows: what is appended stays until its dual is zero, wherever it is kept."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ooc_pf import constraints
from ooc_pf.arrays import read_array, write_array
from ooc_pf.constraints import ConstraintStore, Rows
from ooc_pf.errors import WorkspaceError
from ooc_pf.pages import Pool


def ragged(rows):
    return Rows(np.cumsum([0, *map(len, rows)], dtype=np.int64), np.concatenate(rows).astype(np.int32))


def listed(store):
    """Rows and duals as plain tuples, in order."""
    found = []
    for block in store.blocks():
        rows = block.rows
        for i, z in enumerate(block.dual):
            found.append((tuple(rows.edges[rows.start[i] : rows.start[i + 1]].tolist()), float(z)))
    return found


@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=30, deadline=None)
def test_store_behaves_like_a_list(seed, tight):
    """Random appends, dual changes and forgets against a plain list, with small blocks, resident or not."""
    import tempfile
    from pathlib import Path

    rng = np.random.default_rng(seed)
    before, constraints.BLOCK_ROWS = constraints.BLOCK_ROWS, 5
    try:
        with tempfile.TemporaryDirectory() as folder:
            store = ConstraintStore(400 if tight else None, Pool(None, Path(folder)))
            twin: list[tuple[tuple[int, ...], float]] = []
            for _ in range(4):
                rows = [rng.permutation(12)[: rng.integers(3, 6)] for _ in range(rng.integers(1, 12))]
                keys = {(row[0], frozenset(row[1:])) for row, _ in twin}
                for row in rows:
                    key = (row[0], frozenset(row[1:].tolist()))
                    if key not in keys:
                        keys.add(key)
                        twin.append((tuple(row.tolist()), 0.0))
                store.append(ragged(rows))
                assert listed(store) == twin
                fresh = np.where(rng.random(len(twin)) < 0.5, 0.0, rng.random(len(twin)))
                at = 0
                for block in store.blocks():
                    block.dual[:] = fresh[at : at + len(block.dual)]
                    at += len(block.dual)
                twin = [(row, float(z)) for (row, _), z in zip(twin, fresh, strict=True)]
                assert listed(store) == twin
                assert store.forget() == sum(z == 0 for _, z in twin)
                twin = [(row, z) for row, z in twin if z > 0]
                assert listed(store) == twin and len(store) == len(twin)
            store.write(Path(folder) / "rows")
            assert listed(ConstraintStore().read(Path(folder) / "rows", 12)) == twin
    finally:
        constraints.BLOCK_ROWS = before


def test_impossible_rows_are_refused(tmp_path):
    store = ConstraintStore()
    store.append(ragged([np.array([0, 1, 2]), np.array([3, 4, 5])]))
    store.write(tmp_path / "rows")
    with pytest.raises(WorkspaceError, match="stored rows are damaged"):
        ConstraintStore().read(tmp_path / "rows", 5)  # edge 5 does not exist
    wrong = read_array(tmp_path / "rows", "dual") - 1.0
    import shutil

    shutil.rmtree(tmp_path / "rows" / "dual")
    write_array(tmp_path / "rows", "dual", wrong)
    with pytest.raises(WorkspaceError, match="stored rows are damaged"):
        ConstraintStore().read(tmp_path / "rows", 6)
