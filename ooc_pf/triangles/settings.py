"""The numbers of the triangle family, by what they do.

`Settings` shape the bits of an answer and are kept with a run. The other numbers are the same for every run. They are
read as ``settings.NAME``, so that a test can set them.
"""

from dataclasses import asdict, dataclass
from typing import Any

from ..kernels.triangles import BITS
from ..storage.memory import MIB
from ..storage.records import read_record, require

ENGINE = "dense"  # what manifests call this family
MOST_SIDE, MOST_SWEEPS = 1 << BITS, 1 << 10  # stored settings beyond are damage; lines have so many bits in a code

RETIRED = ("slow", "stride")  # of the plans of older releases


@dataclass(frozen=True)
class Settings:
    """How scans and sweeps take turns.

    Attributes
    ----------
    side : int
        Lines of a tile.
    first, fraction : float
        A scan takes up violations above this fraction of the largest number at first, of the largest violation later.
    sweeps, more_sweeps : int
        After each scan, at most: at first, and from iteration ``patience`` on.
    patience : int
    """

    side: int
    first: float = 0.1
    fraction: float = 0.1
    sweeps: int = 10
    patience: int = 15
    more_sweeps: int = 300
    engine: str = ENGINE

    def stored(self) -> dict[str, Any]:
        """As a manifest has them."""
        return asdict(self)

    @classmethod
    def read(cls, stored: dict[str, Any], where: Any) -> "Settings":
        """What `stored` gave; refuses what it could not have given, and names ``where`` it was found."""
        found = read_record(cls, stored, where, "settings")
        sizes = min(found.first, found.fraction, found.patience) >= 0
        sizes = sizes and all(1 <= most <= MOST_SWEEPS for most in (found.sweeps, found.more_sweeps))
        sound = sizes and found.engine == ENGINE and 1 <= found.side <= MOST_SIDE
        require(sound, where, "the settings are none that a run has")
        return found


def without_retired(stored: Any) -> Any:
    """Stored values without those that only older releases used."""
    return {name: stored[name] for name in stored if name not in RETIRED} if isinstance(stored, dict) else stored


def choose_side(nodes: int) -> int:
    """Lines of a tile: small tiles stay in cache, large ones need fewer visits."""
    return next((side for most, side in SIDES if nodes <= most), LARGEST_SIDE)


# -- shapes the bits, the same for every run ------------------------------------------------------------------------

SIDES = ((128, 128), (2048, 64), (16384, 128))  # (nodes at most, lines of a tile)
LARGEST_SIDE = 256
SETTLED = 0.3  # sweeps end when they correct less than this part of the largest violation that may be left
CERTIFY_AT = 0.3  # of the tolerance: the norm of the violations at which a certificate is likely to meet it
STRICTER = 0.1  # that, after every attempt to certify that came too early, times this

# -- costs time only ------------------------------------------------------------------------------------------------

FEW_ROWS = 20_000  # of a round of blocks: handing out fewer costs more than it brings

# Bytes, for sharing out a budget; STRIPES are matrices of the lines of one tile.
FOR_ALL, LEAST_ROWS, STRIPES = 32 * MIB, 16 * MIB, 12
FOR_EACH_RESIDENT, FOR_EACH_VISITOR = 4 * MIB, 16 * MIB  # of a worker, with whole matrices and with tiles at hand

# -- rounding -------------------------------------------------------------------------------------------------------

ROUNDING = 1e-14  # of the largest number: violations below are rounding
LIMIT_ROUNDING = 100 * ROUNDING  # how far a feasible point may be below a lower limit
CLOSED_LIMITS = 1e-12  # how far a lower limit may be above the closure of the upper ones
