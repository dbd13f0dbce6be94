"""Numba kernels: arrays in, arrays out; no disk, no Python objects.

Arrays that belong together travel as a record, a NamedTuple. A kernel unpacks its records once, before its loops: a
field read inside a loop costs a count of references each time.

Compiled kernels are cached on disk. The cache of a kernel knows about its own file only: after changing a step that
kernels of other files use (`queue`, `heap`, `ragged.mix_bits`), touch those files too.
"""

import numba

from . import compiling  # noqa: F401 (it announces what is compiled)

# One decorator for every kernel: compiled once per machine, and free of the interpreter lock while it runs.
kernel = numba.njit(cache=True, nogil=True)

# For the small steps of a search: a call would cost more than the step, since every array travels as seven numbers.
inlined = numba.njit(inline="always")
