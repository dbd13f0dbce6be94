"""A disk that remembers every operation, and can show itself as a power cut at any of them could leave it.

What is simulated is what POSIX promises: a file has on it what was written before it was last synced, a directory the
names it had then, and of everything later any part may be there or not. Real file systems mostly promise more.
"""

import builtins
import contextlib
import io
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ooc_pf.storage.workspace import Workspace

BLOCK, SECTOR = 4096, 512  # bytes that are written as a whole: of a page, and when the power goes


@dataclass
class File:
    """A file by its history: (operation, offset, bytes) of writes, and with None for bytes cuts at the offset."""

    writes: list[tuple[int, int, bytes | None]] = field(default_factory=list)
    syncs: list[int] = field(default_factory=list)


@dataclass
class Folder:
    """A directory by its history: (operation, name, what has the name now, if anything)."""

    changes: list[tuple[int, str, "File | Folder | None"]] = field(default_factory=list)
    syncs: list[int] = field(default_factory=list)
    now: dict[str, "File | Folder"] = field(default_factory=dict)


class Disk:
    """What happens below a directory while `recording`.

    Attributes
    ----------
    operations : int
        How many there were so far.
    marks : list of (int, dict)
        The manifest of each commit with the operation before which it had ended; and ``{"exported": True}``.
    """

    def __init__(self, root: Path):
        self.base = os.path.realpath(root)
        self.root = Folder()
        self.operations = 0
        self.marks: list[tuple[int, dict[str, Any]]] = []
        self._take_in(Path(self.base), self.root)

    def _take_in(self, place: Path, folder: Folder) -> None:
        """What is there already is on the disk."""
        for entry in sorted(place.iterdir()):
            node: File | Folder = Folder() if entry.is_dir() else File([(0, 0, entry.read_bytes())], [1])
            folder.changes.append((0, entry.name, node))
            folder.now[entry.name] = node
            if isinstance(node, Folder):
                self._take_in(entry, node)
        folder.syncs.append(1)
        self.operations = 1

    def mark(self, facts: dict[str, Any]) -> None:
        self.marks.append((self.operations, facts))

    def _tick(self) -> int:
        self.operations += 1
        return self.operations - 1

    # -- where ------------------------------------------------------------------------------------------------------

    def where(self, path: Any, dir_fd: int | None = None) -> tuple[Folder, str] | None:
        """The directory and the name of a path, if that is below the root and its directory is known."""
        if isinstance(path, int):
            path = os.readlink(f"/proc/self/fd/{path}")
        elif dir_fd is not None:
            path = os.path.join(os.readlink(f"/proc/self/fd/{dir_fd}"), os.fspath(path))
        path = os.path.abspath(os.fspath(path))
        if path == self.base or not path.startswith(self.base + os.sep):
            return None
        *folders, name = os.path.relpath(path, self.base).split(os.sep)
        folder = self.root
        for each in folders:
            found = folder.now.get(each)
            if not isinstance(found, Folder):
                return None
            folder = found
        return folder, name

    def _node(self, path: Any) -> "File | Folder | None":
        place = os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else os.path.abspath(path)
        if place == self.base:
            return self.root
        found = self.where(path)
        return None if found is None else found[0].now.get(found[1])

    # -- what -------------------------------------------------------------------------------------------------------

    def opened(self, path: Any, *, cut: bool, dir_fd: int | None = None) -> None:
        """A file was opened for writing."""
        found = self.where(path, dir_fd)
        if found is None:
            return
        folder, name = found
        node = folder.now.get(name)
        if node is None:
            folder.now[name] = fresh = File()
            folder.changes.append((self._tick(), name, fresh))
        elif cut and isinstance(node, File):
            node.writes.append((self._tick(), 0, None))

    def wrote(self, handle: int, offset: int, data: bytes | None) -> None:
        node = self._node(handle)
        if isinstance(node, File):
            node.writes.append((self._tick(), offset, data))

    def synced(self, handle: int) -> None:
        node = self._node(handle)
        if node is not None:
            node.syncs.append(self._tick())

    def made(self, path: Any, dir_fd: int | None = None) -> None:
        found = self.where(path, dir_fd)
        if found is not None:
            found[0].now[found[1]] = folder = Folder()
            found[0].changes.append((self._tick(), found[1], folder))

    def removed(self, path: Any, dir_fd: int | None = None) -> None:
        found = self.where(path, dir_fd)
        if found is not None and found[0].now.pop(found[1], None) is not None:
            found[0].changes.append((self._tick(), found[1], None))

    def moved(self, source: Any, target: Any) -> None:
        """Both names are of one directory here; a file that was written by a library is taken in with its content."""
        one, other = self.where(source), self.where(target)
        if one is None or other is None or one[0] is not other[0]:
            raise AssertionError(f"{source} is moved to another directory, which is not simulated")
        folder, name = one
        if name not in folder.now:
            self.opened(source, cut=False)
            content = folder.now[name]
            assert isinstance(content, File)
            with open(source, "rb") as file:
                content.writes.append((self._tick(), 0, file.read()))
        at, node = self._tick(), folder.now.pop(name)
        folder.now[other[1]] = node
        folder.changes += [(at, name, None), (at, other[1], node)]


