"""A program as the input of a run."""

from dataclasses import dataclass

import numpy as np

from ..engine.family import Size
from ..engine.handed import HandedData
from ..storage.arrays import digest
from .program import Program


@dataclass(frozen=True)
class SvmData(HandedData):
    """Rows, labels and weights."""

    program: Program

    @property
    def size(self) -> Size:
        return Size(0, len(self.program.positive) * self.program.width)

    @property
    def fingerprint(self) -> str:
        program = self.program
        return digest(
            np.frombuffer(program.table.fingerprint().encode(), np.uint8), program.code, program.weight,
            program.by_class, np.array(program.positive),
        )  # fmt: skip
