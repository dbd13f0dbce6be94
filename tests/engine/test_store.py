"""The store of rows: what is appended stays until its dual is zero, wherever it is kept."""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ooc_pf.engine import store as constraints
from ooc_pf.engine.rows import Rows
from ooc_pf.engine.store import ConstraintStore
from ooc_pf.errors import WorkspaceError
from ooc_pf.storage.arrays import read_array, write_array
from ooc_pf.storage.vectors import Pool
from tests.settings import changed_settings


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
    rng = np.random.default_rng(seed)
    with changed_settings() as settings, tempfile.TemporaryDirectory() as folder:
        settings.small_blocks(5)
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


def test_impossible_rows_are_refused(tmp_path):
    store = ConstraintStore()
    store.append(ragged([np.array([0, 1, 2]), np.array([3, 4, 5])]))
    store.write(tmp_path / "rows")
    with pytest.raises(WorkspaceError, match="stored rows are damaged"):
        ConstraintStore().read(tmp_path / "rows", 5)  # edge 5 does not exist
    wrong = read_array(tmp_path / "rows", "dual") - 1.0
    shutil.rmtree(tmp_path / "rows" / "dual")
    write_array(tmp_path / "rows", "dual", wrong)
    with pytest.raises(WorkspaceError, match="stored rows are damaged"):
        ConstraintStore().read(tmp_path / "rows", 6)


def general(rng, rows):
    """Random general rows over 12 variables, with numbers as keys."""
    length = rng.integers(1, 5, rows)
    start = np.concatenate(([0], np.cumsum(length)))
    index = np.concatenate([rng.permutation(12)[:k] for k in length]).astype(np.int32)
    key = rng.permutation(30)[:rows].astype(np.uint64)
    return Rows(start, index, rng.normal(size=len(index)), rng.normal(size=rows), rng.random(rows) < 0.3, key)


@pytest.mark.parametrize("forgets", ["inactive", "all", "never"])
def test_general_rows_come_back_as_they_were(forgets, tmp_path, settings, rng):
    """What is forgotten and kept, against a dictionary by key; on disk, in scratch and in memory."""
    settings.small_blocks(4, entries=9)
    for memory in (None, 2500):
        store = ConstraintStore(memory, Pool(None, tmp_path / "scratch"), forgets=forgets)
        duals: dict[int, float] = {}
        for step in range(4):
            rows = general(rng, 9)
            store.append(rows)
            duals = {int(k): duals.get(int(k), 0.0) for k in [*duals, *rows.key]}
            at_hand = set()
            for block in store.blocks():
                assert {int(k): z for k, z in zip(block.key, block.dual)}.items() <= duals.items()
                at_hand |= set(block.key[np.diff(block.start) > 0].tolist())
                block.dual[:] = np.where(rng.random(len(block.dual)) < 0.4, 0.0, rng.random(len(block.dual)))
                duals |= {int(k): float(z) for k, z in zip(block.key, block.dual)}
            assert at_hand == (set(rows.key.tolist()) if forgets == "all" else set(duals))
            store.forget()
            if forgets != "never":
                duals = {k: z for k, z in duals.items() if z}
            assert sorted(store.keys().tolist()) == sorted(duals)
            group = tmp_path / f"{memory}-{step}"
            store.write(group)
            again = ConstraintStore(forgets=forgets).read(group, 12)
            assert {int(k): z for b in again.blocks() for k, z in zip(b.key, b.dual)} == duals
            if forgets == "all":
                assert sum(len(block.index) for block in again.blocks()) == 0


def test_content_identifies_rows_without_a_number(rng):
    rows = general(rng, 9)
    plain = Rows(rows.start, rows.edges, rows.coefficient, rows.rhs, rows.equality)
    order = np.concatenate([rng.permutation(np.arange(a, b)) for a, b in zip(rows.start[:-1], rows.start[1:])])
    turned = Rows(rows.start, rows.edges[order], rows.coefficient[order], rows.rhs, rows.equality)
    assert np.array_equal(plain.keys(), turned.keys())
    assert len(np.unique(plain.keys())) == 9
    for change in ({"rhs": rows.rhs + 1}, {"equality": ~rows.equality}, {"coefficient": rows.coefficient * 2}):
        assert not np.isin(replace(plain, **change).keys(), plain.keys()).any()


def test_blocks_of_one_layer_share_no_page(rng):
    pages = [np.unique(rng.integers(0, 12, rng.integers(1, 5))) for _ in range(40)]
    layers = constraints._disjoint_groups(pages)
    assert sorted(number for layer in layers for number in layer) == list(range(40))
    for at, layer in enumerate(layers):
        own = np.concatenate([pages[number] for number in layer])
        assert len(np.unique(own)) == len(own)
        for number in layer:  # no earlier layer had room
            for earlier in layers[:at]:
                before = [pages[other] for other in earlier if other < number]
                assert np.isin(pages[number], np.concatenate(before)).any()
