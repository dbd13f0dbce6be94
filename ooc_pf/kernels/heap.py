"""A binary heap of slots, the largest key first, that knows where each slot is.

``heap`` int64[slots] holds the slots, ``place`` int64[slots] the position of each or NOWHERE, ``key`` float64[slots];
``state[LENGTH]`` says how many are in it. Keys only grow here: whoever uses the heap corrects a key that has become
smaller when it comes to the top (lazy decrease-key).
"""

from ..kernels import kernel

NOWHERE = -1
LENGTH = 0  # slot of the state


@kernel
def rise(heap, place, key, at):
    """Sift up from position ``at``."""
    slot = heap[at]
    while at > 0:
        up = (at - 1) >> 1
        if key[heap[up]] >= key[slot]:
            break
        heap[at] = heap[up]
        place[heap[at]] = at
        at = up
    heap[at] = slot
    place[slot] = at


@kernel
def sink(heap, place, key, at, length):
    """Sift down from position ``at``."""
    slot = heap[at]
    while True:
        child = 2 * at + 1
        if child >= length:
            break
        if child + 1 < length and key[heap[child + 1]] > key[heap[child]]:
            child += 1
        if key[heap[child]] <= key[slot]:
            break
        heap[at] = heap[child]
        place[heap[at]] = at
        at = child
    heap[at] = slot
    place[slot] = at


@kernel
def drop_top(heap, place, key, state):
    """Remove the slot of largest key."""
    place[heap[0]] = NOWHERE
    state[LENGTH] -= 1
    if state[LENGTH]:
        heap[0] = heap[state[LENGTH]]
        sink(heap, place, key, 0, state[LENGTH])


@kernel
def raise_key(heap, place, key, slot, gain, state):
    """Give ``slot`` the key ``gain`` if it is positive and more than before; it enters the heap if it was not there."""
    if gain <= 0 or (place[slot] != NOWHERE and gain <= key[slot]):
        return
    key[slot] = gain
    if place[slot] == NOWHERE:
        heap[state[LENGTH]] = slot
        place[slot] = state[LENGTH]
        state[LENGTH] += 1
    rise(heap, place, key, place[slot])
