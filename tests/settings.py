"""Tuning numbers of the package, set so that small problems meet what large ones do: one place to change if they move.

Tests ask for the fixture ``settings``; where a change ends before the test does, or there is no test, they use
`changed_settings`. How memory is shared out needs no change: ``memory=`` may be a `Budget` that is shared out already.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module

import pytest

from ooc_pf.cycles import settings as cycles


class Settings:
    """Named changes, undone by the ``MonkeyPatch`` they are made with."""

    def __init__(self, patch: pytest.MonkeyPatch):
        self._patch = patch

    def _set(self, module, **values):
        for name, value in values.items():
            self._patch.setattr(import_module(f"ooc_pf.{module}"), name, value)

    def small_blocks(self, rows=16, entries=None, page=None):
        """Few rows a block of the store; ``page`` entries of a vector that only one block at a time may touch."""
        self._set("engine.store", BLOCK_ROWS=rows)
        if entries is not None:
            self._set("engine.store", BLOCK_ENTRIES=entries)
        if page is not None:
            self._set("engine.store", PAGE=page)

    def small_tiles(self, side=8):
        """Few lines a tile of a table, and workers for every round of tiles."""
        self._set("triangles.settings", SIDES=(), LARGEST_SIDE=side, FEW_ROWS=0)

    def small_scans(self, entries=700, found=50, tasks=3):
        """Tables of rows are looked at in many pieces, and few rows are taken up at once."""
        self._set("oracles", TABLE_ENTRIES=entries)
        self._set("general.settings", FOUND_ROWS=found, SCAN_TASKS=tasks)

    def small_levels(self, few=0, bucket=40, block=30):
        """Clusters on disk are searched in passes over more arcs than ``few``, sorted and read in small parts."""
        self._set("problems.streaming", FEW_ARCS=few, BUCKET_ARCS=bucket, BLOCK_ARCS=block)

    def few_rows_a_pass(self, most):
        """A clustering by the linear program takes up so many rows at a time."""
        self._set("cycles.settings", LINEAR=replace(cycles.LINEAR, most_rows=most))

    def clusters_often(self):
        """Clusters are made in nearly every iteration at first."""
        self._set("cycles.settings", ROUND_LATER=1)

    def small_searches(self, sources=8):
        """Few sources a block of a search."""
        self._set("cycles.settings", BLOCK_SOURCES=sources)

    def small_tiles_of_pairs(self):
        """A small sample of pairs, and small tiles of them."""
        self._set("itml.settings", TILE=16, SAMPLE=400)

    def one_complete_search(self):
        """A clustering begins with a complete search in one block, so that only the kernel itself can stop it."""
        self._set("cycles.settings", BLOCK_SOURCES=1 << 20, FAR_SHARE=0)
        stages = (cycles.QUICK, cycles.Stage(cycles.STREAM, hops=0, waves=4, rounds=2, pays=0.0))
        most = {"most_blocks": 1 << 20, "most_rows": 1 << 20}
        self._set("cycles.settings", CLUSTERING=cycles.Settings(stages, keep_paths=1, promise=3.0, **most))

    def searches_on_disk(self):
        """Clustering laid out for disk searches from every source, as where a contracted graph does not help."""
        for name in ("CLUSTERING_ON_DISK", "LINEAR_ON_DISK"):
            stages = cycles.QUICK, cycles.REVISITS
            self._set("cycles.settings", **{name: replace(getattr(cycles, name), stages=stages, shrink=None)})

    def surveys_on_disk(self):
        """The linear program laid out for disk begins with complete passes by way of the contracted graph."""
        stages = cycles.QUICK, cycles.REVISITS
        self._set("cycles.settings", LINEAR_ON_DISK=replace(cycles.LINEAR_ON_DISK, stages=stages, shrink=1))

    def every_commit_at_once(self):
        """What is lost when a run is stopped does then not depend on the clock."""
        self._set("engine.place", WORTH=0.0)

    def few_rows_at_once(self, most):
        """A pass over cycles of a signed graph takes up so many rows at most, and looks at few pairs at a time."""
        self._set("cycles.settings", BATCH_PAIRS=1)
        for name in ("CLUSTERING", "CLUSTERING_ON_DISK", "COMPLETE", "LINEAR", "LINEAR_ON_DISK", "LINEAR_COMPLETE"):
            self._set("cycles.settings", **{name: replace(getattr(cycles, name), most_rows=most)})

    def small_reads(self, block=None, batch=None, most=None):
        """Edge lists are read in blocks of so many bytes, merged in batches of rows, and hold no more than ``most``."""
        if block is not None:
            self._set("edgelist.convert", BLOCK_BYTES=block)
        if batch is not None:
            self._set("edgelist.merge", BATCH_ROWS=batch)
        if most is not None:
            self._set("edgelist.merge", MAX_COUNT=most)

    def small_exports(self, rows):
        """So many rows a part under the least budget, instead of the usual many."""
        module = import_module("ooc_pf.commands.export")
        self._set("commands.export", PER_ROW=module.PER_ROW * module.LEAST_BATCH // rows, LEAST_BATCH=rows)

    def short_parts(self, rows, text):
        """So many rows, and bytes of labels, a part of an export without a budget."""
        self._set("commands.export", BATCH=rows, TEXT=text)

    def impatient(self):
        """A scheduler that does not answer within a second is given up."""
        self._set("engine.parallel", CONNECT_SECONDS=1)


@contextlib.contextmanager
def changed_settings() -> Iterator[Settings]:
    """Settings that last as long as the block."""
    with pytest.MonkeyPatch.context() as patch:
        yield Settings(patch)
