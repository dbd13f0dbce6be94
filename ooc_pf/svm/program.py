"""The mathematics: sums over the rows, bounds from them, and line searches.

For one class against the rest the problem is min F(w, b) = 1/2 |w|^2 + C/2 sum s_i max(0, m_i)^2 with the slacks
m_i = 1 - y_i (w x_i + b), y_i = 1 or -1. With z_i = C s_i max(0, m_i) the gradient is (w - sum z_i y_i x_i,
-sum z_i y_i), and a generalised Hessian is I + C sum s_i x_i x_i' over the rows with m_i > 0, the active ones.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import LinAlgError, blas, cho_factor, cho_solve

from ..errors import InputError
from ..kernels.svm import (
    LEAST_PART,
    add_breakpoints,
    gram_sparse,
    judge_rows,
    pull_sparse,
    score_sparse,
    squares_sparse,
)
from . import settings
from .inputs import Block, Sparse, Table

ROOT_OF_LARGEST = 1e154  # of floats
NONE = np.empty(0)


@dataclass(frozen=True)
class Program:
    """A problem for each class.

    Attributes
    ----------
    table : Table
    code : int8 or int32 array
        The number of the class of each row.
    weight : float64 array
        Of the rows; empty: ones.
    by_class : float64 array
        A weight for every number of a class.
    positive : tuple of int
        The classes that are set against the rest; one where there are two classes.
    C : float
    border : bool
        Whether there is an intercept; it is the last entry of a point then.
    """

    table: Table
    code: np.ndarray
    weight: np.ndarray
    by_class: np.ndarray
    positive: tuple[int, ...]
    C: float
    border: bool

    @property
    def width(self) -> int:
        """Variables of one class."""
        return self.table.columns + self.border

    @property
    def dense(self) -> bool:
        """Whether the Hessians are held, rather than multiplied with."""
        return len(self.positive) * self.width**2 <= settings.DENSE_ENTRIES

    def at_zero(self) -> float:
        """F at w = 0 and b = 0; the same for every class."""
        total = 0.0
        for first in range(0, len(self.code), 1 << 16):
            part = self.by_class[self.code[first : first + (1 << 16)]]
            total += float(np.sum(part * self.weight[first : first + len(part)] if len(self.weight) else part))
        return 0.5 * self.C * total


@dataclass
class Sums:
    """What a pass adds up, by class: of one part of the rows, or of all.

    Attributes
    ----------
    mass, square : (classes, 2) arrays
        Sum of z and of z^2 / (C s), over positive and over other rows.
    pull : (classes, 2, columns) array
        Sum of z x over positive rows, and over others; without an intercept the difference in the first place.
    changes : (classes, 2) int array
        Rows that became active, and that stopped.
    gram : list of arrays or None
        Change of C sum s x x' over the active rows, its upper triangle.
    diagonal : (classes, width) array
        Of that sum over all active rows, where only the diagonal is wanted.
    """

    mass: np.ndarray
    square: np.ndarray
    pull: np.ndarray
    changes: np.ndarray
    gram: list[np.ndarray | None]
    diagonal: np.ndarray

    @classmethod
    def zero(cls, program: Program) -> "Sums":
        k, d = len(program.positive), program.table.columns
        wanted = 0 if program.dense else program.width
        pull = np.zeros((k, 2 if program.border else 1, d))
        changes = np.zeros((k, 2), np.int64)
        return cls(np.zeros((k, 2)), np.zeros((k, 2)), pull, changes, [None] * k, np.zeros((k, wanted)))

    def add(self, other: "Sums") -> None:
        """Add those of the next part."""
        for name in ("mass", "square", "pull", "changes", "diagonal"):
            mine = getattr(self, name)
            mine += getattr(other, name)
        for c, gram in enumerate(other.gram):
            if gram is not None:
                mine = self.gram[c]
                if mine is None:
                    self.gram[c] = gram
                else:
                    mine += gram


# -- one part of the rows ---------------------------------------------------------------------------------------------


def add_block(
    program: Program, sums: Sums, w: np.ndarray, live: Sequence[int], scale: float, at: int, block: Block,
    active: np.ndarray, *, check: bool, hessian: bool,
) -> None:  # fmt: skip
    """Add the rows of a block that begins at row ``at``; sets ``active`` for the ``live`` classes.

    ``scale`` is what C is multiplied by, on a sample; with ``check`` numbers that are not finite are refused; with
    ``hessian`` its change is added up, or its diagonal.
    """
    if not isinstance(block, np.ndarray):
        _add_sparse(program, sums, w, live, scale, at, block, active, check=check, hessian=hessian)
        return
    gathers = {c: Gather(program, c, sums, scale) for c in live}
    stride = max(settings.TILE_ENTRIES // block.shape[1], 16)
    for first in range(0, len(block), stride):
        tile = block[first : first + stride]
        tile = tile if tile.dtype == np.float64 else tile.astype(np.float64)
        span = slice(at + first, at + first + len(tile))
        if check:
            check_block(tile, range(span.start, span.stop))
        scores = _scores(program, tile, w, live)
        for c, score in zip(live, scores, strict=True):
            z, change = _judge(program, sums, c, scale, span, np.ascontiguousarray(score), active[c, span])
            code = program.code[span]
            if program.border:
                above = code == program.positive[c]
                sums.pull[c, 0] += np.where(above, z, 0.0) @ tile
                sums.pull[c, 1] += np.where(above, 0.0, z) @ tile
            else:
                sums.pull[c, 0] += np.where(code == program.positive[c], z, -z) @ tile
            if program.dense and hessian:
                gathers[c].take(tile, change, span)
            elif hessian:
                weights = active[c, span] * row_weights(program, span, scale)
                _add_diagonal(sums.diagonal[c], weights, weights @ (tile * tile))
    for gather in gathers.values():
        gather.flush()


def _scores(program: Program, tile: np.ndarray, w: np.ndarray, live: Sequence[int]) -> list[np.ndarray]:
    d = program.table.columns
    if len(live) == 1:
        c = live[0]
        return [tile @ w[c, :d] + (w[c, d] if program.border else 0.0)]
    found = w[list(live), :d] @ tile.T
    if program.border:
        found += w[list(live), d:]
    return list(found)


def _judge(
    program: Program, sums: Sums, c: int, scale: float, span: slice, score: np.ndarray, active: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    z, change = np.empty(len(score)), np.empty(len(score), np.int8)
    weight = program.weight[span] if len(program.weight) else NONE
    *values, entered, left = judge_rows(
        score, program.code[span], program.positive[c], weight, program.by_class, program.C * scale, active, change, z
    )
    sums.mass[c] += values[0], values[2]
    sums.square[c] += values[1], values[3]
    sums.changes[c] += entered, left
    return z, change


def row_weights(program: Program, span: slice, scale: float) -> np.ndarray:
    """C times the weight of each row."""
    found = program.by_class[program.code[span]] * (program.C * scale)
    return found * program.weight[span] if len(program.weight) else found


@dataclass
class Gather:
    """Adds x x' of rows that become active to the Hessian of a class, and takes it from that of rows that stop.

    A few rows at a time would keep BLAS busy with packing, so they wait until there are more.
    """

    program: Program
    c: int
    sums: Sums
    scale: float
    waiting: list[tuple[float, np.ndarray]] = field(default_factory=list)

    def take(self, tile: np.ndarray, change: np.ndarray, span: slice) -> None:
        for sign in (1, -1):
            rows = np.flatnonzero(change == sign)
            if not len(rows):
                continue
            picked = tile if len(rows) == len(tile) else tile[rows]
            if self.program.border:
                picked = np.hstack((picked, np.ones((len(rows), 1))))
            if len(self.program.weight) or np.any(self.program.by_class != 1.0):
                weight = row_weights(self.program, span, self.scale)[rows] / (self.program.C * self.scale)
                picked = picked * np.sqrt(weight)[:, None]
            if len(rows) < settings.FEW_ROWS:
                self.waiting.append((sign, picked))
            else:
                self._add(sign, picked)

    def flush(self) -> None:
        for sign in (1, -1):
            found = [rows for s, rows in self.waiting if s == sign]
            if found:
                self._add(sign, np.vstack(found))
        self.waiting = []

    def _add(self, sign: float, rows: np.ndarray) -> None:
        gram = self.sums.gram[self.c]
        if gram is None:
            gram = np.zeros((self.program.width,) * 2, order="F")
        alpha = sign * self.program.C * self.scale
        self.sums.gram[self.c] = blas.dsyrk(alpha, rows.T, beta=1.0, c=gram, overwrite_c=1)


def _add_sparse(
    program: Program, sums: Sums, w: np.ndarray, live: Sequence[int], scale: float, at: int, block: Sparse,
    active: np.ndarray, *, check: bool, hessian: bool,
) -> None:  # fmt: skip
    (start, index, value), d = block.arrays, block.width
    span = slice(at, at + len(block))
    if check:
        check_block(block, range(span.start, span.stop))
    for c in live:
        score = score_sparse(start, index, value, w[c, :d], w[c, d] if program.border else 0.0)
        z, change = _judge(program, sums, c, scale, span, score, active[c, span])
        above = program.code[span] == program.positive[c]
        if program.border:
            pull_sparse(start, index, value, np.where(above, z, 0.0), sums.pull[c, 0])
            pull_sparse(start, index, value, np.where(above, 0.0, z), sums.pull[c, 1])
        else:
            pull_sparse(start, index, value, np.where(above, z, -z), sums.pull[c, 0])
        weights = row_weights(program, span, scale)
        if hessian and not program.dense:
            squares = np.zeros(d)
            squares_sparse(start, index, value, active[c, span] * weights, squares)
            _add_diagonal(sums.diagonal[c], active[c, span] * weights, squares)
        elif hessian and change.any():
            if sums.gram[c] is None:
                sums.gram[c] = np.zeros((program.width,) * 2, order="F")
            gram_sparse(start, index, value, change * weights, program.border, sums.gram[c])


def _add_diagonal(diagonal: np.ndarray, weights: np.ndarray, squares: np.ndarray) -> None:
    diagonal[: len(squares)] += squares
    diagonal[len(squares) :] += weights.sum()  # of the column of ones, if there is one


def check_block(block: Block, rows: np.ndarray | range) -> None:
    """Refuse numbers that are not finite; ``rows`` are those of the block."""
    if isinstance(block, np.ndarray):
        if not math.isfinite(float(np.sum(block))) and not np.isfinite(block).all():  # a sum may overflow
            row, column = np.argwhere(~np.isfinite(block))[0].tolist()
            _refuse(block[row, column], int(rows[row]), column)
    elif not np.isfinite(block.value).all():
        entry = int(np.argmin(np.isfinite(block.value)))
        row = int(np.searchsorted(block.start, entry, side="right")) - 1
        _refuse(block.value[entry], int(rows[row]), int(block.index[entry]))


def _refuse(value: float, row: int, column: int) -> None:
    # "NaN" and "infinity" are words that scikit-learn's checks look for.
    name = "NaN" if math.isnan(value) else "infinity"
    raise InputError(f"X contains {name} at row {row}, column {column}; remove such rows or fill them in")


# -- what the sums prove ----------------------------------------------------------------------------------------------


def value_at(w: np.ndarray, border: bool, square: np.ndarray) -> float:
    """F of one class."""
    inner = w[: len(w) - border]
    return 0.5 * float(inner @ inner) + 0.5 * float(square.sum())


def gradient_at(w: np.ndarray, border: bool, sums: Sums, c: int) -> np.ndarray:
    """The gradient of one class."""
    if not border:
        return w - sums.pull[c, 0]
    pull = sums.pull[c, 0] - sums.pull[c, 1]
    return np.append(w[:-1] - pull, sums.mass[c, 1] - sums.mass[c, 0])


def bound_at(w: np.ndarray, border: bool, sums: Sums, c: int) -> float:
    """A lower bound of the optimum of one class: the dual at multiples of z.

    The dual is D(z) = sum z - 1/2 |sum z y x|^2 - 1/2 sum z^2 / (C s) over z >= 0, with an intercept only those with
    sum y z = 0. Without one F - D(z) = |gradient|^2 / 2. With one z is scaled down on the side with the larger sum,
    after which the sums agree. Along a ray D is a parabola, so the best multiple is known: D = (sum z)^2 / 2 q.
    """
    mass, square = sums.mass[c], sums.square[c]
    if not border:
        gradient = w - sums.pull[c, 0]
        best = value_at(w, border, square) - 0.5 * float(gradient @ gradient)
        pull, part = sums.pull[c, 0], np.ones(2)
    else:
        if mass.min() <= 0.0:
            return 0.0
        best, part = 0.0, mass.min() / mass
        pull = part[0] * sums.pull[c, 0] - part[1] * sums.pull[c, 1]
    curvature = float(pull @ pull) + float(part**2 @ square)
    total, along = float(part @ mass), 0.0
    if 0.0 < curvature < np.inf:
        # The square alone may be too large a number.
        along = total**2 / (2.0 * curvature) if total < ROOT_OF_LARGEST else total * (total / (2.0 * curvature))
    return max(best, along, 0.0)


def newton_step(gram: np.ndarray, gradient: np.ndarray, border: bool) -> np.ndarray:
    """The step to the minimum of the quadratic model; ``gram`` is the upper triangle of the sum over active rows."""
    matrix = np.array(gram, order="F")
    size = len(matrix)
    diagonal = matrix.reshape(-1, order="F")[:: size + 1]
    diagonal[: size - border] += 1.0
    if border and diagonal[-1] <= 0.0:
        diagonal[-1] = 1.0  # no row is active: b is free
    ridge, largest = 0.0, float(np.abs(matrix).max()) + float(np.abs(gradient).max())
    while np.isfinite(largest + ridge):
        try:
            lifted = matrix if ridge == 0.0 else matrix + np.diag(np.full(size, ridge))
            return -cho_solve(cho_factor(lifted, lower=False), gradient)
        except LinAlgError:
            # Rounding has made it indefinite; a little more on the diagonal still gives a descent direction.
            ridge = max(10.0 * ridge, 1e-14 * float(np.abs(diagonal).max()))
    raise InputError("the rows are too large to be squared; divide X by a power of ten, or standardise it")


# -- line search ------------------------------------------------------------------------------------------------------


def add_search(
    program: Program, found: np.ndarray, base: np.ndarray, w: np.ndarray, live: Sequence[int], scale: float, at: int,
    block: Block,
) -> None:  # fmt: skip
    """Add a block to the derivatives between ``base`` and ``w``; ``found`` is (classes, 2, BINS + 2)."""
    span, d = slice(at, at + len(block)), program.table.columns
    weight = program.weight[span] if len(program.weight) else NONE
    for c in live:
        ends = []
        for point in (base[c], w[c]):
            shift = float(point[d]) if program.border else 0.0
            if isinstance(block, np.ndarray):
                ends.append(block @ point[:d] + shift)
            else:
                ends.append(score_sparse(*block.arrays, point[:d], shift))
        code, positive = program.code[span], program.positive[c]
        add_breakpoints(*ends, code, positive, weight, program.by_class, program.C * scale, *found[c])


def best_part(base: np.ndarray, w: np.ndarray, border: bool, found: np.ndarray) -> float:
    """The part of the step from ``base`` to ``w`` at which the derivative of F is zero, between two of its points."""
    inner, step = base[: len(w) - border], (w - base)[: len(w) - border]
    t = np.append(0.0, LEAST_PART ** (1.0 - np.arange(1, settings.BINS + 1) / settings.BINS))
    constant, slope = np.cumsum(found, axis=1)[:, :-1]
    derivative = float(inner @ step) + constant + t * (float(step @ step) + slope)
    if derivative[-1] <= 0.0:
        return 1.0
    at = int(np.argmax(derivative > 0.0))
    if at == 0:
        return 0.0
    low, high = derivative[at - 1], derivative[at]
    return float(t[at - 1] + (t[at] - t[at - 1]) * (-low / (high - low)))
