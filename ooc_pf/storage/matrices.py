"""A matrix of float64 in a file of a workspace, written by parts and mapped when read."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from .files import check_own, new_file
from .records import require


def write_matrix(path: Path, parts: Iterable[np.ndarray], shape: tuple[int, int]) -> None:
    """Write a matrix, whose rows come in parts, as an .npy file."""
    with new_file(path) as file:
        header = {"descr": np.lib.format.dtype_to_descr(np.dtype(np.float64)), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for part in parts:
            np.ascontiguousarray(part, np.float64).tofile(file)


def open_matrix(path: Path, shape: tuple[int, int]) -> np.ndarray:
    """The matrix that `write_matrix` wrote, mapped."""
    require(check_own(path, directory=False), path, "it is not there")
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError) as error:
        require(False, path, str(error).splitlines()[0][:200])
        raise
    require(found.shape == shape and found.dtype == np.float64, path, "it is not the matrix that a run wrote")
    return found
