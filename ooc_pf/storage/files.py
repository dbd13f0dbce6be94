"""Files and directories that survive a power cut, and are never written through a link.

A file is on the disk itself once it was synced, its name once the directory was. Whatever is created is created
exclusively: a file, or a link, that happens to have the name is removed, never opened.
"""

import contextlib
import fcntl
import os
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from ..errors import InputError, WorkspaceBusyError, WorkspaceError


def local_path(path: str | os.PathLike[str]) -> Path:
    """A path as the file system knows it: ``~`` is the home directory, ``file://`` is left out."""
    text = os.fspath(path)
    if not text.startswith("file://"):
        return Path(os.path.expanduser(text))
    parts = urlsplit(text)
    if parts.netloc not in ("", "localhost"):
        raise InputError(f"{text} names a file on {parts.netloc}; a file here is file:///path or just /path")
    return Path(unquote(parts.path))


# Someone who only looks whether a lock is held has it for a moment: whoever wants it tries again.
TRIES, MOMENT = 5, 0.01


def flush(directory: Path) -> None:
    """Put everything below ``directory``, and its own name, on the disk itself."""
    for folder, _, files in os.walk(directory):
        for name in [*files, "."]:
            _sync(os.path.join(folder, name))
    flush_directory(Path(directory).parent)


def flush_directory(directory: Path) -> None:
    """Put the names in a directory on the disk itself."""
    _sync(directory)


def _sync(path: str | Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_directory(path: Path) -> None:
    """Make a new directory, and its parents where they are missing; their names are on the disk when this returns."""
    path = Path(path)
    for parent in reversed([each for each in path.parents if not each.is_dir()]):
        parent.mkdir(exist_ok=True)
        flush_directory(parent.parent)
    os.mkdir(path)
    flush_directory(path.parent)


def new_file(path: Path) -> BinaryIO:
    """Open a file that did not exist for writing; one with that name, such as a crash may leave, is removed first."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return os.fdopen(os.open(path, flags, 0o666), "wb")
    except FileNotFoundError:
        raise gone(Path(path).parent) from None
    except IsADirectoryError:
        raise WorkspaceError(f"{path} is a directory, where a file is to be; remove it") from None


def open_to_append(path: Path) -> BinaryIO:
    """Open a file for writing at its end, a new one if there is none; a link is not followed."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    try:
        return os.fdopen(os.open(path, flags, 0o666), "ab")
    except FileNotFoundError:
        raise gone(Path(path).parent) from None


def take_lock(file: BinaryIO, place: Path) -> None:
    """Lock an open file that belongs to ``place``; the system drops the lock when the file is closed, or we die."""
    for _ in range(TRIES):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(MOMENT)  # perhaps someone who only looks, see `is_locked`
    raise WorkspaceBusyError(f"{place} is in use by another process; wait for it or stop it, then try again")


def is_locked(path: Path) -> bool:
    """Whether somebody holds the lock of a file, which need not be there."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def gone(directory: Path) -> WorkspaceError:
    """What to say where a directory that was there is not."""
    return WorkspaceError(f"{directory} was moved or removed while it was being worked on; bring it back, then go on")


@contextlib.contextmanager
def replacing(path: Path, mark: str = ".new") -> Iterator[BinaryIO]:
    """A new file that takes the name ``path`` when it is complete.

    A reader, and a power cut, sees the old content or the new and nothing between. After an error the old one stays.

    Parameters
    ----------
    path : Path
        Of a file that is there already, or not. A link is replaced, not followed.
    mark : str
        What the name ends with until then.

    Yields
    ------
    file
        Open for writing bytes.
    """
    path = Path(path)
    fresh = path.with_name(path.name + mark)
    try:
        with new_file(fresh) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(fresh)
        raise
    flush_directory(path.parent)


def replace_file(path: Path, text: str) -> None:
    """Replace a file's content by ``text``, as `replacing` does."""
    with replacing(path) as file:
        file.write(text.encode())


def remove(path: Path) -> None:
    """Remove a file, a link or a directory with all that is in it, if there is any; links are not followed."""
    try:
        is_directory = stat.S_ISDIR(os.lstat(path).st_mode)
    except FileNotFoundError:
        return
    if is_directory:
        shutil.rmtree(path)
    else:
        os.unlink(path)


def check_own(path: Path, *, directory: bool) -> bool:
    """Whether there is a directory, or a file, with this name; refuses a link, and anything else."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    if stat.S_ISLNK(mode):
        raise WorkspaceError(f"{path} is a symbolic link; a workspace must hold its own files")
    if not (stat.S_ISDIR(mode) if directory else stat.S_ISREG(mode)):
        raise WorkspaceError(f"{path} is not {'a directory' if directory else 'a file'}; it was not written here")
    return True
