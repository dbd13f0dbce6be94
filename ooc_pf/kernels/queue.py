"""A bucket queue of labelled nodes, the priority queue of every shortest-path search here.

It is Dial's queue with buckets of equal width, as in delta-stepping, instead of a heap. A bucket is emptied first in,
first out. A node whose label improves while its bucket is being emptied goes through it again, and what earlier buckets
held is final. That is exact, costs a few writes a label, and among paths of equal length prefers those of fewer arcs.
Each bucket is a doubly linked list through the labels, so a node moves to another bucket in constant time.
"""

from typing import NamedTuple

import numpy as np

from ..kernels import inlined, kernel

BUCKETS = 1024  # shapes the bits: which of two paths of equal length is found first depends on it
NOWHERE = -1

# Columns of a node's label: the path to it, and its place in the queue. One cache line holds two nodes.
HOPS, PARENT, EDGE, BEFORE, AFTER, PLACE = range(6)
LABEL_SIZE = 8

# Slots of the state: the bucket under way, nodes that wait, nodes that have a label. A search has the others.
BUCKET, QUEUED, TOUCHED, QUEUE_SLOTS = range(4)
STATE_SIZE = 16


class Labels(NamedTuple):
    """The labels of a search, and the queue through them; see `make_labels`.

    Attributes
    ----------
    dist : float64[nodes]
        Length of the path to each node; inf where there is none.
    label : int32[nodes, LABEL_SIZE]
    head : int32[2, BUCKETS]
        First and last node of each bucket.
    touched : int32[nodes]
        The nodes that have a label.
    state : int64[STATE_SIZE]
    """

    dist: np.ndarray
    label: np.ndarray
    head: np.ndarray
    touched: np.ndarray
    state: np.ndarray


def make_labels(nodes: int) -> Labels:
    """No labels yet, and an empty queue."""
    return Labels(
        dist=np.full(nodes, np.inf),
        label=np.full((nodes, LABEL_SIZE), NOWHERE, np.int32),
        head=np.full((2, BUCKETS), NOWHERE, np.int32),
        touched=np.empty(nodes, np.int32),
        state=np.zeros(STATE_SIZE, np.int64),
    )


@inlined
def unlink(node, bucket, label, head):
    """Take ``node`` out of its bucket."""
    before, after = label[node, BEFORE], label[node, AFTER]
    if before >= 0:
        label[before, AFTER] = after
    else:
        head[0, bucket] = after
    if after >= 0:
        label[after, BEFORE] = before
    else:
        head[1, bucket] = before
    label[node, PLACE] = NOWHERE


@inlined
def link(node, bucket, label, head):
    """Put ``node`` last into a bucket."""
    last = head[1, bucket]
    label[node, BEFORE], label[node, AFTER], label[node, PLACE] = last, -1, bucket
    head[1, bucket] = node
    if last >= 0:
        label[last, AFTER] = node
    else:
        head[0, bucket] = node


@inlined
def label_node(node, length, hop, via, edge, waits, scale, dist, label, head, touched, state):
    """Give ``node`` a better label, and queue it if it ``waits`` to be expanded."""
    if dist[node] == np.inf:
        touched[state[TOUCHED]] = node
        state[TOUCHED] += 1
    dist[node] = length
    label[node, HOPS], label[node, PARENT], label[node, EDGE] = hop, via, edge
    if not waits:
        return
    bucket = min(int(length * scale), BUCKETS - 1)
    if label[node, PLACE] != bucket:
        if label[node, PLACE] >= 0:
            unlink(node, label[node, PLACE], label, head)
        else:
            state[QUEUED] += 1
        link(node, bucket, label, head)


@inlined
def take_first(label, head, state):
    """Remove the first node of the first bucket that has one, and return it."""
    while head[0, state[BUCKET]] < 0:
        state[BUCKET] += 1
    node = head[0, state[BUCKET]]
    unlink(node, state[BUCKET], label, head)
    state[QUEUED] -= 1
    return node


@kernel
def clear_labels(labels):
    """Forget every label and empty the queue, in time proportional to the nodes that were labelled."""
    for k in range(labels.state[TOUCHED]):
        labels.dist[labels.touched[k]] = np.inf
        labels.label[labels.touched[k], PLACE] = NOWHERE
    labels.head[:] = NOWHERE
    labels.state[:QUEUE_SLOTS] = 0
