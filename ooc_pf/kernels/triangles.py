"""Triangles of the complete graph, tile by tile.

The matrix is cut into square tiles of which those with I <= J are kept. A triple of tiles I <= J <= K holds the
triangles i < j < k over the tiles (I, J), (I, K), (J, K), called ij, ik, jk here; where two of I, J, K are equal so
are two of the tiles, and the kernels change them through either name. A row is a triangle and its closing side, the
one that must not exceed the sum of the other two: within its triple one int32, see `pack_row`.

``triples`` is int32[m, 8]: positions of the tiles ij, ik, jk; whether I = J, whether J = K; lines of I, J, K in use.
``inverse`` (1 / weight), ``shift``, ``lower`` and ``upper`` are tiles like x, or one number: no weights, no limits.
The rows of triple t are ``start[t]:start[t + 1]``, in the order of their codes.
"""

import numpy as np

from ..kernels import inlined, kernel

BITS = 8  # of a line number inside a tile
MASK = (1 << BITS) - 1
THIRD = 1.0 / 3.0


@inlined
def pack_row(i, j, k, closing):
    """Lines inside the tiles, and which of the sides 0: ij, 1: ik, 2: jk is the closing one."""
    return ((i << BITS | j) << BITS | k) << 2 | closing


@inlined
def unpack_row(code):
    """(i, j, k, closing) of a code."""
    return code >> (2 + 2 * BITS), (code >> (2 + BITS)) & MASK, (code >> 2) & MASK, code & 3


@inlined
def move_sides(ij, ik, jk, i, j, k, closing, step, p, q, r):
    """Let the dual of a row grow by ``step``: the closing side shrinks, the others grow."""
    ij[i, j] += -step * p if closing == 0 else step * p
    ik[i, k] += -step * q if closing == 1 else step * q
    jk[j, k] += -step * r if closing == 2 else step * r


@kernel
def unpack_rows(code):
    """int32[rows, 4]: i, j, k and closing of every code."""
    out = np.empty((len(code), 4), np.int32)
    for row in range(len(code)):
        out[row] = unpack_row(code[row])
    return out


@inlined
def free_from_to(y, speed, low, high):
    """From when until when y, moving, is within its limits."""
    return ((low - y) / speed, (high - y) / speed) if speed > 0.0 else ((high - y) / speed, (low - y) / speed)


@inlined
def next_bend(at, one, other, far):
    """The nearest of three times that is later than ``at``."""
    return min(one if one > at else far, other if other > at else far, far)


@kernel
def project_within(x, shift, lower, upper, ij, ik, jk, closing, p, q, r, dual):
    """Project onto one row where x has limits; returns the growth of its dual, and the correction of the row.

    ``ij``, ``ik``, ``jk`` index the three sides. With x = y brought within the limits, the violation falls with the
    dual in pieces that bend where a side meets a limit; the walk along the pieces ends where the row is an equality.
    """
    ya, yb, yc = x[ij] + shift[ij], x[ik] + shift[ik], x[jk] + shift[jk]
    excess = -x[ij] - x[ik] - x[jk]
    excess += 2.0 * (x[ij] if closing == 0 else (x[ik] if closing == 1 else x[jk]))
    grow = 1.0 if excess > 0.0 else -1.0
    va = -grow * p if closing == 0 else grow * p
    vb = -grow * q if closing == 1 else grow * q
    vc = -grow * r if closing == 2 else grow * r
    from_a, to_a = free_from_to(ya, va, lower[ij], upper[ij])
    from_b, to_b = free_from_to(yb, vb, lower[ik], upper[ik])
    from_c, to_c = free_from_to(yc, vc, lower[jk], upper[jk])
    left, step, most = abs(excess), 0.0, np.inf if grow > 0.0 else dual
    while step < most:
        rate = p if from_a <= step < to_a else 0.0
        rate += q if from_b <= step < to_b else 0.0
        rate += r if from_c <= step < to_c else 0.0
        bend = next_bend(step, from_a, to_a, most)
        bend = next_bend(step, from_b, to_b, bend)
        bend = next_bend(step, from_c, to_c, bend)
        if rate > 0.0 and left <= rate * (bend - step):
            step, left = step + left / rate, 0.0
            break
        if bend == np.inf:
            break
        step, left = bend, left - rate * (bend - step)
    ya, yb, yc = ya + va * step, yb + vb * step, yc + vc * step
    x[ij], x[ik] = min(max(ya, lower[ij]), upper[ij]), min(max(yb, lower[ik]), upper[ik])
    x[jk] = min(max(yc, lower[jk]), upper[jk])
    shift[ij], shift[ik], shift[jk] = ya - x[ij], yb - x[ik], yc - x[jk]
    return grow * step, abs(excess) - left


