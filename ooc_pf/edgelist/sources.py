"""Where an edge list comes from: a file, or a pipe that is first put aside."""

import contextlib
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ..errors import InputError
from ..storage.files import local_path
from ..storage.objectstore import is_url

STDIN = "-"
COPY_BYTES = 1 << 20  # cost only: bytes taken from a pipe at once


@contextlib.contextmanager
def no_trace(path: str | Path) -> Iterator[None]:
    """Remove the parent directories of ``path`` that were made inside, if what was to be in them failed."""
    missing = [] if is_url(path) else [each for each in local_path(path).absolute().parents if not each.exists()]
    try:
        yield
    except BaseException:
        for folder in missing:  # innermost first
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


def readable_file(source: str | os.PathLike, folder: Path) -> Path:
    """A file with the content of ``source``, which can be read more than once.

    Parameters
    ----------
    source : path
        A file, or ``-`` for standard input. What can be read only once, such as a pipe, is copied.
    folder : Path
        Where a copy goes; the caller removes it.
    """
    if os.fspath(source) == STDIN:
        stream = getattr(sys.stdin, "buffer", None)
        if stream is None:
            raise InputError("-: there is no standard input to read from; name a file")
        return _copy(stream, folder / "stdin")
    if is_url(source):
        raise InputError(
            f"{source}: an edge list is read from a file here or from a pipe; fetch it first, or pipe it into "
            "`ooc-pf convert - WORKSPACE`"
        )
    path = local_path(source)
    try:
        kind = os.stat(path).st_mode
        if stat.S_ISFIFO(kind) or stat.S_ISCHR(kind) or stat.S_ISSOCK(kind):
            with open(path, "rb") as stream:
                return _copy(stream, folder / path.name)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    return path


def _copy(stream: BinaryIO, target: Path) -> Path:
    target.parent.mkdir(exist_ok=True)
    with open(target, "wb") as file:
        shutil.copyfileobj(stream, file, COPY_BYTES)
    return target
