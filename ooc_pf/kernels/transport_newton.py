"""Transport with exact marginals: Newton's equations over the nodes of the support, and exact steps of single rows.

The matrix has the number of pairs of each node on its diagonal (at least one, so that a node without pairs moves too)
and a one for each pair: after a change of signs it is the Laplacian of the support.
"""

import numpy as np

from . import inlined, kernel


@kernel
def count_pairs(left, right, nodes):
    """The number of pairs of each node, at least one."""
    count = np.zeros(nodes)
    for e in range(len(left)):
        count[left[e]] += 1.0
        count[right[e]] += 1.0
    return np.maximum(count, 1.0)


@kernel
def conjugate_gradients(left, right, diagonal, rhs, accuracy, most):
    """Solve (diagonal + pairs) x = rhs, preconditioned by the diagonal.

    Parameters
    ----------
    left, right : int64[pairs]
        Nodes.
    diagonal, rhs : float64[nodes]
    accuracy : float
        It ends when the residual is this part of the right-hand side.
    most : int
        Steps at most.

    Returns
    -------
    x : float64[nodes]
    steps : int
    done : bool
        Whether the accuracy was reached.
    """
    n = len(rhs)
    x, rest, image = np.zeros(n), rhs.copy(), np.empty(n)
    solved = rest / diagonal
    direction = solved.copy()
    rho = np.dot(rest, solved)
    goal = accuracy * accuracy * rho
    for step in range(most):
        if rho <= goal:
            return x, step, True
        for i in range(n):
            image[i] = diagonal[i] * direction[i]
        for e in range(len(left)):
            image[left[e]] += direction[right[e]]
            image[right[e]] += direction[left[e]]
        bent = np.dot(direction, image)
        if not bent > 0.0:
            return x, step, False
        length = rho / bent
        for i in range(n):
            x[i] += length * direction[i]
            rest[i] -= length * image[i]
            solved[i] = rest[i] / diagonal[i]
        fresh = np.dot(rest, solved)
        for i in range(n):
            direction[i] = solved[i] + fresh / rho * direction[i]
        rho = fresh
    return x, most, rho <= goal


@inlined
def _balance(value, count, need, some):
    """The number f with ``sum of max(0, f + value) = need``, by Newton's method from above."""
    largest = -np.inf
    for j in range(count):
        largest = max(largest, value[j])
    # With one pair alone f would be need - largest; smaller values than these never take part.
    kept = 0
    for j in range(count):
        if value[j] > largest - need:
            some[kept] = value[j]
            kept += 1
    f = need - largest
    for _ in range(100):
        total, active = 0.0, 0
        for j in range(kept):
            if f + some[j] > 0.0:
                total, active = total + f + some[j], active + 1
        if active == 0 or total <= need * (1.0 + 1e-12):
            break
        f -= (total - need) / active
    return f


@kernel
def balance_support(start, excess, need):
    """What to add to the potentials of rows, with these excesses, for sums of excesses as they need them."""
    change, some = np.zeros(len(need)), np.empty(max(len(excess), 1))
    for i in range(len(need)):
        if start[i + 1] > start[i]:
            change[i] = _balance(excess[start[i] : start[i + 1]], start[i + 1] - start[i], need[i], some)
    return change


@kernel
def balance_points(x, y, h, need, root):
    """Potentials of points x that send each of them what it needs, given those of other points.

    Parameters
    ----------
    x, y : float64[rows, d], float64[columns, d]
    h : float64[columns]
    need : float64[rows]
        Sums of excesses.
    root : bool
        Costs are distances; else their squares.
    """
    f, value, some = np.empty(len(x)), np.empty(len(y)), np.empty(len(y))
    for i in range(len(x)):
        for j in range(len(y)):
            total = 0.0
            for k in range(x.shape[1]):
                total += (x[i, k] - y[j, k]) * (x[i, k] - y[j, k])
            value[j] = h[j] - (np.sqrt(total) if root else total)
        f[i] = _balance(value, len(y), need[i], some)
    return f


@kernel
def balance_rows(cost, h, need):
    """As `balance_points`, for a block of costs."""
    f, value, some = np.empty(len(cost)), np.empty(len(h)), np.empty(len(h))
    for i in range(len(cost)):
        for j in range(len(h)):
            value[j] = h[j] - cost[i, j]
        f[i] = _balance(value, len(h), need[i], some)
    return f


@kernel
def collect_block(cost, first_row, first_column, f, h):
    """All pairs of a block of costs with an excess above zero, in the order of rows."""
    count = 0
    for a in range(cost.shape[0]):
        for b in range(cost.shape[1]):
            count += (f[first_row + a] + h[first_column + b]) - cost[a, b] > 0.0
    left, right, excess = np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count)
    count = 0
    for a in range(cost.shape[0]):
        for b in range(cost.shape[1]):
            value = (f[first_row + a] + h[first_column + b]) - cost[a, b]
            if value > 0.0:
                left[count], right[count], excess[count] = first_row + a, first_column + b, value
                count += 1
    return left, right, excess
