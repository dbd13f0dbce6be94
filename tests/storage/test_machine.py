"""What a container allows counts, not what the machine has."""

import platform
import subprocess
import sys

import pytest

from ooc_pf.storage import machine
from ooc_pf.storage.memory import parse_memory


def write(root, name, text):
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


MEMINFO = "MemTotal:       24000000 kB\nMemAvailable:   20000000 kB\n"


def test_without_a_container_the_system_decides(tmp_path):
    write(tmp_path, "proc/meminfo", MEMINFO)
    assert machine.memory_at_hand(tmp_path) == 20_000_000 * 1024


def test_the_tightest_group_around_the_process_counts(tmp_path):
    write(tmp_path, "proc/meminfo", MEMINFO)
    write(tmp_path, "proc/self/cgroup", "0::/pods/one\n")
    write(tmp_path, "sys/fs/cgroup/pods/one/memory.max", "max\n")
    write(tmp_path, "sys/fs/cgroup/pods/memory.max", "1000000000\n")
    write(tmp_path, "sys/fs/cgroup/pods/memory.current", "400000000\n")
    write(tmp_path, "sys/fs/cgroup/pods/one/cpu.max", "50000 100000\n")
    assert machine.memory_at_hand(tmp_path) == 600_000_000
    assert machine.cores_at_hand(tmp_path) == 1


def test_the_older_kind_of_groups_counts_too(tmp_path):
    write(tmp_path, "proc/self/cgroup", "5:memory:/box\n3:cpu,cpuacct:/box\n")
    write(tmp_path, "sys/fs/cgroup/memory/box/memory.limit_in_bytes", "500000000")
    write(tmp_path, "sys/fs/cgroup/memory/box/memory.usage_in_bytes", "100000000")
    assert machine.memory_at_hand(tmp_path) == 400_000_000


@pytest.mark.parametrize("text", ["", "nonsense", "0::", "a:b"])
def test_what_cannot_be_read_is_no_limit(tmp_path, text):
    write(tmp_path, "proc/self/cgroup", text)
    assert machine.memory_at_hand(tmp_path) is None
    assert machine.cores_at_hand(tmp_path) >= 1


def test_a_budget_may_be_left_to_the_machine():
    assert parse_memory("auto") > 10**6


COUNT_HEAPS = """
import ctypes, sys, threading
from ooc_pf.storage.machine import share_one_heap
if sys.argv[2] == "shared":
    share_one_heap()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.fopen.restype = ctypes.c_void_p, ctypes.c_void_p
ready = threading.Barrier(4)
def allocate():
    ready.wait()
    for _ in range(1000):
        libc.malloc(ctypes.c_size_t(2000))
threads = [threading.Thread(target=allocate) for _ in range(4)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
report = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
libc.malloc_info(0, report), libc.fclose(report)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has a heap for each thread")
def test_threads_share_one_heap(tmp_path):
    heaps = {}
    for how in ("shared", "apart"):
        report = tmp_path / how
        subprocess.run([sys.executable, "-c", COUNT_HEAPS, report, how], check=True)
        heaps[how] = report.read_text().count("<heap nr")
    assert heaps["shared"] == 1 < heaps["apart"]


def test_c_libraries_without_heaps_of_threads_are_left_alone(monkeypatch):
    monkeypatch.setattr(machine.ctypes, "CDLL", lambda _: object())
    machine.share_one_heap()
