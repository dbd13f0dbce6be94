"""Clusters of a signed graph, by heuristics that are known under other names too.

`pivot` is the pivot algorithm (KwikCluster), `join_greedily` is greedy additive edge contraction, `move_nodes` is local
moving with a queue as in Leiden, and `shake` is an iterated local search on top of it.

One convention everywhere: joining two groups of nodes saves the sum of the arc weights between them plus
``base * size * size``. A weight is what a listed pair saves beyond ``base``, so unlisted pairs cost no memory, and a
contracted graph is the same kind of graph. Arcs are in CSR, both directions: ``start`` int64[nodes + 1], ``node``
int32[arcs], ``weight`` float64[arcs]; ``size`` float64[nodes] counts the original nodes in each.
"""

import numpy as np

from ..kernels import kernel
from .heap import LENGTH, NOWHERE, drop_top, raise_key, sink

# Slots of the state of a queue of nodes.
HEAD, QUEUED, MOVED = range(3)
# Of the state of greedy joins, behind the length of the heap: filled cells of the table.
FILLED = 1


@kernel
def number_clusters(labels):
    """The same clusters as int32, numbered by first appearance; ``labels`` are numbers from 0 on, not large ones."""
    number, result, found = np.full(labels.max() + 1, NOWHERE, np.int32), np.empty(len(labels), np.int32), 0
    for at in range(len(labels)):
        if number[labels[at]] < 0:
            number[labels[at]] = found
            found += 1
        result[at] = number[labels[at]]
    return result


@kernel
def meet(one, other):
    """The groups of nodes that both clusterings keep together, int32[nodes]; labels are below ``nodes``."""
    nodes = len(one)
    begin = np.zeros(nodes + 1, np.int32)
    for at in range(nodes):
        begin[one[at] + 1] += 1
    for label in range(nodes):
        begin[label + 1] += begin[label]
    order, free = np.empty(nodes, np.int32), begin.copy()
    for at in range(nodes):
        order[free[one[at]]] = at
        free[one[at]] += 1
    seen, groups, found = np.full(nodes, NOWHERE, np.int32), np.empty(nodes, np.int32), 0
    for label in range(nodes):
        lowest = found
        for k in range(begin[label], begin[label + 1]):
            at = order[k]
            if seen[other[at]] < lowest:
                seen[other[at]] = found
                found += 1
            groups[at] = seen[other[at]]
    return groups


@kernel
def pivot(start, node, take, order):
    """Each pivot still free, by ``order`` int32[nodes], takes its free neighbours over arcs with ``take`` bool[arcs].

    Returns the pivot of every node, int32[nodes].
    """
    labels = np.full(len(order), NOWHERE, np.int32)
    for centre in order:
        if labels[centre] != NOWHERE:
            continue
        labels[centre] = centre
        for arc in range(start[centre], start[centre + 1]):
            if take[arc] and labels[node[arc]] == NOWHERE:
                labels[node[arc]] = centre
    return labels


@kernel
def _find(table_key, table_slot, a, b, nodes):
    """Cell of the pair in the hash table (linear probing): its own, or the empty one where it would go."""
    pair = min(a, b) * nodes + max(a, b)
    mask = len(table_key) - 1
    mixed = np.uint64(pair) * np.uint64(0x9E3779B97F4A7C15)
    cell = np.int64(mixed >> np.uint64(20)) & mask
    while table_slot[cell] != NOWHERE and table_key[cell] != pair:
        cell = (cell + 1) & mask
    return cell, pair


@kernel
def _fill_table(table_key, table_slot, end, alive, nodes, state):
    """Empty the table and enter the live slots."""
    table_slot[:] = NOWHERE
    state[FILLED] = 0
    for slot in range(len(alive)):
        if alive[slot]:
            cell, pair = _find(table_key, table_slot, end[2 * slot], end[2 * slot + 1], nodes)
            table_key[cell] = pair
            table_slot[cell] = slot
            state[FILLED] += 1


