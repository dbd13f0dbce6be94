"""Races: each commit is won by one writer, none is lost, and the store verifies every time.

The client is the real one. The server is a stand-in on loopback that is slow, loses answers and answers late.
"""

import os
import random
import subprocess
import sys
import threading

import pytest

import ooc_pf as pf
from ooc_pf.storage.workspace import Workspace
from tests.properties import assert_same_bits
from tests.storage.s3_server import Faults
from tests.storage.writers import ROUGH, URL, assert_only_named, assert_whole, commit, race

pytest.importorskip("obstore")

pytestmark = pytest.mark.server


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_one_of_two_writers_wins_each_commit(s3, begun, seed):
    rounds, wins = 200 if seed else 20, []
    s3.faults = Faults(**ROUGH, seed=seed)
    for _ in range(rounds):
        wins.append(race(begun))
        assert_whole(URL, wins[-1])
    print(f"{rounds} races: anne won {wins.count('anne')}, bert {wins.count('bert')}; faults {s3.faults.seen}")
    s3.faults = Faults()
    with begun[0].locked():
        commit(begun[0], "anne")
    assert_only_named(s3)


@pytest.mark.parametrize("goal", [30, pytest.param(300, marks=pytest.mark.slow)])
def test_no_commit_of_three_writers_is_lost(s3, begun, at, goal):
    """Each goes on from the other's commits as it can. All that were said to be done are in the history, once."""
    at("carl")
    places = [*begun, Workspace(URL)]
    at("reader")
    s3.faults = Faults(**ROUGH, seed=goal)
    won, busy, failed = [], [], []

    def run(who, place):
        dice = random.Random(who)
        try:
            while len(won) < goal and not failed:
                name = f"{who}{len(won)}-{len(busy)}"
                try:
                    with place.locked():
                        for again in range(dice.randint(1, 3)):
                            name = f"{who}{len(won)}-{len(busy)}-{again}"
                            commit(place, name, feasible=dice.random() < 0.3)
                            won.append(name)
                except pf.WorkspaceBusyError:
                    busy.append(name)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=both) for both in zip("abc", places, strict=True)]
    for thread in threads:
        thread.start()
    looked = 0
    while any(thread.is_alive() for thread in threads):
        assert pf.verify(URL, oracle="numba")["rows"] > 0
        looked += 1
    assert not failed
    done = [line["writer"] for line in Workspace(URL).history() if "writer" in line]
    assert sorted(done) == sorted(won) and not set(busy) & set(done)
    assert_whole(URL, done[-1])
    print(f"{len(won)} commits, {len(busy)} refused, {looked} times verified; faults {s3.faults.seen}")


@pytest.mark.slow
def test_processes_race_with_whole_solves(s3, begun, small, at, tmp_path):
    """Two machines resume the same run at once, again and again, until it is done; the bits are those of one."""
    code = (
        "import sys, ooc_pf as pf\n"
        "try:\n"
        "    print('done' if pf.resume(sys.argv[1], max_iter=1).converged else 'won')\n"
        "except pf.WorkspaceBusyError:\n"
        "    print('busy')\n"
    )
    s3.faults = Faults(**ROUGH)
    said = set()
    for _ in range(40):
        both = [
            subprocess.Popen(
                [sys.executable, "-c", code, URL],
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "OOC_PF_CACHE": str(tmp_path / name)},
            )
            for name in ("anne", "bert")
        ]
        words = [process.communicate()[0].strip() for process in both]
        assert set(words) & {"won", "done"} and set(words) <= {"won", "busy", "done"}, words
        said |= set(words)
        assert pf.verify(URL, oracle="numba")["rows"] > 0
        if words == ["done", "done"]:
            break
    assert_same_bits(pf.metric_nearness(small, tol=1e-5), pf.open(URL))
    assert "busy" in said