@contextlib.contextmanager
def recording(disk: Disk) -> Iterator[None]:
    """Tell ``disk`` of every operation of this process, by way of the functions that the package calls."""
    real = {name: getattr(os, name) for name in NOTED}
    real_open = io.open

    def open_low(path, flags, mode=0o777, *, dir_fd=None):
        handle = real["open"](path, flags, mode, dir_fd=dir_fd)
        if flags & (os.O_WRONLY | os.O_RDWR):
            disk.opened(path, cut=bool(flags & os.O_TRUNC), dir_fd=dir_fd)
        return handle

    class Raw(io.FileIO):
        def write(self, data):
            offset = os.fstat(self.fileno()).st_size if "a" in self.mode else self.tell()
            count = super().write(data)
            disk.wrote(self.fileno(), offset, bytes(memoryview(data).cast("B")[:count]))
            return count

        def truncate(self, size=None):
            size = super().truncate(size)
            disk.wrote(self.fileno(), size, None)
            return size

    def open_high(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
        changes = any(sign in mode for sign in "wax+")
        if not changes or (not isinstance(file, int) and disk.where(file) is None):
            return real_open(file, mode, buffering, encoding, errors, newline, closefd, opener)
        raw = Raw(file, mode.replace("b", "").replace("t", ""), closefd, opener)
        if not isinstance(file, int):
            disk.opened(file, cut="w" in mode)
        buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, errors, newline)

    def noting(name: str, note: Callable[..., None]) -> Callable[..., Any]:
        def call(*args, **more):
            found = real[name](*args, **more)
            note(*args, **more)
            return found

        return call

    def moving(name: str) -> Callable[..., Any]:
        def call(source, target):
            if disk.where(source) is not None or disk.where(target) is not None:
                disk.moved(source, target)
            return real[name](source, target)

        return call

    def refuse(*args, **more):
        raise AssertionError("links are not simulated")

    changed: dict[str, Any] = {"open": open_low, "rename": moving("rename"), "replace": moving("replace")}
    changed |= {"link": refuse, "symlink": refuse, "ftruncate": refuse, "truncate": refuse}
    changed["fsync"] = noting("fsync", lambda handle: disk.synced(_number(handle)))
    changed["mkdir"] = noting("mkdir", lambda path, mode=0, dir_fd=None: disk.made(path, dir_fd))
    for name in ("unlink", "remove", "rmdir"):
        changed[name] = noting(name, lambda path, dir_fd=None: disk.removed(path, dir_fd))
    commit, changed_commit = Workspace.commit, lambda place, *args, **more: _marked(disk, commit, place, *args, **more)
    for name, function in changed.items():
        setattr(os, name, function)
    builtins.open = io.open = open_high
    Workspace.commit = changed_commit
    try:
        yield
    finally:
        for name in changed:
            setattr(os, name, real[name])
        builtins.open = io.open = real_open
        Workspace.commit = commit


NOTED = (
    "open", "rename", "replace", "link", "symlink", "ftruncate", "truncate", "fsync", "mkdir", "unlink", "remove",
    "rmdir",
)  # fmt: skip


def _number(handle: Any) -> int:
    return handle if isinstance(handle, int) else handle.fileno()


def _marked(disk: Disk, commit: Callable[..., None], place: Workspace, *args: Any, **more: Any) -> None:
    commit(place, *args, **more)
    if os.path.realpath(place.path).startswith(disk.base + os.sep):  # and not of a run that it begins with
        disk.mark(dict(place.manifest))


# -- after a power cut ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cut:
    """The power goes before operation ``at``; ``state`` says what is there of that which was not synced."""

    at: int
    state: str
    seed: int = 0

    def tree(self, folder: Folder, prefix: str = "") -> dict[str, bytes | None]:
        """Content of each file by its path, None for directories."""
        entries: dict[str, File | Folder] = {}
        sure = self._sure(folder)
        for operation, name, node in folder.changes:
            if operation < sure or (operation < self.at and self._keeps(operation, "names")):
                entries.pop(name, None)
                if node is not None:
                    entries[name] = node
        found: dict[str, bytes | None] = {}
        for name, node in entries.items():
            if isinstance(node, Folder):
                found |= {prefix + name: None, **self.tree(node, f"{prefix}{name}/")}
            else:
                found[prefix + name] = self._content(node)
        return found

    def _sure(self, node: File | Folder) -> int:
        """Before which operation everything is on the disk."""
        return max((sync for sync in node.syncs if sync < self.at), default=0)

    def _keeps(self, operation: int, what: str, block: int = 0) -> bool:
        if self.state == "random":
            return random.Random(f"{self.seed} {self.at} {operation} {block}").random() < 0.5
        return self.state in (what, "all")

    def _content(self, file: File) -> bytes:
        content, sure = bytearray(), self._sure(file)
        for operation, offset, data in file.writes:
            if operation >= self.at:
                continue
            if data is None:
                if operation < sure or self._keeps(operation, "data"):
                    del content[offset:]
            elif operation < sure:
                _put(content, offset, data)
            else:
                self._put_some(content, operation, offset, data)
        return bytes(content)

    def _put_some(self, content: bytearray, operation: int, offset: int, data: bytes) -> None:
        """Write some blocks of the data; of the last one, at random, only some sectors."""
        begin = 0
        while begin < len(data):
            end = min(len(data), (offset + begin) // BLOCK * BLOCK + BLOCK - offset)
            if self._keeps(operation, "data", begin):
                torn = end == len(data) and self.state == "random" and self._keeps(operation, "data", -1)
                last = min(end, (offset + begin) // SECTOR * SECTOR + SECTOR - offset) if torn else end
                _put(content, offset + begin, data[begin:last])
            begin = end


def _put(content: bytearray, offset: int, data: bytes) -> None:
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


def build(tree: dict[str, bytes | None], place: Path) -> None:
    """Make the files of a tree."""
    place.mkdir()
    for name, content in tree.items():
        if content is None:
            (place / name).mkdir()
        else:
            (place / name).write_bytes(content)


def real_tree(place: Path) -> dict[str, bytes | None]:
    """The files below a directory."""
    return {
        entry.relative_to(place).as_posix(): None if entry.is_dir() else entry.read_bytes()
        for entry in place.rglob("*")
    }