@inlined
def move_within(x, shift, lower, upper, side, by):
    """Move y of one side, and with it x, which is y brought within the limits."""
    y = x[side] + shift[side] + by
    x[side] = min(max(y, lower[side]), upper[side])
    shift[side] = y - x[side]


@kernel
def _project_rows(x, inverse, shift, lower, upper, triple, code, dual, speed, momentum, first, last):
    """Project onto the rows ``first:last`` of one triple in turn; returns the largest correction, and the course.

    x has gone ahead as if every dual had grown by ``momentum`` times its ``speed``. A row does that when
    its turn comes; where its dual would fall below zero the projection takes x back. The course is the sum of
    correction times speed over the rows: below zero, momentum carries them the wrong way.
    """
    if inverse.size == 1 and shift.size == 1:
        return _project_plainly(x, triple, code, dual, speed, momentum, first, last)
    a, b, c = triple[0], triple[1], triple[2]
    ij, ik, jk = x[a], x[b], x[c]
    weighted, limited = inverse.size > 1, shift.size > 1
    p, q, r = 1.0, 1.0, 1.0
    largest, course = 0.0, 0.0
    for row in range(first, last):
        i, j, k, closing = unpack_row(code[row])
        ahead = momentum * speed[row]
        now = dual[row] + ahead
        d, e, f = ij[i, j], ik[i, k], jk[j, k]
        excess = d - e - f if closing == 0 else (e - d - f if closing == 1 else f - d - e)
        if excess <= 0.0 and now == 0.0:
            dual[row], speed[row] = 0.0, ahead
            continue
        if weighted:
            p, q, r = inverse[a, i, j], inverse[b, i, k], inverse[c, j, k]
        if limited:
            sides = (a, i, j), (b, i, k), (c, j, k)
            back = max(-now, 0.0)
            if back > 0.0:
                move_within(x, shift, lower, upper, (a, i, j), -back * p if closing == 0 else back * p)
                move_within(x, shift, lower, upper, (b, i, k), -back * q if closing == 1 else back * q)
                move_within(x, shift, lower, upper, (c, j, k), -back * r if closing == 2 else back * r)
            step, moved = project_within(x, shift, lower, upper, *sides, closing, p, q, r, now + back)
            step += back
            moved += back * (p + q + r)
        else:
            step = max(excess / (p + q + r), -now)
            move_sides(ij, ik, jk, i, j, k, closing, step, p, q, r)
            moved = abs(step) * (p + q + r)
        dual[row], speed[row] = max(now + step, 0.0), ahead + step
        largest = max(largest, moved)
        course += step * speed[row] * (p + q + r)
    return largest, course


@kernel
def _project_plainly(x, triple, code, dual, speed, momentum, first, last):
    """`_project_rows` where nothing has weights or limits, in half the time: large tables spend most of theirs here."""
    ij, ik, jk = x[triple[0]], x[triple[1]], x[triple[2]]
    largest, course = 0.0, 0.0
    for row in range(first, last):
        i, j, k, closing = unpack_row(code[row])
        d, e, f = ij[i, j], ik[i, k], jk[j, k]
        excess = 2.0 * (d if closing == 0 else (e if closing == 1 else f)) - d - e - f
        ahead = momentum * speed[row]
        now = dual[row] + ahead
        step = max(excess * THIRD, -now)  # no row is passed over: to guess which ones are costs more than the step
        move_sides(ij, ik, jk, i, j, k, closing, step, 1.0, 1.0, 1.0)
        dual[row], speed[row] = max(now + step, 0.0), ahead + step
        largest = max(largest, abs(step))
        course += step * speed[row]
    return 3.0 * largest, 3.0 * course


