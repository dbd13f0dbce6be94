"""A workspace on an object store: a working copy here, and the store brought up to date with every commit.

    run.pf/
      manifest.json            the workspace's manifest, and which commit sent each of its files: the commit point
      commits/3f…/gen/000017.zarr/y/c/0    a file, under the name of the commit that sent it

A commit sends its files under a name of its own, so nothing that a manifest names is ever overwritten. Then it puts the
manifest with a conditional put (compare-and-swap by ETag): it happens only if the store still has the manifest that
the commit builds on. Of two writers one wins; the other one gets a `WorkspaceBusyError` and has changed nothing.

At last it deletes what no manifest needs, by one rule: an object may go if it was listed before the put, the put
happened, and the new manifest does not name it. Whoever sent such an object read a manifest older than the new one, so
its own put will be refused. A writer that builds on the new manifest sends under new names, after the listing. So
leftovers of the dead go with the next commit, and no clock or age is asked.

Stores of older versions have the files under their plain names, and open; their next commit makes them stores of this
kind.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import secrets
import stat
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

from ..errors import WorkspaceBusyError, WorkspaceError
from .clients import Missing, Refused, Version, connect, plainly
from .files import local_path, new_file
from .manifest import MANIFEST
from .store_manifest import (
    COMMITS,
    NEW,
    OURS,
    RECORD,
    Files,
    StoreManifest,
    check_names,
    object_name,
    read_manifest,
)

CACHE = "OOC_PF_CACHE"
THREADS = 8  # requests at a time
WAITS = (0.0, 0.2, 0.5, 1.0, 2.0, 4.0)  # seconds before each try to put the manifest

T = TypeVar("T")


def is_url(path: Any) -> TypeGuard[str]:
    """Whether a path names an object store, such as ``s3://bucket/run.pf``; ``file://`` names a file here."""
    return isinstance(path, str) and re.match(r"(?!file:)[a-z][a-z0-9+.-]+://", path) is not None


def local_copy(path: str | os.PathLike) -> Path:
    """Where the files of a workspace are, or belong, on this machine."""
    if not is_url(path):
        return local_path(path)
    name = re.sub(r"[^A-Za-z0-9._-]", "_", str(path).rstrip("/").rsplit("/", 1)[-1])
    return _cache_folder() / f"{hashlib.sha256(str(path).rstrip('/').encode()).hexdigest()[:16]}-{name}"


def _cache_folder() -> Path:
    if os.environ.get(CACHE):
        return Path(os.environ[CACHE])
    from platformdirs import user_cache_path

    return user_cache_path("ooc_pf", appauthor=False)


