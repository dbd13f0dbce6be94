"""The manifest on a store: the workspace's own, and the commit that sent each file; and which names are safe."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import WorkspaceError
from .manifest import LOCK, MANIFEST, SCRATCH
from .records import parse_json

RECORD, COMMITS, NEW = "mirror.json", "commits", ".new"
OURS = (LOCK, SCRATCH, RECORD)  # of a working copy alone
STORE_VERSION = "store-1"  # programs that know plain stores only refuse it as a format version
LINEAGE = 100  # commits that a manifest remembers

Files = dict[str, tuple[str, int]]  # name -> the folder it is in, "" or commits/<name of a commit>, and its size


def object_name(folder: str, name: str) -> str:
    """The object that holds a file."""
    return f"{folder}/{name}" if folder else name


def check_names(names: Iterable[str], url: str) -> None:
    """Refuse names from a store that would lead out of the working copy, or onto each other.

    Parameters
    ----------
    names : iterable of str
        Names of files, relative to the workspace.
    url : str
        The address they come from, for the message.

    Raises
    ------
    WorkspaceError
        For absolute names, ``..`` and empty parts, backslashes, control characters and others than ASCII, files that
        belong to the working copy alone, and names that differ in case only or are also a folder of another name.
    """
    seen: dict[str, str] = {}
    folders: set[str] = set()
    for name in names:
        parts = name.split("/")
        wrong = None
        if any(part in ("", ".", "..") for part in parts) or "\\" in name or ":" in parts[0]:
            wrong = "leads out of the workspace"
        elif not (name.isascii() and name.isprintable()):
            wrong = "has control characters, or others than ASCII"
        elif parts[0].casefold() in (*OURS, MANIFEST, COMMITS) or name.casefold().endswith(NEW):
            wrong = "belongs to the working copy alone"
        elif name.casefold() in seen:
            wrong = f"is {seen[name.casefold()]!r} on systems that ignore case"
        if wrong:
            raise WorkspaceError(f"{url}: the name {name!r} {wrong}; this is not a store that ooc_pf wrote")
        seen[name.casefold()] = name
        folders.update("/".join(parts[:end]).casefold() for end in range(1, len(parts)))
    if both := folders & seen.keys():
        raise WorkspaceError(f"{url}: {min(both)!r} is a file and a folder; this is not a store that ooc_pf wrote")


@dataclass(frozen=True)
class StoreManifest:
    """What ``manifest.json`` on a store says; ``files`` is None in a store of an older version."""

    own: bytes  # the workspace's manifest
    files: Files | None = None
    lineage: tuple[str, ...] = ()  # the commits that led here, the newest last

    def objects(self) -> set[str]:
        """Every object that holds a file."""
        return {object_name(folder, name) for name, (folder, _) in (self.files or {}).items()}

    def after(self, commit: str) -> tuple[str, ...]:
        """The lineage of a commit upon this one."""
        return (*self.lineage[1 - LINEAGE :], commit)

    def encode(self) -> bytes:
        """The text; the random name of its commit makes its digest and its ETag unlike any other's."""
        content = json.loads(self.own)
        placed: dict[str, dict[str, int]] = {}
        for name, (folder, size) in (self.files or {}).items():
            placed.setdefault(folder, {})[name] = size
        about = {"format": content["format"], "version": STORE_VERSION, "lineage": self.lineage}
        return json.dumps({**about, "manifest": content, "files": placed}).encode()


def read_manifest(body: bytes, url: str) -> StoreManifest:
    """Understand ``manifest.json`` of a store, or raise `WorkspaceError`."""
    content = parse_json(body, f"{url}/{MANIFEST}")
    version = content.get("version") if isinstance(content, dict) else None
    if not isinstance(version, str):
        return StoreManifest(body)
    if version != STORE_VERSION:
        raise WorkspaceError(f"{url} has store format {version!r}, this program reads {STORE_VERSION!r}: update ooc_pf")
    files: Files = {}
    try:
        for folder, names in content["files"].items():
            if folder and not re.fullmatch(COMMITS + "/[0-9a-f]{32}", folder):
                raise ValueError(f"{folder!r} is not a folder of a commit")
            for name, size in names.items():
                if type(size) is not int or size < 0 or name in files:
                    raise ValueError(f"the entry for {name!r} is {size!r}, or there are two")
                files[name] = (folder, size)
        own = json.dumps(content["manifest"], indent=1).encode()
        return StoreManifest(own, files, tuple(map(str, content["lineage"])))
    except (KeyError, AttributeError, TypeError, ValueError) as error:
        raise WorkspaceError(f"{url}/{MANIFEST} is damaged: {error}; restore it, or convert again") from error