@kernel
def _project_violated(x, inverse, shift, lower, upper, triple, slack, code, step, totals):
    """Look at every triangle of one triple and project onto the violated rows as they are found.

    ``code`` and ``step`` take the rows and the growth of their duals, and are given back, longer if they had to be,
    with the number of rows. ``totals`` takes the largest violation and adds the squares of all.
    """
    a, b, c = triple[0], triple[1], triple[2]
    ij, ik, jk = x[a], x[b], x[c]
    weighted, limited = inverse.size > 1, shift.size > 1
    p, q, r = 1.0, 1.0, 1.0
    count = 0
    for i in range(triple[5]):
        for j in range(i + 1 if triple[3] else 0, triple[6]):
            near = j + 1 if triple[4] else 0
            side_ik, side_jk = ik[i, near : triple[7]], jk[j, near : triple[7]]
            short, long = ij[i, j] - slack, ij[i, j] + slack
            # Few lines have a violated row. This loop has no branches, so that the compiler vectorises it.
            over = 0
            for k in range(len(side_ik)):
                e, f = side_ik[k], side_jk[k]
                over += np.int64(e + f < short) + np.int64(abs(e - f) > long)
            if over == 0:
                continue
            if len(code) < count + len(side_ik):
                code, step = _longer(code, step, count, 2 * (count + len(side_ik)))
            for k in range(near, triple[7]):
                d, e, f = ij[i, j], ik[i, k], jk[j, k]
                if e + f < d - slack:
                    excess, closing = d - e - f, 0
                elif e - f > d + slack:
                    excess, closing = e - d - f, 1
                elif f - e > d + slack:
                    excess, closing = f - d - e, 2
                else:
                    continue
                if weighted:
                    p, q, r = inverse[a, i, j], inverse[b, i, k], inverse[c, j, k]
                if limited:
                    sides = (a, i, j), (b, i, k), (c, j, k)
                    step[count] = project_within(x, shift, lower, upper, *sides, closing, p, q, r, 0.0)[0]
                else:
                    step[count] = excess / (p + q + r)
                    move_sides(ij, ik, jk, i, j, k, closing, step[count], p, q, r)
                code[count] = pack_row(i, j, k, closing)
                totals[0] = max(totals[0], excess)
                totals[1] += excess * excess
                count += 1
    return code, step, count


@kernel
def _longer(code, dual, count, length):
    """Copies with room for ``length`` rows, of which the first ``count`` are kept."""
    more_code, more_dual = np.empty(length, np.int32), np.empty(length)
    more_code[:count], more_dual[:count] = code[:count], dual[:count]
    return more_code, more_dual


@kernel
def _merge_rows(code, dual, first, last, found, step, many, to_code, to_dual, count):
    """Append two sorted runs as one; a row in both gets the sum of its duals, and one of dual zero is forgotten."""
    begin = 0
    while first < last or begin < many:
        if begin == many or (first < last and code[first] < found[begin]):
            row, value = code[first], dual[first]
            first += 1
        elif first == last or found[begin] < code[first]:
            row, value = found[begin], step[begin]
            begin += 1
        else:
            row, value = code[first], dual[first] + step[begin]
            first, begin = first + 1, begin + 1
        if value > 0.0:
            to_code[count], to_dual[count] = row, value
            count += 1
    return count


@kernel
def sweep_triples(x, inverse, shift, lower, upper, triples, code, dual, speed, start, momentum):
    """Project onto every remembered row of the triples; returns the largest correction of a row, and the course.

    ``speed``, in and out, is how much every dual grew in the sweep before.
    """
    largest, course = 0.0, 0.0
    for t in range(len(triples)):
        own = start[t], start[t + 1]
        moved, along = _project_rows(x, inverse, shift, lower, upper, triples[t], code, dual, speed, momentum, *own)
        largest, course = max(largest, moved), course + along
    return largest, course


