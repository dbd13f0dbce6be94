"""A workspace on an object store: a working copy here, and the store brought up to date with every commit.

Objects are put whole, so a store has what a commit needs: the new files go up first, the manifest after them, and only
then is deleted what it no longer names. Whoever reads the store sees a complete workspace, the old one or the new.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard

from ..errors import InputError, WorkspaceBusyError, WorkspaceError

CACHE = "OOC_PF_CACHE"
MANIFEST, RECORD = "manifest.json", "mirror.json"
OURS = ("lock", "scratch", RECORD, RECORD + ".new", MANIFEST + ".new")  # of a working copy alone

Signs = dict[str, list[Any]]


def is_url(path: Any) -> TypeGuard[str]:
    """Whether a path names an object store, such as ``s3://bucket/run.pf``."""
    return isinstance(path, str) and re.match(r"[a-z][a-z0-9+.-]+://", path) is not None


def local_copy(path: str | os.PathLike) -> Path:
    """Where the files of a workspace are, or belong, on this machine."""
    if not is_url(path):
        return Path(path)
    root = Path(os.environ.get(CACHE) or Path.home() / ".cache" / "ooc_pf")
    name = re.sub(r"[^A-Za-z0-9._-]", "_", str(path).rstrip("/").rsplit("/", 1)[-1])
    return root / f"{hashlib.sha256(str(path).rstrip('/').encode()).hexdigest()[:16]}-{name}"


class Mirror:
    """The workspace at ``url`` and its working copy in ``path``."""

    def __init__(self, url: str):
        try:
            import fsspec
        except ImportError:
            raise InputError("a workspace on a store needs fsspec: pip install 'ooc_pf[store]'") from None
        try:
            self._fs, root = fsspec.core.url_to_fs(url, use_listings_cache=False)
        except (ImportError, ValueError) as error:
            raise InputError(f"{url}: this kind of store is not available ({error})") from error
        self.url, self._root, self.path = url, root.rstrip("/"), local_copy(url)

    def exists(self) -> bool:
        """Whether the store has this workspace."""
        return self._fs.exists(f"{self._root}/{MANIFEST}")

    def pull(self) -> None:
        """Bring the working copy in line with the store, unless it is that already, or ahead of it."""
        with self._held():
            there, known = self._there(), self._record()
            if MANIFEST not in there:
                return
            if known.get(MANIFEST, [None, None])[1] == there[MANIFEST] and (self.path / MANIFEST).is_file():
                return
            here = self._here()
            stale = [name for name in there if known.get(name) != [here.get(name), there[name]]]
            self._fetch([name for name in stale if name != MANIFEST])
            self._fetch([MANIFEST])
            for name in here.keys() - there.keys():
                (self.path / name).unlink()
            self._write_record(there)

    def push(self) -> None:
        """Bring the store in line with the working copy: new files, then the manifest, then what is gone."""
        with self._held():
            there, known, here = self._there(), self._record(), self._here()
            if there.get(MANIFEST) != known.get(MANIFEST, [None, None])[1]:
                raise WorkspaceBusyError(
                    f"{self.url} was changed by another process since it was read here; wait for it, then start again"
                )
            fresh = [name for name in here if known.get(name) != [here[name], there.get(name)]]
            self._send([name for name in fresh if name != MANIFEST])
            self._send([MANIFEST])
            gone = there.keys() - here.keys()
            if gone:
                self._fs.rm([f"{self._root}/{name}" for name in gone])
            self._write_record(self._there())

    def _send(self, names: list[str]) -> None:
        """Put some files on the store, side by side."""
        if names:
            self._fs.put([str(self.path / name) for name in names], [f"{self._root}/{name}" for name in names])

    def _fetch(self, names: list[str]) -> None:
        """Get some objects, side by side; each is here when it is complete."""
        partial = [self.path / (name + ".new") for name in names]
        for name, file in zip(names, partial, strict=True):
            if not file.resolve().is_relative_to(self.path.resolve()):
                raise WorkspaceError(f"{self.url}: the name {name!r} leads out of the workspace")
            file.parent.mkdir(parents=True, exist_ok=True)
        if names:
            self._fs.get([f"{self._root}/{name}" for name in names], [str(file) for file in partial])
        for name, file in zip(names, partial, strict=True):
            os.replace(file, self.path / name)

    def _there(self) -> dict[str, Any]:
        """A sign of each object that changes with it."""
        self._fs.invalidate_cache()
        try:
            found = self._fs.find(self._root, detail=True)
        except FileNotFoundError:
            return {}
        return {name[len(self._root) + 1 :]: _sign(about) for name, about in found.items()}

    def _here(self) -> dict[str, Any]:
        """The same of each file of the working copy."""
        signs = {}
        for folder, _, files in os.walk(self.path):
            for file in files:
                entry = Path(folder) / file
                name = entry.relative_to(self.path).as_posix()
                if name.split("/")[0] not in OURS:
                    facts = entry.stat()
                    signs[name] = [facts.st_size, facts.st_mtime_ns]
        return signs

    def _record(self) -> Signs:
        """What both sides were like when they were last the same."""
        try:
            return json.loads((self.path / RECORD).read_text())
        except (OSError, ValueError):
            return {}

    def _write_record(self, there: dict[str, Any]) -> None:
        here = self._here()
        fresh = self.path / (RECORD + ".new")
        fresh.write_text(json.dumps({name: [here.get(name), there[name]] for name in there}))
        os.replace(fresh, self.path / RECORD)

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        """One process at a time looks after the working copy."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path.with_name(self.path.name + ".mirror"), "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _sign(about: dict[str, Any]) -> list[Any]:
    """Size and whatever else tells one content from another."""
    marks = ("ETag", "etag", "md5Hash", "created", "mtime", "LastModified")
    return [about.get("size"), next((str(about[mark]) for mark in marks if about.get(mark)), None)]
