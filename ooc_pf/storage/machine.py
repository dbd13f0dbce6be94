"""What this process may use of the machine: memory and cores, also where a container allows it less than there is."""

import contextlib
import ctypes
import math
import os
from pathlib import Path

ROOT = Path("/")
MOST_HEAPS = -8  # the number by which glibc's mallopt knows how many heaps there may be
SHARE = 0.8  # of the memory that is free: the rest is for the interpreter and for what cannot be counted


def memory_at_hand(root: Path = ROOT) -> int | None:
    """Bytes that this process may still take, by the system and by every control group it is in; None: unknown."""
    free = [_meminfo(root)]
    for group in _groups(root, "memory"):
        for most, used in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
            limit, taken = _number(group / most), _number(group / used)
            if limit is not None:
                free.append(max(limit - (taken or 0), 0))
    known = [bytes_ for bytes_ in free if bytes_ is not None]
    return min(known) if known else None


def cores_at_hand(root: Path = ROOT) -> int:
    """Cores that this process may use, at least one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for group in _groups(root, "cpu"):
        quota, period = _number(group / "cpu.cfs_quota_us"), _number(group / "cpu.cfs_period_us")
        parts = _text(group / "cpu.max").split()
        if len(parts) == 2 and parts[0].isdigit():
            quota, period = int(parts[0]), int(parts[1])
        if quota is not None and period and quota > 0:
            cores = min(cores, math.ceil(quota / period))
    return max(cores, 1)


def share_one_heap() -> None:
    """Let the threads of this process allocate from one heap, where the C library is glibc.

    By default each has a heap of its own. What was freed in one is no use to the others, and counts as memory taken.
    """
    with contextlib.suppress(AttributeError, OSError):  # other libraries have one heap, or other means
        ctypes.CDLL(None).mallopt(MOST_HEAPS, 1)


def _groups(root: Path, controller: str) -> list[Path]:
    """The control group of this process and those around it, of either version of control groups."""
    found = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, name = line.split(":", 2) if line.count(":") >= 2 else ("", "-", "")
        if controllers == "":
            top = root / "sys/fs/cgroup"
        elif controller in controllers.split(","):
            top = root / "sys/fs/cgroup" / controller
        else:
            continue
        inner = Path(name.lstrip("/"))
        found += [top / inner, *(top / parent for parent in inner.parents)]
    return found


def _meminfo(root: Path) -> int | None:
    for line in _text(root / "proc/meminfo").splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * 1024
    return None


def _number(file: Path) -> int | None:
    """A number from a file of the system; None where it has none, or says that there is no limit."""
    text = _text(file).strip()
    return int(text) if text.lstrip("-").isdigit() else None


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