@kernel
def scan_triples(x, inverse, shift, lower, upper, triples, code, dual, start, slack):
    """Sweep, then look at every triangle, project onto the rows violated by more than ``slack``, and remember them.

    Returns
    -------
    code, dual, start
        The rows to remember from now on: those of positive dual.
    found : int
        Violated rows.
    totals : float64[2]
        Largest violation, and the sum of the squares.
    """
    found, step = np.empty(1024, np.int32), np.empty(1024)
    to_code, to_dual = np.empty(len(code) + 1024, np.int32), np.empty(len(code) + 1024)
    to_start = np.zeros(len(triples) + 1, np.int64)
    total, count, totals, still = 0, 0, np.zeros(2), np.zeros(len(code))
    for t in range(len(triples)):
        own = start[t], start[t + 1]
        _project_rows(x, inverse, shift, lower, upper, triples[t], code, dual, still, 0.0, *own)
        found, step, many = _project_violated(x, inverse, shift, lower, upper, triples[t], slack, found, step, totals)
        need = count + many + start[t + 1] - start[t]
        if need > len(to_code):
            to_code, to_dual = _longer(to_code, to_dual, count, need + need // 2)
        count = _merge_rows(code, dual, start[t], start[t + 1], found, step, many, to_code, to_dual, count)
        to_start[t + 1] = count
        total += many
    return to_code[:count].copy(), to_dual[:count].copy(), to_start, total, totals


@kernel
def forget_rows(code, dual, start):
    """The rows of positive dual: code, dual and start."""
    to_code, to_dual, to_start = np.empty_like(code), np.empty_like(dual), np.zeros_like(start)
    count = 0
    for t in range(len(start) - 1):
        count = _merge_rows(code, dual, start[t], start[t + 1], code, dual, 0, to_code, to_dual, count)
        to_start[t + 1] = count
    return to_code[:count].copy(), to_dual[:count].copy(), to_start


@kernel
def close_triples(x, triples):
    """Shorten every side of a triangle that is longer than the other two together; returns how many were."""
    shortened = 0
    for t in range(len(triples)):
        ij, ik, jk = x[triples[t, 0]], x[triples[t, 1]], x[triples[t, 2]]
        shape = triples[t, 3:]
        for i in range(shape[2]):
            for j in range(i + 1 if shape[0] else 0, shape[3]):
                near = j + 1 if shape[1] else 0
                side_ik, side_jk = ik[i, near : shape[4]], jk[j, near : shape[4]]
                a = ij[i, j]
                over = 0
                for k in range(len(side_ik)):
                    b, c = side_ik[k], side_jk[k]
                    over += np.int64(b + c < a) + np.int64(a + c < b) + np.int64(a + b < c)
                if over:
                    shortened += over
                    for k in range(near, shape[4]):
                        ij[i, j] = min(ij[i, j], ik[i, k] + jk[j, k])
                        ik[i, k] = min(ik[i, k], ij[i, j] + jk[j, k])
                        jk[j, k] = min(jk[j, k], ij[i, j] + ik[i, k])
    return shortened


@kernel
def add_triangle_load(load, triples, code, dual, start):
    """Add ``A'z`` of the rows to tiles like x."""
    for t in range(len(triples)):
        ij, ik, jk = load[triples[t, 0]], load[triples[t, 1]], load[triples[t, 2]]
        for row in range(start[t], start[t + 1]):
            i, j, k, closing = unpack_row(code[row])
            move_sides(ij, ik, jk, i, j, k, closing, -dual[row], 1.0, 1.0, 1.0)


@kernel
def rows_are_sound(triples, code, dual, start):
    """Whether codes lie inside their tiles, name triangles, are sorted without repetition, and have duals >= 0."""
    for t in range(len(triples)):
        shape = triples[t, 3:]
        for row in range(start[t], start[t + 1]):
            i, j, k, closing = unpack_row(code[row])
            inside = 0 <= i < shape[2] and j < shape[3] and k < shape[4] and closing < 3
            ordered = (not shape[0] or i < j) and (not shape[1] or j < k)
            sorted_ = row == start[t] or code[row - 1] < code[row]
            if not (inside and ordered and sorted_ and 0.0 <= dual[row] < np.inf):
                return False
    return True
