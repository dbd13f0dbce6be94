"""Settings that a run was begun with, as its manifest keeps them."""

from dataclasses import replace

import pytest

from ooc_pf.cycles.settings import CLUSTERING, CLUSTERING_ON_DISK, LINEAR, LINEAR_ON_DISK, NEARNESS, Settings
from ooc_pf.errors import WorkspaceError


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
