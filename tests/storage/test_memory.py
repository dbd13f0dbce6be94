"""How a budget may be written."""

import pytest

import ooc_pf as pf
from ooc_pf.storage import memory


def test_memory_sizes():
    assert memory.parse_memory("500MB") == 500_000_000
    assert memory.parse_memory("1.5GiB") == 3 * 2**29
    assert memory.parse_memory("2k") == 2000
    assert memory.parse_memory(12345) == 12345
    assert memory.parse_memory(1e9) == 10**9
    assert memory.parse_memory(None) is None
    for wrong in ("", "many", "1XB", "-3GB", 0, "1.2.3MB"):
        with pytest.raises(pf.InputError):
            memory.parse_memory(wrong)
