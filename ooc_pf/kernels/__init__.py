"""Numba kernels: arrays in, arrays out; no disk, no Python objects."""

import numba

# One decorator for every kernel: compiled once per machine, and free of the interpreter lock while it runs.
kernel = numba.njit(cache=True, nogil=True)

# For the small steps of a search: a call would cost more than the step, since every array travels as seven numbers.
inlined = numba.njit(inline="always")
