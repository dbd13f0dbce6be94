"""Two writers on one store, one step at a time: lost answers, late puts, deletions, deaths, and readers beside them."""

import os
import threading
import warnings

import pytest

import ooc_pf as pf
from ooc_pf.storage import clients, objectstore
from ooc_pf.storage.clients import ObstoreClient, connect
from ooc_pf.storage.manifest import MANIFEST
from ooc_pf.storage.objectstore import Mirror
from ooc_pf.storage.workspace import Workspace
from tests.properties import assert_same_bits
from tests.storage.s3_server import Faults
from tests.storage.writers import URL, assert_only_named, assert_whole, commit, writers

pytest.importorskip("obstore")

pytestmark = pytest.mark.server


class Died(BaseException):
    """What stands in for a kill."""


def test_one_of_two_makers_of_a_workspace_wins(s3, at, tmp_path):
    (tmp_path / "edges.txt").write_text("a b 1\nb c 1\na c 5\n")
    inner, halted = Mirror.push, threading.Event()

    def push(self):
        if not halted.is_set():
            halted.set()
            at("bert")
            pf.convert(tmp_path / "edges.txt", URL)
        inner(self)

    at("anne")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Mirror, "push", push)
        with pytest.raises(pf.WorkspaceBusyError, match="changed by another process"):
            pf.convert(tmp_path / "edges.txt", URL)
    for machine in ("anne", "bert", "reader"):
        at(machine)
        assert pf.metric_nearness(URL, max_iter=1).n_iter >= 1
    assert_only_named(s3)


def between(patch, place, before=None, after=None):
    """Let something happen just before or just after a writer puts its manifest."""
    swap = Mirror._swap

    def slow(self, *args):
        if self is place._mirror and before:
            before()
        winner = swap(self, *args)
        if self is place._mirror and after:
            after()
        return winner

    patch.setattr(Mirror, "_swap", slow)


def test_the_loser_takes_back_what_it_sent(s3, begun, monkeypatch):
    anne, bert = begun
    clean, winner = Mirror._clean, {}

    def win():
        commit(anne, "anne")
        winner.update(s3.objects)

    with anne.locked(), bert.locked(), monkeypatch.context() as patch:
        patch.setattr(Mirror, "_clean", lambda self, names: None if self is anne._mirror else clean(self, names))
        between(patch, bert, before=win)
        with pytest.raises(pf.WorkspaceBusyError, match="wait for it, then start again"):
            commit(bert, "bert")
    sent = winner.keys() - s3.objects.keys()
    assert {key.split("/", 3)[3] for _, key in sent} >= {"history.jsonl", "probe", "gen/000004.zarr/writer"}
    assert len({key.split("/")[2] for _, key in sent}) == 1 and s3.objects.items() <= winner.items()
    assert_whole(URL, "anne")
    with bert.locked():
        commit(bert, "bert")
    assert_whole(URL, "bert")
    assert_only_named(s3)


@pytest.mark.parametrize("answers", [["lose"], ["deny"], ["late"], ["refuse", "lose"], ["conflict"], ["late", "lose"]])
def test_a_put_whose_answer_is_lost_is_not_a_lost_race(s3, begun, answers):
    s3.faults = Faults(script=answers)
    with begun[0].locked():
        commit(begun[0], "anne")
        commit(begun[0], "anne")
    assert not s3.faults.script
    assert_whole(URL, "anne")


def test_a_put_that_nobody_answers(s3, at, small, monkeypatch):
    """The client gives up waiting; the manifest on the store tells that the put happened."""
    patient = {"client_options": {"allow_http": True, "timeout": "300ms"}}
    monkeypatch.setattr(clients, "_s3_options", lambda url: patient)
    at("first")
    pf.metric_nearness(small, tol=1e-5, workspace=URL, max_iter=2)
    (anne, _), s3.faults = writers(at, URL), Faults(script=["hang"])
    with anne.locked():
        commit(anne, "anne")
    assert not s3.faults.script
    assert_whole(URL, "anne")


