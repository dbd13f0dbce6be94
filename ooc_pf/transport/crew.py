"""Threads that share out the parts of a search."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import SearchStopped


@dataclass(frozen=True)
class Crew:
    """Threads, or none; and the flag that ends work early."""

    threads: Executor | None = None
    stop: np.ndarray = field(default_factory=lambda: np.zeros(1, np.uint8))

    def each(self, work: Callable[[int], Any], parts: Iterable[int]) -> Iterator[Any]:
        """What ``work`` makes of each part, in their order."""
        yield from (map if self.threads is None else self.threads.map)(work, parts)

    def check(self) -> None:
        """Leave what is half done when a stop was asked for."""
        if self.stop[0]:
            raise SearchStopped
