"""The workspace on disk: layout, lock, and the atomic commit.

    run.pf/
      manifest.json        what this is and which generation counts: the commit point
      history.jsonl        one line an iteration
      edges.zarr/          u, v, value, labels          written once by convert
      graph.zarr/          the split graph              written once by the first solve
      gen/000017.zarr/     y and rows                   complete before it is committed
      feasible/000012.zarr/  x, the best feasible point   likewise
      answer/000003.zarr/    what a problem makes of it   likewise, for problems that do

Nothing that a manifest refers to is ever changed in place: a new generation is written beside the old one, flushed,
and becomes the truth when the manifest is replaced. A crash therefore loses the iteration under way and nothing else.
"""

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import WorkspaceBusyError, WorkspaceError
from .arrays import write_array, write_labels
from .clients import exclusively
from .objectstore import Mirror, is_url, local_copy

FORMAT = "ooc_pf workspace"
VERSION = 2

MANIFEST, HISTORY, LOCK = "manifest.json", "history.jsonl", "lock"
EDGES, GRAPH, SCRATCH = "edges.zarr", "graph.zarr", "scratch"
# Directories of numbered groups, each with the manifest's entry for the number that counts.
NUMBERED = {"generation": "gen", "feasible": "feasible", "answer": "answer"}

# -- files ----------------------------------------------------------------------------------------------------------


def flush(directory: Path) -> None:
    """Ask the system to put everything below ``directory`` on the disk itself."""
    for folder, _, files in os.walk(directory):
        for name in [*files, "."]:
            handle = os.open(os.path.join(folder, name), os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def replace_file(path: Path, text: str) -> None:
    """Replace a file's content so that a reader, or a crash, sees the old text or the new and nothing between."""
    fresh = path.with_name(path.name + ".new")
    with open(fresh, "w", encoding="utf-8", opener=exclusively) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)
    flush_directory(path.parent)