class Mirror:
    """The workspace at ``url`` and its working copy in ``path``.

    A mirror remembers which manifest it last saw on the store. That is the one its next push builds on, whatever
    another process has brought into the working copy since.
    """

    def __init__(self, url: str):
        self._client = connect(url)
        self.url, self.path = url, local_copy(url)
        self._base: str | None = None  # digest of the manifest that the next push replaces
        self._writing = False

    def exists(self) -> bool:
        """Whether the store has this workspace."""
        return self._manifest() is not None

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """For the time of a run: no other process on this machine changes the working copy."""
        with open(self._beside(".writer"), "a", opener=plainly) as file:
            with self._held():
                _lock_at_once(file, self.url)
            self._writing = True
            try:
                yield
            finally:
                self._writing = False

    def pull(self) -> None:
        """Bring the working copy in line with the store, unless it is that already, or ahead of it.

        While another process on this machine writes the workspace, its working copy is left as it is.
        """
        with self._held():
            if not self._writing and self._written_here() and (self.path / MANIFEST).is_file():
                return
            while not self._follow():
                pass

    def push(self) -> None:
        """Commit the working copy to the store: new files, then the manifest, then deletions.

        Raises
        ------
        WorkspaceBusyError
            If the store has another manifest than the one this mirror last saw; the store is left as it was.
        """
        with self._held():
            found = self._manifest()
            if _digest(found) != self._base:
                raise self._busy()
            listed = self._client.sizes()  # before the put: see the rule above
            base = read_manifest(found[0], self.url) if found else StoreManifest(b"")
            commit, here = secrets.token_hex(16), self._here()
            folder = f"{COMMITS}/{commit}"
            files, probe = self._place(here, folder), f"{folder}/probe"
            sent = [name for name in files if files[name][0] == folder]
            self._client.probe(probe)
            _side_by_side(lambda name: self._client.send(f"{folder}/{name}", self.path / name), sent)
            fresh = StoreManifest((self.path / MANIFEST).read_bytes(), files, base.after(commit))
            body = fresh.encode()
            winner = self._swap(body, commit, found[1] if found else None)
            if winner is not None:
                self._clean({probe, *(f"{folder}/{name}" for name in sent)} - winner.objects())
                raise self._busy()
            self._base = _digest((body, {}))
            self._write_record(files, here)
            self._clean({probe, *listed} - fresh.objects() - {MANIFEST})

    def _place(self, here: dict[str, list[int]], folder: str) -> Files:
        """Where each file is to be: where it is, if it is as it was; else in the folder of a new commit."""
        record = self._record()
        known = record["files"] if record["mark"] == self._base else {}
        same = {name for name in here if known.get(name, [None])[0] == here[name]}
        return {name: (known[name][1] if name in same else folder, here[name][0]) for name in here}

    def _swap(self, body: bytes, commit: str, version: Version | None) -> StoreManifest | None:
        """Put the manifest if the store still has the one we build on; return that of another writer if it won.

        An answer may get lost, and a put that was given up may still arrive. So after anything but a plain yes the
        manifest is read back. Either our commit led to it, or it is another writer's, or still the old one; then the
        put is tried again, which is safe because it is the same put.
        """
        trouble: Exception | None = None
        for wait in WAITS:
            time.sleep(wait)
            try:
                self._client.put_if(MANIFEST, body, version)
                return None
            except (Refused, OSError) as error:
                trouble = error
            try:
                found = self._manifest()
            except OSError as error:
                trouble = error
                continue
            if _digest(found) != self._base:
                winner = read_manifest(found[0], self.url) if found else StoreManifest(b"")
                return None if commit in winner.lineage else winner
        raise OSError(
            f"{self.url}: whether the last commit arrived is not known ({trouble}); the copy in {self.path} has it, "
            "and the next call finds out and goes on"
        ) from trouble

    def _busy(self) -> WorkspaceBusyError:
        return WorkspaceBusyError(
            f"{self.url} was changed by another process since it was read here; wait for it, then start again"
        )

    def _clean(self, names: Iterable[str]) -> None:
        """Delete objects; what cannot be deleted now goes with a later commit."""
        try:
            self._client.delete(names)
        except OSError as error:
            warnings.warn(f"{self.url}: old files are left for the next commit to delete ({error})", stacklevel=3)

    def _follow(self) -> bool:
        """Fetch what differs from the store's manifest; False if another commit came between."""
        found = self._manifest()
        mark, record = _digest(found), self._record()
        if found is None or (record["mark"] == mark and (self.path / MANIFEST).is_file()):
            self._base = mark
            return True
        there = read_manifest(found[0], self.url)
        plain = there.files is None
        files = self._plain_files() if there.files is None else there.files
        check_names(files, self.url)
        here, known = self._here(), {} if plain else record["files"]
        stale = [name for name in files if known.get(name) != [here.get(name), files[name][0]]]
        try:
            _side_by_side(lambda name: self._fetch(name, *files[name]), stale)
        except Missing as error:
            if _digest(self._manifest()) == mark:
                raise WorkspaceError(
                    f"{error}, which the manifest names: the store is damaged; restore the object, or convert again"
                ) from error
            return False
        if plain and _digest(self._manifest()) != mark:
            return False
        self._write(MANIFEST, there.own)
        for name in here.keys() - files.keys() - {MANIFEST}:
            self._remove(name)
        self._base = mark
        self._write_record(files, self._here())
        return True

    def _plain_files(self) -> Files:
        """The files of a store of an older version: what there is."""
        sizes = self._client.sizes()
        ours = [name for name in sizes if name == MANIFEST or name.endswith(NEW) or name.startswith(COMMITS + "/")]
        return {name: ("", sizes[name]) for name in sizes.keys() - ours}

    def _fetch(self, name: str, folder: str, size: int) -> None:
        """Get one object; the file is here when it is complete."""
        source = object_name(folder, name)
        body, _ = self._client.read(source)
        if len(body) != size:
            raise WorkspaceError(
                f"{self.url}: {source} has {len(body)} bytes and should have {size}: the store is damaged; "
                "restore the object, or convert again"
            )
        self._write(name, body)

    def _write(self, name: str, body: bytes) -> None:
        """Replace a file of the working copy; nothing is written through a symbolic link."""
        file = self.path / name
        for folder in [self.path, *reversed([self.path / part for part in Path(name).parents][:-1])]:
            if folder.is_symlink():
                raise WorkspaceError(f"{folder} is a symbolic link, the name {name!r} leads out; remove {self.path}")
            folder.mkdir(parents=folder == self.path, exist_ok=True)
        fresh = file.with_name(file.name + NEW)
        with new_file(fresh) as out:
            out.write(body)
        os.replace(fresh, file)

    def _remove(self, name: str) -> None:
        """Delete a file of the working copy, and the folders it leaves empty."""
        (self.path / name).unlink()
        with contextlib.suppress(OSError):
            for part in list(Path(name).parents)[:-1]:
                (self.path / part).rmdir()

    def _manifest(self) -> tuple[bytes, Version] | None:
        try:
            return self._client.read(MANIFEST)
        except Missing:
            return None

    def _here(self) -> dict[str, list[int]]:
        """A sign of each file of the working copy that changes with it: its size, and when it was written."""
        signs = {}
        for folder, _, files in os.walk(self.path):
            for file in files:
                entry = Path(folder) / file
                name = entry.relative_to(self.path).as_posix()
                if name.split("/")[0] in OURS or name == MANIFEST or name.endswith(NEW):
                    continue
                facts = entry.lstat()
                if not stat.S_ISREG(facts.st_mode):
                    raise WorkspaceError(f"{entry} is not a plain file; a workspace must hold its own files")
                signs[name] = [facts.st_size, facts.st_mtime_ns]
        return signs

    def _record(self) -> dict[str, Any]:
        """The manifest's digest, and each file's sign and folder, when both sides were last the same."""
        try:
            record = json.loads((self.path / RECORD).read_text())
            return {"mark": record["mark"], "files": dict(record["files"])}
        except (OSError, ValueError, KeyError, TypeError):
            return {"mark": None, "files": {}}

    def _write_record(self, files: Files, here: dict[str, list[int]]) -> None:
        signs = {name: [here.get(name), files[name][0]] for name in files}
        self._write(RECORD, json.dumps({"mark": self._base, "files": signs}).encode())

    def _beside(self, ending: str) -> Path:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return self.path.with_name(self.path.name + ending)

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        """One process at a time looks after the working copy."""
        with open(self._beside(".mirror"), "a", opener=plainly) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _written_here(self) -> bool:
        """Whether a process on this machine writes the workspace."""
        with open(self._beside(".writer"), "a", opener=plainly) as file:
            try:
                _lock_at_once(file, self.url)
            except WorkspaceBusyError:
                return True
            return False


def _digest(found: tuple[bytes, Version] | None) -> str | None:
    return hashlib.sha256(found[0]).hexdigest() if found is not None else None


def _lock_at_once(file: Any, url: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise WorkspaceBusyError(f"{url} is in use by another process on this machine; wait for it") from None


def _side_by_side(work: Callable[[str], T], names: list[str]) -> None:
    """Do the same for many names, a few at a time; the first error ends it."""
    with ThreadPoolExecutor(THREADS) as pool:
        waiting = [pool.submit(work, name) for name in names]
        try:
            for done in waiting:
                done.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
