"""Settings that a run was begun with, as its manifest keeps them."""

from dataclasses import replace

import pytest

from ooc_pf.cycles import settings as numbers
from ooc_pf.cycles.budget import fit_to_disk
from ooc_pf.cycles.settings import CLUSTERING, CLUSTERING_ON_DISK, LINEAR, LINEAR_ON_DISK, NEARNESS, Settings
from ooc_pf.errors import WorkspaceError
from ooc_pf.storage.memory import Budget


@pytest.mark.parametrize("settings", [NEARNESS, CLUSTERING, CLUSTERING_ON_DISK, LINEAR, LINEAR_ON_DISK])
def test_settings_come_back_as_they_were_stored(settings):
    assert Settings.read(settings.stored()) == settings


@pytest.mark.parametrize(
    "change",
    [{"trees": None}, {"penalty": None}, {"shrink": 0}, {"stages": LINEAR.stages[:-1]}, {"most_gamma": None}],
)
def test_settings_that_a_schedule_cannot_go_by_are_refused(change):
    with pytest.raises(WorkspaceError, match="settings"):
        Settings.read(replace(LINEAR, **change).stored())
    complete_only = replace(LINEAR, stages=LINEAR.stages[-2:])
    with pytest.raises(WorkspaceError, match="settings"):
        Settings.read(replace(complete_only, **change).stored())


def test_a_best_stage_must_be_among_some_that_come_before_complete_passes():
    none_before = replace(numbers.CLUSTERING, stages=numbers.CLUSTERING.stages[-2:])
    Settings.read(replace(none_before, best_first=None).stored())
    with pytest.raises(WorkspaceError, match="settings"):
        Settings.read(none_before.stored())


def test_a_run_on_disk_is_planned_for_the_memory_it_begins_with():
    size = {"nodes": 1_000_000, "edges": 8_000_000}
    plans = [fit_to_disk(numbers.LINEAR_ON_DISK, memory, **size) for memory in ("600MB", "1GB", "8GB", None)]
    begins = [plan.stages[0].name == numbers.DISJOINT for plan in plans]
    assert begins == sorted(begins) and not begins[0] and begins[-1]
    for name in ("trees", "most_rows"):
        sizes = [getattr(plan, name) for plan in plans]
        assert sizes == sorted(sizes) and sizes[0] < sizes[-1]
    assert fit_to_disk(numbers.LINEAR_ON_DISK, Budget(slots=1), **size) == plans[-1]
