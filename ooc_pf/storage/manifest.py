"""What a workspace says about itself: the manifest and the history, read and checked before anyone relies on them."""

import hashlib
import json
from pathlib import Path
from typing import Any

from ..errors import WorkspaceError
from .files import check_own
from .records import check_fields, fits, parse_json, shown

FORMAT = "ooc_pf workspace"
VERSION = 2

MANIFEST, HISTORY, LOCK = "manifest.json", "history.jsonl", "lock"
EDGES, GRAPH, SCRATCH = "edges.zarr", "graph.zarr", "scratch"
# Directories of numbered groups, each with the manifest's entry for the number that counts.
NUMBERED = {"generation": "gen", "feasible": "feasible", "answer": "answer"}

LARGEST = 1 << 24  # bytes of a manifest; a larger one was not written here
MOST = (1 << 31) - 1  # nodes, edges
NUMBER = float | int
LONGEST = 1e12  # seconds of an iteration

COUNTS = ("iteration", "history_bytes", *NUMBERED)
ENTRIES = {"graph": dict, "problem": dict | None, "status": str}
GRAPH_ENTRIES = {"kind": str, "nodes": int, "edges": int, "source": dict}
PROBLEM_ENTRIES = {"name": str, "options": dict, "answers": bool}
RUN_ENTRIES = {
    "plan": dict,
    "certificate": dict | None,
    "closing": dict | None,
    "objective": NUMBER | None,
    "lower_bound": NUMBER,
    "n_active": int,
}
CERTIFICATE = {name: NUMBER | None for name in ("objective", "lower_bound", "violation")}
MAYBE_CERTIFIED = {"scale": NUMBER | None, "worth": NUMBER | None, "feasible": bool}
# Of a record of the history: those every one has, and those some have.
ITERATION = {"iteration": int, "stage": str, "lower_bound": NUMBER, "worst": NUMBER, "kept": int, "seconds": dict}
MAYBE = {name: NUMBER for name in ("found", "relaxed", "projections", "gap", "read_bytes", "written_bytes")}
MAYBE |= {name: NUMBER for name in ("cost", "bound_of_clusterings", "ratio")}


def read_manifest(directory: Path, name: Any) -> dict[str, Any]:
    """The manifest of the workspace in ``directory``, in today's form; ``name`` is what the user calls it."""
    file = directory / MANIFEST
    if not check_own(file, directory=False):
        what = f"it has no {MANIFEST}" if directory.is_dir() else "it is a file"
        raise WorkspaceError(
            f"{name} is not a workspace: {what}; `ooc-pf convert SOURCE NEW` makes one of an edge list"
        )
    if file.stat().st_size > LARGEST:
        raise WorkspaceError(f"{file} is damaged: it has {file.stat().st_size:,} bytes")
    manifest = parse_json(file.read_bytes(), file)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise WorkspaceError(f"{file} was not written by this program (no format {FORMAT!r})")
    if manifest.get("version") == 1:
        _upgrade_from_1(manifest)
    if manifest.get("version") != VERSION:
        raise WorkspaceError(
            f"{name} has format version {shown(manifest.get('version'))}, this program reads version {VERSION}; "
            "use the release that wrote it, or convert the edges again"
        )
    _check(manifest, file)
    for entry in (HISTORY, LOCK):
        check_own(directory / entry, directory=False)
    for entry in (EDGES, GRAPH, SCRATCH, *NUMBERED.values()):
        check_own(directory / entry, directory=True)
    return manifest


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


def sealed(manifest: dict[str, Any], history: bytes) -> dict[str, Any]:
    """The manifest with a fingerprint of all that it says and of the history, for `verify` to compare."""
    rest = {name: value for name, value in manifest.items() if name != "seal"}
    total = hashlib.blake2b(json.dumps(rest, sort_keys=True).encode(), digest_size=16)
    total.update(history)
    return {**rest, "seal": total.hexdigest()}


def _check(manifest: dict[str, Any], file: Path) -> None:
    missing = {*ENTRIES, *COUNTS} - manifest.keys()
    if missing:
        raise WorkspaceError(f"{file} is damaged: it lacks {', '.join(sorted(missing))}")
    for field in COUNTS:
        if not fits(manifest[field], int) or manifest[field] < 0:
            raise WorkspaceError(f"{file} is damaged: {field} is {shown(manifest[field])}")
    check_fields(manifest, ENTRIES, file)
    graph, problem = manifest["graph"], manifest["problem"]
    check_fields(graph, GRAPH_ENTRIES, file, "graph.")
    for field in ("nodes", "edges"):
        if not 0 <= graph[field] <= MOST:
            raise WorkspaceError(f"{file} is damaged: graph.{field} is {graph[field]}")
    if "digests" in manifest:
        _check_digests(manifest["digests"], file)
    if problem is not None:
        check_fields(problem, PROBLEM_ENTRIES, file, "problem.")
        _check_run(manifest, file)


def _check_digests(digests: Any, file: Path) -> None:
    """Fingerprints of the groups of one generation, which older releases do not keep."""
    check_fields({"digests": digests}, {"digests": dict}, file)
    check_fields(digests, {"generation": int, "groups": dict}, file, "digests.")
    check_fields(digests["groups"], dict.fromkeys(digests["groups"], str), file, "digests.groups.")


def _check_run(manifest: dict[str, Any], file: Path) -> None:
    """What there must be once there is a run."""
    check_fields(manifest, RUN_ENTRIES, file)
    check_fields(manifest["plan"], {"stage": str}, file, "plan.")
    for entry in ("certificate", "closing"):
        if manifest[entry] is not None:
            check_fields(
                manifest[entry], {**CERTIFICATE, **_those(manifest[entry], MAYBE_CERTIFIED)}, file, f"{entry}."
            )
    if "settings" in manifest["problem"]["options"]:
        check_fields(manifest["problem"]["options"], {"settings": dict | None}, file, "problem.options.")
    if manifest["n_active"] < 0:
        raise WorkspaceError(f"{file} is damaged: n_active is {manifest['n_active']}")
    if manifest["feasible"]:
        check_fields(manifest, {"objective": NUMBER}, file)
    if manifest["answer"]:
        check_fields(manifest, {"facts": dict}, file)
        check_fields(manifest["facts"], dict.fromkeys(manifest["facts"], NUMBER | bool | None), file, "facts.")


def read_history(file: Path, size: int) -> list[dict[str, Any]]:
    """The records in the first ``size`` bytes of the history, oldest first; none if there is no such file."""
    if not check_own(file, directory=False):
        return []
    with open(file, "rb") as stream:
        lines = stream.read(min(size, file.stat().st_size)).splitlines()
    try:
        return [_checked_record(parse_json(line, file, finite=False), file) for line in lines]
    except WorkspaceError as error:
        raise WorkspaceError(f"{error}; remove it to go on without the history") from error


def _checked_record(record: Any, file: Path) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise WorkspaceError(f"{file} is damaged: an iteration is {shown(record)}")
    check_fields(record, ITERATION, file)
    check_fields(record, _those(record, MAYBE), file)
    if "ratio" in record:
        check_fields(record, {"cost": NUMBER}, file)
    check_fields(record["seconds"], dict.fromkeys(record["seconds"], NUMBER), file, "seconds.")
    if not all(0.0 <= seconds < LONGEST for seconds in record["seconds"].values()):
        raise WorkspaceError(f"{file} is damaged: no iteration takes such a time")
    return record


def _those(stored: dict[str, Any], kinds: dict[str, Any]) -> dict[str, Any]:
    """The kinds of the entries that are there."""
    return {name: kind for name, kind in kinds.items() if name in stored}