@kernel
def _hang(u, v, nodes):
    """Linked lists of the half-edges of each node: half 2e is in the list of u[e], half 2e + 1 in that of v[e].

    Returns ``end, after`` int64[2 * edges], node and next half of each half, and ``first, degree`` int64[nodes].
    """
    end, after = np.empty(2 * len(u), np.int64), np.empty(2 * len(u), np.int64)
    first, degree = np.full(nodes, NOWHERE, np.int64), np.zeros(nodes, np.int64)
    for half in range(2 * len(u)):
        at = v[half >> 1] if half & 1 else u[half >> 1]
        end[half] = at
        after[half] = first[at]
        first[at] = half
        degree[at] += 1
    return end, after, first, degree


@kernel
def _rehang(a, b, base, mass, bundle, alive, end, after, first, degree, table_key, table_slot, heap, place, key, state):
    """Move the edges of cluster ``a`` to ``b``; two edges to a common neighbour become one."""
    half = first[a]
    while half != NOWHERE:
        following, slot = after[half], half >> 1
        if alive[slot]:
            far = end[half ^ 1]
            cell, pair = _find(table_key, table_slot, b, far, len(mass))
            other = table_slot[cell]
            if other == NOWHERE:
                end[half] = b
                after[half] = first[b]
                first[b] = half
                degree[b] += 1
                table_key[cell] = pair
                table_slot[cell] = slot
                state[FILLED] += 1
            else:
                alive[slot] = False
                bundle[other] += bundle[slot]
                raise_key(heap, place, key, other, bundle[other] + base * mass[b] * mass[far], state)
        half = following


@kernel
def _next_join(base, mass, bundle, alive, end, heap, place, key, state):
    """Take the slot that saves most off the heap; NOWHERE when none saves.

    A key that has become smaller is corrected only here, at the top (lazy decrease-key).
    """
    while state[LENGTH]:
        slot = heap[0]
        gain = bundle[slot] + base * mass[end[2 * slot]] * mass[end[2 * slot + 1]]
        if alive[slot] and 0 < gain < key[slot]:
            key[slot] = gain
            sink(heap, place, key, 0, state[LENGTH])
            continue
        drop_top(heap, place, key, state)
        if alive[slot] and gain > 0:
            return slot
    return NOWHERE


@kernel
def join_greedily(u, v, weight, size, base):
    """Join the two clusters that save most by it, as long as any two save; ``base <= 0``.

    Parameters
    ----------
    u, v : int32[edges]; weight : float64[edges]; size : float64[nodes]
        Edges once each.

    Returns
    -------
    int32[nodes]
        The leading node of each node's cluster.
    """
    edges, nodes = len(u), len(size)
    end, after, first, degree = _hang(u, v, nodes)
    leader, mass, bundle = np.arange(nodes).astype(np.int32), size.copy(), weight.copy()
    key, heap, place = np.empty(edges), np.empty(edges, np.int64), np.full(edges, NOWHERE, np.int64)
    alive = np.ones(edges, np.bool_)
    state = np.zeros(2, np.int64)
    for slot in range(edges):
        raise_key(heap, place, key, slot, weight[slot] + base * size[u[slot]] * size[v[slot]], state)
    cells = 16
    while cells < 3 * edges:
        cells *= 2
    table_key, table_slot = np.empty(cells, np.int64), np.empty(cells, np.int32)
    _fill_table(table_key, table_slot, end, alive, nodes, state)
    while True:
        slot = _next_join(base, mass, bundle, alive, end, heap, place, key, state)
        if slot == NOWHERE:
            break
        a, b = end[2 * slot], end[2 * slot + 1]
        if degree[a] > degree[b]:  # the shorter list moves, so a half moves O(log) times
            a, b = b, a
        if 2 * (state[FILLED] + degree[a]) > cells:  # pairs of clusters that are gone still have cells
            _fill_table(table_key, table_slot, end, alive, nodes, state)
        alive[slot] = False
        leader[a] = b
        mass[b] += mass[a]
        _rehang(
            a, b, base, mass, bundle, alive, end, after, first, degree, table_key, table_slot, heap, place, key, state
        )
    for at in range(nodes):
        while leader[leader[at]] != leader[at]:
            leader[at] = leader[leader[at]]
    return leader


