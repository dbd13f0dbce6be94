"""Which columns are the two nodes and the value, as the names in a header tell it."""

import re
from dataclasses import dataclass

from ..errors import InputError, nearest

# Names of the two nodes of an edge, in lower case and without signs between the words. Each pair also counts with one
# of the words before or after both, as in source_id, target_id.
_ENDS = """source target, source destination, source sink, src dst, src dest, src tgt, from to, origin destination,
    orig dest, start end, head tail, left right, sender receiver, sender recipient, giver receiver, rater ratee,
    rater rated, follower followee, follower followed, truster trustee, trustor trustee, voter votee, citing cited,
    caller callee, parent child, row col, row column, u v, i j, a b"""
_WORDS = ("id", "node", "nodeid", "name", "vertex", "user", "userid")
# Words that are told apart by what follows them, as in node_1, node_2. The first could also begin labels.
_LABEL_STEMS = """node user vertex v n person item author gene protein entity record doc document actor member player
    point object sample city"""
_NAME_STEMS = "id name userid nodeid vertexid uniqueid key"
_MARKS = ("1 2", "a b", "l r", "i j", "x y", "left right", "from to")
# Pairs that may just as well be two labels are a header only if the lines below agree.
_WEAK_ENDS = ("u v", "i j", "a b")
_WEAK_MARKS = ("1 2", "a b")

_VALUES = """weight weights value val distance dist length len sign rating score similarity sim matchweight cost w wt d
    edgeweight vote strength correlation corr affinity dissimilarity km metres meters miles"""
# Columns that are neither a node nor a value.
_OTHERS = """id index idx edgeid edge rowid rownames unnamed0 indexlevel0 time timestamp timestamps date datetime year
    month day epoch unixtime t type label timeset comment comments note notes created createdat updated updatedat
    directed matchkey since until"""
VALUES, OTHERS = frozenset(_VALUES.split()), frozenset(_OTHERS.split())


def _known_pairs() -> dict[str, dict[str, bool]]:
    """For the name of a first node the names of the second, each with whether the two are always a header."""
    ends = [tuple(pair.split()) for pair in _ENDS.split(",")]
    weak = {tuple(pair.split()) for pair in _WEAK_ENDS} | {*_marked(_LABEL_STEMS, _WEAK_MARKS)}
    known = {*ends, *_marked(f"{_LABEL_STEMS} {_NAME_STEMS}", _MARKS)}
    known |= {(one + word, two + word) for one, two in ends for word in _WORDS}
    known |= {(word + one, word + two) for one, two in ends for word in _WORDS}
    pairs: dict[str, dict[str, bool]] = {}
    for one, two in sorted(known):
        pairs.setdefault(one, {})[two] = (one, two) not in weak
    return pairs


def _marked(stems: str, marks: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(stem + mark.split()[0], stem + mark.split()[1]) for stem in stems.split() for mark in marks]


PAIRS = _known_pairs()


class Unclear(Exception):
    """Why the names of a header do not settle which columns to use."""


@dataclass(frozen=True)
class Pair:
    """Two columns, from 0, whose names are those of the nodes of an edge; ``sure`` unless they may be labels."""

    first: int
    second: int
    sure: bool


def plain_name(name: str) -> str:
    """A name without quotes, signs and capitals, in the form of the tables here."""
    return re.sub(r"[\W_]+", "", name).casefold()


def find_pairs(names: list[str]) -> list[Pair]:
    """The pairs of columns that are named like nodes."""
    places: dict[str, list[int]] = {}
    for k, name in enumerate(names):
        places.setdefault(plain_name(name), []).append(k)
    return [
        Pair(i, j, sure)
        for name in places
        for partner, sure in PAIRS.get(name, {}).items()
        for i in places[name]
        for j in places.get(partner, ())
    ]


def choose_columns(names: list[str]) -> tuple[int, ...]:
    """The columns of node, node and perhaps value, from 0, if the names leave no choice.

    Parameters
    ----------
    names : list of str
        Of all columns.

    Raises
    ------
    Unclear
        The names leave it open; the message says why.
    """
    nodes = choose_nodes(names)
    return (*nodes, *choose_value(names, nodes))


def choose_nodes(names: list[str]) -> tuple[int, int]:
    """The columns of the two nodes; raises Unclear if the names leave it open."""
    pairs = find_pairs(names)
    if len(pairs) > 1:
        told = "; ".join(f"{names[pair.first]} and {names[pair.second]}" for pair in pairs[:3])
        raise Unclear(f"several pairs of them may be the nodes ({told})")
    return (pairs[0].first, pairs[0].second) if pairs else _two_left([plain_name(name) for name in names])


def choose_value(names: list[str], nodes: tuple[int, ...]) -> tuple[int, ...]:
    """The column of the value beside those of the nodes, if there is one; raises Unclear if there may be several."""
    plain = [plain_name(name) for name in names]
    left = [k for k in range(len(names)) if k not in nodes]
    # A known name, or one with a known word in it, or the only one that nothing is known of.
    values = [k for k in left if plain[k] in VALUES] or [k for k in left if _says(names[k], VALUES)]
    values = values or [k for k in left if plain[k] and not _says(names[k], OTHERS)]
    if len(values) > 1:
        raise Unclear(f"several of them may be the value ({', '.join(names[k] for k in values[:5])})")
    return tuple(values)


def _says(name: str, known: frozenset[str]) -> bool:
    """Whether a name, or one of its words, is among the known ones; words of one letter say nothing."""
    words = re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name))
    return plain_name(name) in known or any(len(word) > 1 and word.casefold() in known for word in words)


def _two_left(plain: list[str]) -> tuple[int, int]:
    """The only two columns beside a value, if there are no others."""
    rest = [k for k, name in enumerate(plain) if name not in VALUES]
    if len(rest) != 2 or len(plain) > 3 or any(plain[k] in OTHERS or not plain[k] for k in rest):
        raise Unclear("no two of them are known as names of nodes")
    return rest[0], rest[1]


def propose(names: list[str]) -> str:
    """What to type to name the columns, with an example made of these."""
    pairs = find_pairs(names)
    nodes = [pairs[0].first, pairs[0].second] if pairs else []
    rest = [k for k in range(len(names)) if k not in nodes]
    rest.sort(key=lambda k: _says(names[k], OTHERS))
    some = ",".join(names[k] for k in (nodes + rest)[:3])
    return f"name node, node and value with columns= (--columns), for example --columns {some!r}"


def propose_positions() -> str:
    """The same for a file without names."""
    return "give the positions of node, node and value with columns= (--columns), for example --columns 1,2,3"


def locate(file: str, columns: tuple[str, ...], names: list[str], where: str) -> tuple[int, ...]:
    """The places, from 0, of columns named by the user; names that are not there, or there twice, are refused."""
    for column in columns:
        if names.count(column) != 1:
            problem = "twice" if column in names else "missing"
            near = nearest(column, names) if problem == "missing" else ""
            told = ", ".join(names[:20])
            raise InputError(f"{file}: column {column!r} is {problem} {where}{near}; the columns are {told}")
    return tuple(map(names.index, columns))


def are_positions(columns: tuple[str, ...] | None) -> bool:
    """Whether the columns are given by number."""
    return columns is not None and all(column.isdigit() for column in columns)


def locate_positions(file: str, columns: tuple[str, ...], width: int) -> tuple[int, ...]:
    """Columns given by number from 1 as places from 0."""
    positions = tuple(int(column) - 1 for column in columns)
    if not all(0 <= position < width for position in positions):
        raise InputError(f"{file}: columns {', '.join(columns)} asked for, it has 1 to {width}")
    return positions