@pytest.mark.parametrize("feasible", [False, True])
def test_a_put_without_an_answer_upon_which_another_builds(s3, begun, monkeypatch, feasible):
    """Bert goes on from Anne's commit before she knows of it: it counts, and her files that his names stay."""
    anne, bert = begun
    put = ObstoreClient.put_if

    def lose(self, name, *rest):
        put(self, name, *rest)
        if self is anne._mirror._client and name == MANIFEST:
            with bert.locked():
                commit(bert, "bert")
            raise OSError("timed out")

    with anne.locked():
        with monkeypatch.context() as patch:
            patch.setattr(ObstoreClient, "put_if", lose)
            commit(anne, "anne", feasible)
        with pytest.raises(pf.WorkspaceBusyError):
            commit(anne, "anne")
    assert_whole(URL, "bert")
    assert [line.get("writer") for line in Workspace(URL).history()][-2:] == ["anne", "bert"]
    assert_only_named(s3)


def test_a_put_that_does_not_happen_is_tried_again(s3, begun, monkeypatch):
    put, left = ObstoreClient.put_if, [OSError("timed out"), OSError("timed out")]

    def fail(self, name, *rest):
        if name == MANIFEST and left:
            raise left.pop()
        put(self, name, *rest)

    monkeypatch.setattr(ObstoreClient, "put_if", fail)
    with begun[0].locked():
        commit(begun[0], "anne")
    assert_whole(URL, "anne")


def test_a_put_that_arrives_after_it_was_given_up(s3, begun, monkeypatch, small, at):
    """The writer cannot know; what it sent stays, and the next call finds out."""
    monkeypatch.setattr(objectstore, "WAITS", (0.0,))
    put, late = ObstoreClient.put_if, []

    def lose(self, name, *rest):
        if name != MANIFEST:
            return put(self, name, *rest)
        late.append((self, name, *rest))
        raise OSError("timed out")

    with monkeypatch.context() as patch:
        patch.setattr(ObstoreClient, "put_if", lose)
        with begun[0].locked(), pytest.raises(OSError, match=r"not known.*timed out.*the next call finds out"):
            commit(begun[0], "anne")
    put(*late[0])
    assert_whole(URL, "anne")
    with begun[0].locked():
        commit(begun[0], "anne")
    assert_only_named(s3)


def test_a_slow_deletion_spares_a_writer_that_came_after(s3, begun, monkeypatch):
    """Anne deletes late: Bert has built on her commit, twice, and sends a third time."""
    anne, bert = begun
    running = f"commits/{'f' * 32}/file"

    def go_on():
        with bert.locked():
            commit(bert, "bert")
            commit(bert, "bert")
        connect(URL).send(running, bert.path / MANIFEST)

    with monkeypatch.context() as patch, anne.locked():
        between(patch, anne, after=go_on)
        commit(anne, "anne")
    assert f"run.pf/{running}" in s3.names()
    assert_whole(URL, "bert")
    with bert.locked():
        commit(bert, "bert")
    assert_only_named(s3)


@pytest.mark.faults
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["some", "every"])
def test_a_writer_that_dies_at_any_request_leaves_a_whole_store(s3, begun, monkeypatch, every, after):
    """The next commit of another one deletes what the dead one left."""
    anne, bert = begun
    for place, who in ((anne, "anne"), (bert, "bert")):
        with place.locked():
            commit(place, who)
    monkeypatch.setattr(objectstore, "THREADS", 1)
    with monkeypatch.context() as patch, anne.locked():
        left = count_down(patch, after)
        left.append(1000)
        commit(anne, "anne")
        requests = 1000 - left[0]
    ends = set()
    for step in range(requests) if every else [0, 1, 2, 3, *range(requests - 4, requests)]:
        with bert.locked():
            commit(bert, "bert")
        assert_only_named(s3)
        with monkeypatch.context() as patch, anne.locked():
            left = count_down(patch, after)
            left.append(step)
            with pytest.raises(Died):
                commit(anne, "anne")
        ends.add(Workspace(URL).manifest["writer"])
        assert_whole(URL, Workspace(URL).manifest["writer"])
    assert ends == {"anne", "bert"} and requests > 15