@kernel
def pulls(start, node, weight, labels, at, pull, met):
    """Sum the weights from ``at`` to each cluster around it into ``pull``; the clusters met go to ``met``."""
    count = 0
    for arc in range(start[at], start[at + 1]):
        far = labels[node[arc]]
        if pull[far] == 0.0:
            met[count] = far  # twice if a sum comes back to zero, which does no harm
            count += 1
        pull[far] += weight[arc]
    return count


@kernel
def best_cluster(size, base, least, labels, total, at, pull, met, count):
    """The cluster where ``at`` saves most, NOWHERE: its own, and what going there saves; clears ``pull``."""
    home = labels[at]
    here = pull[home] + base * size[at] * (total[home] - size[at])
    best, most = home, here
    for k in range(count):
        far = met[k]
        if far != home:
            there = pull[far] + base * size[at] * total[far]
            if there > most + least:
                best, most = far, there
    for k in range(count):
        pull[met[k]] = 0.0
    if most < -least:
        best, most = NOWHERE, 0.0
    return best, most - here


@kernel
def put_into(size, labels, total, members, spare, at, target):
    """Put ``at`` into cluster ``target``; NOWHERE: into an empty one.

    ``spare`` is a stack of the empty clusters, its height in its last element. An empty target is the top of the
    stack, and a home left empty goes on top; so moves taken back in reverse order find the stack as it was.
    """
    home, height = labels[at], len(spare) - 1
    if target == NOWHERE:
        target = spare[spare[height] - 1]
    if members[target] == 0:
        spare[height] -= 1
    total[target] += size[at]
    members[target] += 1
    labels[at] = target
    total[home] -= size[at]
    members[home] -= 1
    if members[home] == 0:
        total[home] = 0.0
        spare[spare[height]] = home
        spare[height] += 1
    return target


@kernel
def count_members(labels, size):
    """Total size and number of members of each cluster, the stack of the empty ones, and scratch of the moves."""
    nodes = len(labels)
    total, members, spare = np.zeros(nodes), np.zeros(nodes, np.int32), np.zeros(nodes + 1, np.int32)
    for at in range(nodes):
        total[labels[at]] += size[at]
        members[labels[at]] += 1
    for at in range(nodes):
        if members[at] == 0:
            spare[spare[nodes]] = at
            spare[nodes] += 1
    return total, members, spare, np.zeros(nodes), np.empty(nodes, np.int32), np.zeros(3, np.int64)


@kernel
def _wake(start, node, weight, labels, at, source, target, queue, waiting, state, hub):
    """Queue the neighbours that may want to move because ``at`` went from cluster ``source`` to ``target``.

    Those with more than ``hub`` arcs are left alone: they are dear to look at, and one neighbour hardly moves them.
    """
    for arc in range(start[at], start[at + 1]):
        far = node[arc]
        affected = labels[far] != target if weight[arc] > 0 else labels[far] != source
        if affected and not waiting[far] and start[far + 1] - start[far] <= hub:
            waiting[far] = True
            queue[(state[HEAD] + state[QUEUED]) % len(queue)] = far
            state[QUEUED] += 1


