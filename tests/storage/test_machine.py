"""What a container allows counts, not what the machine has."""

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
