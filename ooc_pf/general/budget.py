"""How a memory budget is shared out for general rows, before anything is allocated."""

from typing import Any

from ..storage.memory import MIB, Budget, parse_memory, refuse_below

# Of general rows: bytes a variable, for a scan and after it the Newton steps, and for the rows at least.
PER_VARIABLE, SCAN, LEAST_GENERAL = 160, 160 * MIB, 64 * MIB


def share_out_rows(memory: Any, *, variables: int, dense: int) -> Budget:
    """Divide ``memory`` for general rows over so many variables, with so many bytes of matrices beside them."""
    budget = parse_memory(memory)
    if budget is None:
        return Budget()
    fixed = PER_VARIABLE * variables + dense + SCAN
    refuse_below(fixed + LEAST_GENERAL, budget, memory)
    return Budget(rows=budget - fixed)