@kernel
def _drain(start, node, weight, size, base, least, labels, total, members, spare,
           pull, met, queue, waiting, moved, origin, state, hub):  # fmt: skip
    """Move queued nodes to where they save most until none waits or the log ``moved, origin`` is full.

    Returns what the moves saved.
    """
    saved = 0.0
    while state[QUEUED] and state[MOVED] < len(moved):
        at = queue[state[HEAD]]
        state[HEAD] = (state[HEAD] + 1) % len(queue)
        state[QUEUED] -= 1
        waiting[at] = False
        count = pulls(start, node, weight, labels, at, pull, met)
        target, gain = best_cluster(size, base, least, labels, total, at, pull, met, count)
        home = labels[at]
        if target != home:
            target = put_into(size, labels, total, members, spare, at, target)
            moved[state[MOVED]] = at
            origin[state[MOVED]] = home
            state[MOVED] += 1
            _wake(start, node, weight, labels, at, home, target, queue, waiting, state, hub)
            saved += gain
    return saved


@kernel
def move_nodes(start, node, weight, size, base, least, labels, order):
    """Move single nodes while a move saves more than ``least``, first by ``order`` int32[nodes], then as queued.

    ``labels`` int32[nodes], numbers below ``nodes``, change in place. Returns what was saved.
    """
    nodes = len(labels)
    total, members, spare, pull, met, state = count_members(labels, size)
    queue, waiting = order.copy(), np.ones(nodes, np.bool_)
    moved, origin = np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    state[QUEUED] = nodes
    saved = 0.0
    while state[QUEUED]:
        state[MOVED] = 0
        saved += _drain(start, node, weight, size, base, least, labels, total, members, spare,
                        pull, met, queue, waiting, moved, origin, state, len(node))  # fmt: skip
    return saved


@kernel
def _gain(start, node, weight, size, base, labels, total, at, target):
    """What it saves to move ``at`` to another cluster ``target``; NOWHERE: to one of its own."""
    home = labels[at]
    gain = base * size[at] * (size[at] - total[home] + (0.0 if target == NOWHERE else total[target]))
    for arc in range(start[at], start[at + 1]):
        if labels[node[arc]] == home:
            gain -= weight[arc]
        elif labels[node[arc]] == target:
            gain += weight[arc]
    return gain


@kernel
def shake(start, node, weight, size, base, least, labels, near, arcs, depth, hub):
    """Force one node after another into a neighbour's cluster, let the others follow, take back what costs.

    Try k moves ``near[k]`` to the cluster at the other end of ``arcs[k]``, or out of it if they share it. A try that
    saves exactly nothing stays: with equal weights there are plateaus, and this is how the search crosses them.

    ``near`` int32[tries], ``arcs`` int64[tries]; ``depth`` is the most moves in one try; nodes with more than ``hub``
    arcs do not follow. ``labels`` int32[nodes], numbers below ``nodes``, change in place. Returns what was saved,
    never negative by more than rounding.
    """
    nodes = len(labels)
    total, members, spare, pull, met, state = count_members(labels, size)
    queue, waiting = np.empty(nodes, np.int32), np.zeros(nodes, np.bool_)
    moved, origin = np.empty(depth, np.int32), np.empty(depth, np.int32)
    sum_saved = 0.0
    for k in range(len(near)):
        at, home, target = near[k], labels[near[k]], labels[node[arcs[k]]]
        if target == home:
            target = NOWHERE
        saved = _gain(start, node, weight, size, base, labels, total, at, target)
        target = put_into(size, labels, total, members, spare, at, target)
        moved[0], origin[0] = at, home
        state[MOVED], state[HEAD], state[QUEUED] = 1, 0, 0
        _wake(start, node, weight, labels, at, home, target, queue, waiting, state, hub)
        saved += _drain(start, node, weight, size, base, least, labels, total, members, spare,
                        pull, met, queue, waiting, moved, origin, state, hub)  # fmt: skip
        for j in range(state[QUEUED]):
            waiting[queue[(state[HEAD] + j) % nodes]] = False
        if saved < -least:
            for j in range(state[MOVED] - 1, -1, -1):
                put_into(size, labels, total, members, spare, moved[j], origin[j])
        else:
            sum_saved += saved
    return sum_saved
