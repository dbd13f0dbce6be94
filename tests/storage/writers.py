"""Writers of one workspace on a store, each with working copies of its own, and what holds of the store after them."""

import json
import shutil
import threading

import ooc_pf as pf
from ooc_pf.storage.manifest import MANIFEST
from ooc_pf.storage.workspace import Workspace

ACCESS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
URL = "s3://bucket/run.pf"
ROUGH = {"refuse": 0.08, "deny": 0.08, "lose": 0.1, "late": 0.1, "conflict": 0.05, "delay": 0.003, "calm": 0.05}


def writers(at, url):
    made = []
    for name in ("anne", "bert"):
        at(name)
        made.append(Workspace(url))
    at("reader")
    return made


def commit(place, who, feasible=False):
    """A commit of the same state again, with the writer's name in the manifest, the history and the generation."""

    def copy(group):
        def write(folder):
            shutil.copytree(group, folder, dirs_exist_ok=True)
            (folder / "writer").write_text(who)

        return write

    iteration = place.manifest["iteration"] + 1
    record = {**place.history()[-1], "iteration": iteration, "writer": who}
    more = {"write_feasible": copy(place.feasible)} if feasible else {}
    place.commit([record], write_generation=copy(place.generation), iteration=iteration, writer=who, **more)


def assert_whole(url, who):
    """The store verifies, and every part of it is of one writer."""
    assert pf.verify(url, oracle="numba")["rows"] > 0
    place = Workspace(url)
    assert place.manifest["writer"] == who == place.history()[-1]["writer"] == (place.generation / "writer").read_text()


def race(places, names=("anne", "bert")):
    """Both read the same state, then both commit; who won and who was told that another did."""
    start, ends = threading.Barrier(2), {}

    def run(place, who):
        try:
            with place.locked():
                start.wait()
                commit(place, who)
            ends[who] = "won"
        except pf.WorkspaceBusyError:
            ends[who] = "busy"
        except BaseException as error:
            start.abort()
            ends[who] = error

    threads = [threading.Thread(target=run, args=both) for both in zip(places, names, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, ends.values())) == ["busy", "won"], ends
    return next(who for who in ends if ends[who] == "won")


def assert_only_named(server):
    """Nothing is on the store that its manifest does not name."""
    files = json.loads(server.objects["bucket", f"run.pf/{MANIFEST}"])["files"]
    named = {f"run.pf/{folder}/{name}" for folder in files for name in files[folder]}
    assert set(server.names()) == named | {f"run.pf/{MANIFEST}"}