def flush_directory(directory: Path) -> None:
    """Ask the system to put the names in a directory on the disk itself."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def building(path: str | os.PathLike) -> Iterator[Path]:
    """Build a directory under the name ``<path>.partial``; it takes its own name when complete, or is removed.

    One that belongs on an object store is built here and then sent there.
    """
    final = local_copy(path)
    if exists(path):
        raise WorkspaceError(f"{path} already exists; choose another name or remove it first")
    shutil.rmtree(final, ignore_errors=True)  # of a store: a copy of what is gone
    partial = final.with_name(final.name + ".partial")
    if partial.exists():
        # What a killed process left may go; what a living one works on may not.
        with open(partial / LOCK, "a") if (partial / LOCK).exists() else contextlib.nullcontext() as file:
            _take_lock(file, partial)
        shutil.rmtree(partial)
    partial.mkdir(parents=True)
    try:
        with open(partial / LOCK, "a") as file:
            _take_lock(file, partial)
            yield partial
            flush(partial)
            os.rename(partial, final)
        if is_url(path):
            Mirror(path).push()
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _take_lock(file: Any, place: Path) -> None:
    try:
        if file is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise WorkspaceBusyError(
            f"{place} is in use by another process; wait for it or stop it, then try again"
        ) from None


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
    }
    replace_file(directory / MANIFEST, json.dumps(manifest, indent=1))
    (directory / LOCK).touch()


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


_GRAPH_TYPES = {"kind": str, "nodes": int, "edges": int, "source": dict}
_PROBLEM_TYPES = {"name": str, "options": dict, "answers": bool}
_RUN_TYPES = {
    "plan": dict,
    "certificate": dict | None,
    "closing": dict | None,
    "objective": float | int | None,
    "lower_bound": float | int,
    "n_active": int,
}


def _check_types(manifest: dict[str, Any], file: Path) -> None:
    """Refuse a manifest whose entries are not of the kind they must be, before anyone relies on them."""
    parts: list[tuple[str, dict[str, Any], dict[str, Any]]]
    parts = [("", manifest, {"graph": dict, "problem": dict | None, "status": str})]
    if isinstance(manifest["graph"], dict):
        parts.append(("graph.", manifest["graph"], _GRAPH_TYPES))
    if isinstance(manifest["problem"], dict):
        parts += [("problem.", manifest["problem"], _PROBLEM_TYPES), ("", manifest, _RUN_TYPES)]
        if manifest.get("answer"):
            parts.append(("", manifest, {"facts": dict}))
    for prefix, holder, types in parts:
        for name, kind in types.items():
            if name not in holder or not isinstance(holder[name], kind):
                raise WorkspaceError(f"{file} is damaged: {prefix}{name} is {holder.get(name)!r}")


def _upgrade_from_1(manifest: dict[str, Any]) -> None:
    """Version 1 knew no complete graphs and no layout for disk."""
    problem = manifest.get("problem")
    if isinstance(problem, dict) and isinstance(problem.get("options"), dict):
        options = problem["options"]
        options.setdefault("external", False)
        if problem.get("name") == "clustering":
            options.setdefault("base", None)
        if isinstance(options.get("settings"), dict):
            options["settings"] = {"most_blocks": 1 << 9, "most_rows": 1 << 21, **options["settings"]}
    manifest["version"] = 2


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
    return Mirror(path).exists() if is_url(path) else Path(path).exists()


class Workspace:
    """One workspace: its manifest, its lock, and the commit of a new generation.

    ``path`` is its directory; of a workspace on an object store, that of the working copy. ``name`` is what the user
    calls it.
    """

    def __init__(self, path: str | os.PathLike):
        self.name = path if is_url(path) else Path(path)
        self.path = local_copy(path)
        self._mirror = Mirror(path) if is_url(path) else None
        self.manifest = self._read_manifest()

    def _read_manifest(self) -> dict[str, Any]:
        if self._mirror is not None:
            self._mirror.pull()
        file = self.path / MANIFEST
        if not exists(self.name):
            raise WorkspaceError(f"{self.name}: no such workspace; make one with `ooc-pf convert SOURCE {self.name}`")
        if not file.is_file():
            raise WorkspaceError(f"{self.name} is not a workspace: it has no {MANIFEST}")
        try:
            manifest = json.loads(file.read_text(encoding="utf-8"))
        except (UnicodeDecodeError, json.JSONDecodeError) as error:
            raise WorkspaceError(f"{file} is damaged: {error}") from error
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise WorkspaceError(f"{file} was not written by this program (no format {FORMAT!r})")
        if manifest.get("version") == 1:
            _upgrade_from_1(manifest)
        if manifest.get("version") != VERSION:
            raise WorkspaceError(
                f"{self.name} has format version {manifest.get('version')!r}, this program reads version {VERSION}; "
                "use the release that wrote it, or convert the edges again"
            )
        missing = {"graph", "problem", "status", "iteration", "history_bytes", *NUMBERED} - manifest.keys()
        if missing:
            raise WorkspaceError(f"{file} is damaged: it lacks {', '.join(sorted(missing))}")
        for field in ("iteration", "history_bytes", *NUMBERED):
            if type(manifest[field]) is not int or manifest[field] < 0:
                raise WorkspaceError(f"{file} is damaged: {field} is {manifest[field]!r}")
        _check_types(manifest, file)
        for entry in (MANIFEST, HISTORY, LOCK, EDGES, GRAPH, SCRATCH, *NUMBERED.values()):
            if (self.path / entry).is_symlink():
                raise WorkspaceError(f"{self.path / entry} is a symbolic link; a workspace must hold its own files")
        return manifest

    @property
    def address(self) -> str:
        """Where another process finds it."""
        return str(self.name) if self._mirror is not None else str(self.path.resolve())

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
        return self._numbered("generation", self.manifest["generation"])

    @property
    def feasible(self) -> Path | None:
        """The best feasible point committed so far."""
        return self._numbered("feasible", self.manifest["feasible"]) if self.manifest["feasible"] else None

    @property
    def answer(self) -> Path | None:
        """What the problem made of its point: the arrays of its own."""
        return self._numbered("answer", self.manifest["answer"]) if self.manifest["answer"] else None

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

    def _numbered(self, entry: str, number: int) -> Path:
        return self.path / NUMBERED[entry] / f"{number:06d}.zarr"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the workspace for writing; a second process is refused. The system drops the lock if we die."""
        with open(self.path / LOCK, "a") as file:
            _take_lock(file, self.path)
            with self._mirror.writing() if self._mirror is not None else contextlib.nullcontext():
                self.manifest = self._read_manifest()
                yield

    def commit(
        self,
        record: dict[str, Any] | None = None,
        *,
        write_generation: Callable[[Path], None] | None = None,
        write_feasible: Callable[[Path], None] | None = None,
        write_answer: Callable[[Path], None] | None = None,
        **changes: Any,
    ) -> None:
        """Write what is new beside the old, then make it the truth in one step.

        ``write_generation`` fills the directory of the next generation, ``write_feasible`` that of a new best feasible
        point, ``write_answer`` that of what the problem made of it; ``record`` is a line of history; ``changes`` are
        entries of the manifest.
        """
        if write_generation is not None:
            changes["generation"] = self._write_next("generation", write_generation)
        if write_feasible is not None:
            changes["feasible"] = self._write_next("feasible", write_feasible)
        if write_answer is not None:
            changes["answer"] = self._write_next("answer", write_answer)
        self._publish(record, **changes)
        for entry in NUMBERED:
            self._drop_stale(entry)
        if self._mirror is not None:
            self._mirror.push()

    def _write_next(self, entry: str, write: Callable[[Path], None]) -> int:
        number = self.manifest[entry] + 1
        fresh = self._numbered(entry, number)
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        write(fresh)
        flush(fresh)
        return number

    def _drop_stale(self, entry: str) -> None:
        keep = self._numbered(entry, self.manifest[entry]).name
        folder = self.path / NUMBERED[entry]
        for stale in folder.iterdir() if folder.exists() else ():
            if stale.name != keep:
                shutil.rmtree(stale, ignore_errors=True)

    def _publish(self, record: dict[str, Any] | None, **changes: Any) -> None:
        if record is not None:
            changes["history_bytes"] = self._append_history(record)
        manifest = {**self.manifest, **changes}
        replace_file(self.path / MANIFEST, json.dumps(manifest, indent=1, allow_nan=False))
        self.manifest = manifest

    def _append_history(self, record: dict[str, Any]) -> int:
        # Lines past history_bytes were written by a run that died before its commit: cut them off.
        with open(self.path / HISTORY, "ab") as file:
            file.truncate(min(self.manifest["history_bytes"], file.seek(0, os.SEEK_END)))
            file.seek(0, os.SEEK_END)
            file.write(json.dumps(record).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
            return file.tell()

    def history(self) -> list[dict[str, Any]]:
        """The committed iterations, oldest first."""
        file = self.path / HISTORY
        if not file.exists():
            return []
        lines = file.read_bytes()[: self.manifest["history_bytes"]].splitlines()
        try:
            return [json.loads(line) for line in lines]
        except ValueError as error:
            raise WorkspaceError(f"{file} is damaged ({error}); remove it to go on without the history") from error


def is_path(graph: Any) -> bool:
    """Whether the caller named a workspace instead of handing over edges."""
    return isinstance(graph, str | os.PathLike)
