"""The workspace on disk: layout, lock, and the atomic commit.

    run.pf/
      manifest.json        what this is and which generation counts: the commit point
      history.jsonl        one line an iteration
      edges.zarr/          u, v, value, labels          written once by convert
      graph.zarr/          the split graph              written once by the first solve
      gen/000017.zarr/     y and rows                   complete before it is committed
      feasible/000012.zarr/  x, the best feasible point   likewise
      answer/000003.zarr/    what a problem makes of it   likewise, for problems that do

Every ``.zarr`` is a Zarr v3 group that any reader opens.
Nothing that a manifest refers to is ever changed in place: a new generation is written beside the old one, flushed,
and becomes the truth when the manifest is replaced. A crash therefore loses the iteration under way and nothing else.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import WorkspaceBusyError, WorkspaceError
from .arrays import digest_group, make_group, write_array, write_labels
from .files import (
    check_own,
    flush,
    flush_directory,
    gone,
    is_locked,
    local_path,
    make_directory,
    open_to_append,
    remove,
    replace_file,
    take_lock,
)
from .manifest import (
    EDGES,
    FORMAT,
    GRAPH,
    HISTORY,
    LOCK,
    MANIFEST,
    NUMBERED,
    SCRATCH,
    VERSION,
    read_history,
    read_manifest,
    sealed,
)
from .objectstore import Mirror, is_url, local_copy


@contextlib.contextmanager
def building(path: str | os.PathLike) -> Iterator[Path]:
    """Build a directory under the name ``<path>.partial``; it takes its own name when complete, or is removed.

    One that belongs on an object store is built here and then sent there.
    """
    final = local_copy(path)
    if exists(path):
        raise WorkspaceError(f"{path} already exists; choose another name or remove it first")
    if is_url(path):
        remove(final)  # a copy of what is gone
    partial = final.with_name(final.name + ".partial")
    if check_own(partial, directory=True):
        # What a killed process left may go; what a living one works on may not.
        if check_own(partial / LOCK, directory=False):
            with open_to_append(partial / LOCK) as file:
                take_lock(file, partial)
        remove(partial)
    try:
        make_directory(partial)
    except FileExistsError:
        raise WorkspaceBusyError(f"{partial} is being made by another process at this moment; wait for it") from None
    try:
        with open_to_append(partial / LOCK) as file:
            take_lock(file, partial)
            yield partial
            flush(partial)
            os.rename(partial, final)
            flush_directory(final.parent)
        if is_url(path):
            Mirror(path).push()
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


# -- the workspace --------------------------------------------------------------------------------------------------


def create_manifest(directory: Path, *, kind: str, nodes: int, edges: int, source: dict[str, Any]) -> None:
    """Make ``directory``, whose ``edges.zarr`` is complete, a workspace; ``source`` says where the edges came from."""
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "graph": {"kind": kind, "nodes": int(nodes), "edges": int(edges), "source": source},
        "problem": None,
        **dict.fromkeys(NUMBERED, 0),
        "iteration": 0,
        "status": "converted",
        "history_bytes": 0,
        "digests": {"generation": 0, "groups": {EDGES: digest_group(directory / EDGES)}},
    }
    replace_file(directory / MANIFEST, json.dumps(manifest, indent=1))


def create_workspace(
    path: str | os.PathLike,
    u: np.ndarray,
    v: np.ndarray,
    value: np.ndarray,
    labels: np.ndarray | list[str],
    *,
    kind: str,
    source: dict[str, Any],
) -> None:
    """Make a workspace from edges in memory."""
    with building(path) as directory:
        group = directory / EDGES
        write_array(group, "u", np.asarray(u, np.int32))
        write_array(group, "v", np.asarray(v, np.int32))
        write_array(group, "value", np.asarray(value, np.float64))
        write_labels(group, labels)
        create_manifest(directory, kind=kind, nodes=len(labels), edges=len(u), source=source)


def read_steadily(path: str | os.PathLike, read: Callable[["Workspace"], Any]) -> Any:
    """``read(workspace)``, again if a running solve replaced what was being read."""
    while True:
        place = Workspace(path)
        try:
            return read(place)
        except WorkspaceError:
            if Workspace(path).manifest == place.manifest:
                raise


def exists(path: str | os.PathLike) -> bool:
    """Whether there is anything under this name, here or on a store."""
    return Mirror(path).exists() if is_url(path) else os.path.lexists(local_path(path))


class Workspace:
    """One workspace: its manifest, its lock, and the commit of a new generation.

    ``path`` is its directory; of a workspace on an object store, that of the working copy. ``name`` is what the user
    calls it.
    """

    def __init__(self, path: str | os.PathLike):
        self.name = path if is_url(path) else local_path(path)
        self.path = local_copy(path)
        self._mirror = Mirror(path) if is_url(path) else None
        self._held: int | None = None  # the directory, while it is locked
        self.manifest = self._read_manifest()

    def _read_manifest(self) -> dict[str, Any]:
        if self._mirror is not None:
            self._mirror.pull()
        if not exists(self.name):
            raise WorkspaceError(f"{self.name}: no such workspace; make one with `ooc-pf convert SOURCE {self.name}`")
        return read_manifest(self.path, self.name)

    @property
    def address(self) -> str:
        """Where another process finds it."""
        return str(self.name) if self._mirror is not None else str(self.path.resolve())

    @property
    def record(self) -> Path:
        """The file that says what is here."""
        return self.path / MANIFEST

    @property
    def edges(self) -> Path:
        return self.path / EDGES

    @property
    def graph(self) -> Path:
        return self.path / GRAPH

    @property
    def scratch(self) -> Path:
        return self.path / SCRATCH

    @property
    def generation(self) -> Path:
        """The committed generation."""
        return self._committed("generation")

    @property
    def feasible(self) -> Path | None:
        """The best feasible point committed so far."""
        return self._committed("feasible") if self.manifest["feasible"] else None

    @property
    def answer(self) -> Path | None:
        """What the problem made of its point: the arrays of its own."""
        return self._committed("answer") if self.manifest["answer"] else None

    @property
    def outcome(self) -> Path:
        """The group with the x to show: the answer of a problem that makes one, else the feasible point."""
        problem = self.manifest["problem"]
        if problem is None:
            raise WorkspaceError(f"{self.name} has not been solved yet; run `ooc-pf solve {self.name}`")
        group = self.answer if problem["answers"] else self.feasible
        if group is None:
            raise WorkspaceError(
                f"{self.name}: its run has no answer yet; `ooc-pf resume {self.name}` goes on with it, and with "
                "`--max-iter 0` only makes an answer of what is there"
            )
        return group

    def _committed(self, entry: str) -> Path:
        group = self._numbered(entry, self.manifest[entry])
        check_own(group, directory=True)
        return group

    def _numbered(self, entry: str, number: int) -> Path:
        return self.path / NUMBERED[entry] / f"{number:06d}.zarr"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the workspace for writing; a second process is refused. The system drops the lock if we die."""
        with open_to_append(self.path / LOCK) as file:
            take_lock(file, self.path)
            self._held = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
            writing = self._mirror.writing() if self._mirror is not None else contextlib.nullcontext()
            try:
                with writing:
                    self.manifest = self._read_manifest()
                    yield
            finally:
                os.close(self._held)
                self._held = None

    @property
    def is_busy(self) -> bool:
        """Whether a process on this machine works on it at the moment."""
        return is_locked(self.path / LOCK)

    @property
    def is_remote(self) -> bool:
        """Whether it is on an object store, and other machines may work on it."""
        return self._mirror is not None

    def check_place(self) -> None:
        """Refuse to go on in a directory that is not the one that was locked: it was moved, removed or replaced."""
        if self._held is None:
            return
        try:
            same = os.path.samestat(os.stat(self.path), os.fstat(self._held))
        except FileNotFoundError:
            same = False
        if not same:
            raise gone(self.path)

    def commit(
        self,
        records: Sequence[dict[str, Any]] = (),
        *,
        write_generation: Callable[[Path], None] | None = None,
        write_feasible: Callable[[Path], None] | None = None,
        write_answer: Callable[[Path], None] | None = None,
        new_graph: bool = False,
        **changes: Any,
    ) -> None:
        """Write what is new beside the old, then make it the truth in one step.

        ``write_generation`` fills the directory of the next generation, ``write_feasible`` that of a new best feasible
        point, ``write_answer`` that of what the problem made of it; ``records`` are lines of history; ``changes`` are
        entries of the manifest. ``new_graph`` says that the graph was written.
        """
        self.check_place()
        digests = self._digests()
        if new_graph:
            flush(self.graph)
            digests[GRAPH] = digest_group(self.graph)
        writers = {"generation": write_generation, "feasible": write_feasible, "answer": write_answer}
        for entry, write in writers.items():
            if write is not None:
                fresh = self._write_next(entry, write)
                changes[entry] = self.manifest[entry] + 1
                digests[self._name_of(fresh)] = digest_group(fresh)
        changes["digests"] = {"generation": {**self.manifest, **changes}["generation"], "groups": digests}
        self._publish(records, **changes)
        for entry in NUMBERED:
            self._drop_stale(entry)
        if self._mirror is not None:
            self._mirror.push()

    def _name_of(self, group: Path) -> str:
        return group.relative_to(self.path).as_posix()

    def _groups(self) -> list[Path]:
        """The groups that count."""
        numbered = [self._numbered(entry, self.manifest[entry]) for entry in NUMBERED if self.manifest[entry]]
        return [self.edges, *((self.graph, *numbered) if self.manifest["problem"] else ())]

    def _digests(self) -> dict[str, str]:
        """The fingerprints of the groups that count, as far as they are known.

        A release that knows none of them leaves those it found, which are then of another generation.
        """
        held = self.manifest.get("digests", {"generation": None, "groups": {}})
        known = {self._name_of(group) for group in self._groups()}
        if held["generation"] != self.manifest["generation"]:
            known = {EDGES}
        return {name: digest for name, digest in held["groups"].items() if name in known}

    def check_groups(self) -> None:
        """Refuse groups that are not those that were committed: changed, or exchanged for others, since."""
        known = self._digests()
        for group in self._groups():
            name = self._name_of(group)
            if name in known and digest_group(group) != known[name]:
                ways = "convert the edges again" if name == EDGES else "`ooc-pf solve --restart` starts again"
                raise WorkspaceError(f"{group} is damaged: its arrays are not those that were committed; {ways}")

    def _write_next(self, entry: str, write: Callable[[Path], None]) -> Path:
        fresh = self._numbered(entry, self.manifest[entry] + 1)
        self._make_folder(fresh.parent)
        remove(fresh)
        make_group(fresh)
        write(fresh)
        flush(fresh)
        return fresh

    def _make_folder(self, folder: Path) -> None:
        """Make a directory of the workspace; its name is on the disk when this returns."""
        try:
            if not check_own(folder, directory=True):
                os.mkdir(folder)
                flush_directory(self.path)
        except FileNotFoundError:
            raise gone(self.path) from None

    def _drop_stale(self, entry: str) -> None:
        keep = self._numbered(entry, self.manifest[entry]).name
        folder = self.path / NUMBERED[entry]
        for stale in folder.iterdir() if folder.exists() else ():
            if stale.name != keep:
                with contextlib.suppress(OSError):
                    remove(stale)

    def _publish(self, records: Sequence[dict[str, Any]], **changes: Any) -> None:
        self.check_place()
        if records:
            changes["history_bytes"] = self._append_history(records)
        manifest = sealed({**self.manifest, **changes}, self._history_bytes(changes))
        try:
            text = json.dumps(manifest, indent=1, allow_nan=False)
        except ValueError as error:
            raise WorkspaceError(
                f"{self.name}: the run came to numbers that are not finite ({error}); the workspace is as it was after "
                "its last iteration. Rescale the values, or `ooc-pf verify` it if they are of ordinary size"
            ) from error
        replace_file(self.path / MANIFEST, text)
        self.manifest = manifest

    def _history_bytes(self, changes: dict[str, Any] | None = None) -> bytes:
        """The committed part of the history."""
        count, file = {**self.manifest, **(changes or {})}["history_bytes"], self.path / HISTORY
        return file.read_bytes()[:count] if count and file.exists() else b""

    @property
    def sealed(self) -> bool:
        """Whether manifest and history are as they were committed; a workspace of before there were seals always is."""
        seal = self.manifest.get("seal")
        return seal is None or sealed(self.manifest, self._history_bytes())["seal"] == seal

    def _append_history(self, records: Sequence[dict[str, Any]]) -> int:
        # Lines past history_bytes were written by a run that died before its commit: cut them off.
        is_new = not check_own(self.path / HISTORY, directory=False)
        if not is_new and os.stat(self.path / HISTORY).st_nlink > 1:
            # A copy made of hard links has the same file: leave it to that.
            replace_file(self.path / HISTORY, self._history_bytes().decode())
        with open_to_append(self.path / HISTORY) as file:
            file.truncate(min(self.manifest["history_bytes"], file.seek(0, os.SEEK_END)))
            file.seek(0, os.SEEK_END)
            file.write(b"".join(json.dumps(record).encode() + b"\n" for record in records))
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        if is_new:
            flush_directory(self.path)
        return size

    def history(self) -> list[dict[str, Any]]:
        """The committed iterations, oldest first."""
        return read_history(self.path / HISTORY, self.manifest["history_bytes"])


def is_path(graph: Any) -> bool:
    """Whether the caller named a workspace instead of handing over edges."""
    return isinstance(graph, str | os.PathLike)