def count_down(patch, after):
    """Let the process die at a request, before or after it is served; its number is put into the list returned."""
    left = []

    def dying(inner):
        def call(self, *args):
            die = bool(left) and left[0] == 0
            if left:
                left[0] -= 1
            if die and not after:
                raise Died
            answer = inner(self, *args)
            if die:
                raise Died
            return answer

        return call

    for verb in ("read", "send", "put_if", "sizes", "delete"):
        patch.setattr(ObstoreClient, verb, dying(getattr(ObstoreClient, verb)))
    return left


def test_a_reader_beside_a_writer_costs_no_commit(s3, begun, at):
    """A third process on the writer's machine must not bring in another's commit for it to overwrite."""
    anne, bert = begun
    with anne.locked():
        with bert.locked():
            commit(bert, "bert")
        at("anne")
        assert "writer" not in Workspace(URL).manifest  # what the machine's own writer works on
        with pytest.raises(pf.WorkspaceBusyError):
            commit(anne, "anne")
    assert Workspace(URL).manifest["writer"] == "bert"
    at("reader")
    assert_whole(URL, "bert")


def test_a_reader_whose_files_are_deleted_reads_again(s3, begun, at, monkeypatch):
    fetch, halted = Mirror._fetch, threading.Event()

    def meanwhile(self, *args):
        if not halted.is_set():
            halted.set()
            with begun[0].locked():
                commit(begun[0], "anne")
        fetch(self, *args)

    monkeypatch.setattr(objectstore, "THREADS", 1)
    monkeypatch.setattr(Mirror, "_fetch", meanwhile)
    assert_whole(URL, "anne")


def test_a_store_that_ignores_conditions_is_named(begun, s3, monkeypatch):
    monkeypatch.setattr(clients, "_warned", set())
    s3.conditions = False
    with begun[0].locked(), pytest.warns(UserWarning, match=r"If-Match.*not kept apart"):
        commit(begun[0], "anne")
    with begun[1].locked(), warnings.catch_warnings():
        warnings.simplefilter("error")
        commit(begun[1], "bert")
    assert_whole(URL, "bert")
    assert_only_named(s3)


def test_a_store_without_conditions_can_be_said_to_be_one(s3, at, small, monkeypatch):
    """For stores that refuse puts with conditions: the setting of the client."""
    monkeypatch.setattr(clients, "_warned", set())
    monkeypatch.setenv("AWS_CONDITIONAL_PUT", "disabled")
    at("here")
    with pytest.warns(UserWarning, match=r"If-Match.*not kept apart"):
        pf.metric_nearness(small, tol=1e-5, workspace=URL, max_iter=2)
    at("there")
    assert_same_bits(pf.metric_nearness(small, tol=1e-5), pf.resume(URL))


def test_addresses_that_fsspec_serves_are_named(small, at, monkeypatch):
    monkeypatch.setattr(clients, "_warned", set())
    url = f"memory://{os.urandom(4).hex()}/run.pf"
    at("here")
    with pytest.warns(UserWarning, match=r"fsspec.*not kept apart") as seen:
        pf.metric_nearness(small, tol=1e-5, workspace=url, max_iter=2)
    assert len(seen) == 1
    at("there")
    assert_same_bits(pf.metric_nearness(small, tol=1e-5), pf.resume(url))
    anne, bert = writers(at, url)
    with anne.locked(), bert.locked():
        commit(anne, "anne")
        with pytest.raises(pf.WorkspaceBusyError):
            commit(bert, "bert")
    assert_whole(url, "anne")
