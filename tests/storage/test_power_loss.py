"""A power cut at any file operation loses nothing that was committed, and what goes on ends with the same bits."""

import os
import tempfile
from pathlib import Path

import pytest

from ooc_pf.storage import files
from ooc_pf.storage import workspace as ws

TOOLS = Path(__file__).parents[2] / "tools"
FAMILIES = ("nearness", "clustering", "complete", "linear", "table", "rows", "sets")
EVERYWHERE = (
    *FAMILIES, "external", "linear-external", "clustering-external", "complete-linear", "warm", "svm", "svm-npy",
    "svm-parquet", "itml", "itml-projections", "transport", "transport-exact",
)  # fmt: skip
pytestmark = pytest.mark.faults


@pytest.fixture
def powerloss(monkeypatch):
    monkeypatch.syspath_prepend(TOOLS)
    import powerloss

    return powerloss


@pytest.fixture
def fast_folder(tmp_path):
    """In memory where there is such a place: what is simulated needs no real disk."""
    shared = Path("/dev/shm")
    if not (shared.is_dir() and os.access(shared, os.W_OK)):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=shared) as folder:
        yield Path(folder)


@pytest.mark.parametrize("name", FAMILIES)
def test_cuts_here_and_there(powerloss, fast_folder, name):
    facts = powerloss.walk(powerloss.CASES[name], fast_folder, most=20, depth=99)
    assert facts["operations"] > 300 and facts["disks"] >= 10


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERYWHERE)
def test_cuts_everywhere(powerloss, fast_folder, name):
    facts = powerloss.walk(powerloss.CASES[name], fast_folder)
    assert facts["points"] == facts["operations"]


def nothing(*_):
    """A sync that does not happen."""


def written_in_place(path, text):
    with open(path, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def no_sync_of_names(directory):
    """As flush, but for the name of what is flushed."""
    for folder, _, names in os.walk(directory):
        for name in [*names, "."]:
            files._sync(os.path.join(folder, name))


FORGOTTEN = {
    "names of directories": [(files, "flush_directory", nothing), (ws, "flush_directory", nothing)],
    "the name of a workspace": [(ws, "flush_directory", nothing)],
    "the name of a generation": [(ws, "flush", no_sync_of_names)],
    "generations": [(ws, "flush", nothing)],
    "all files": [(files, "_sync", nothing), (os, "fsync", nothing)],
    "the exchange of the manifest": [(ws, "replace_file", written_in_place)],
}


@pytest.mark.parametrize("what", FORGOTTEN)
def test_a_sync_that_is_forgotten_is_found(powerloss, fast_folder, monkeypatch, what):
    """The campaign itself is put to the test: it must not pass without what it is there for."""
    case = powerloss.CASES["table"]
    real = powerloss.Walk.record

    def record(case, folder, depth):
        with monkeypatch.context() as patch:
            for owner, name, function in FORGOTTEN[what]:
                patch.setattr(owner, name, function)
            return real(case, folder, depth)

    monkeypatch.setattr(powerloss.Walk, "record", record)
    with pytest.raises(AssertionError, match="power cut at"):
        powerloss.walk(case, fast_folder, states=("all",) if "exchange" in what else ("synced", "names"))
