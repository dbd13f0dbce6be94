"""Names of rows: text that the caller gives as keys.

A row is found again by its key, a hash of its name. The name is kept beside it as UTF-8, and told in its stead.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

NAMED = 1 << 63  # keys from here on are hashes of names, or of rows; below are the whole numbers of the caller
LONGEST = 1 << 12  # bytes of a name; shapes files only


@dataclass(frozen=True)
class Names:
    """The name of row i is ``text[start[i]:start[i + 1]]``, uint8; one that is empty is none."""

    start: np.ndarray
    text: np.ndarray

    @classmethod
    def of(cls, names: Sequence[str]) -> "Names":
        """The names of rows; raises UnicodeEncodeError for halves of characters."""
        encoded = [name.encode() for name in names]
        start = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        return cls(start, np.frombuffer(b"".join(encoded), np.uint8))

    @classmethod
    def none(cls, rows: int) -> "Names":
        """No name for any of so many rows."""
        return cls(np.zeros(rows + 1, np.int64), np.empty(0, np.uint8))

    @classmethod
    def join(cls, parts: Sequence["Names"]) -> "Names":
        """The names of all parts, in order."""
        lengths = np.concatenate([np.diff(part.start) for part in parts])
        start = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
        return cls(start, np.concatenate([part.text for part in parts]))

    def __len__(self) -> int:
        return len(self.start) - 1

    def __iter__(self) -> Iterator[str]:
        text, ends = self.text.tobytes(), self.start.tolist()
        return (text[ends[row] : ends[row + 1]].decode() for row in range(len(self)))

    def select(self, keep: np.ndarray) -> "Names":
        """The names of the rows marked in ``keep``, bool[rows]."""
        lengths = np.diff(self.start)
        start = np.concatenate(([0], np.cumsum(lengths[keep], dtype=np.int64)))
        return Names(start, self.text[np.repeat(keep, lengths)])

    def span(self, first: int, last: int) -> "Names":
        """The names of rows ``first`` to ``last``, as views."""
        entries = slice(self.start[first], self.start[last])
        return Names(self.start[first : last + 1] - self.start[first], self.text[entries])

    def keyed(self, key: np.ndarray) -> np.ndarray:
        """``key`` with those of the rows that have a name."""
        hashes = (_hash(name) if name else int(own) for name, own in zip(self, key, strict=True))
        return np.fromiter(hashes, np.uint64, len(key))

    def fit(self, key: np.ndarray) -> bool:
        """Whether these are names of rows with these keys; for arrays that anybody may have written."""
        start = self.start
        sound = len(start) == len(key) + 1 and start[0] == 0 and start[-1] == len(self.text)
        if not sound or (np.diff(start) < 0).any():
            return False
        try:
            return bool((self.keyed(key) == key).all())
        except UnicodeDecodeError:
            return False


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little") | NAMED
