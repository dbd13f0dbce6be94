"""The built-in example: a club whose members like or dislike each other, and the groups that contradict fewest."""

import math
from pathlib import Path

import numpy as np

from .. import workspaces
from ..edgelist.convert import convert
from ..engine.result import Result, cluster_sizes

# These shape the example's answer.
GROUPS = (30, 25, 20, 15, 10)  # members who mean to like each other, and nobody else
OPINIONS = 30  # of each member
MISTAKES = 0.1  # opinions that are the other way round
SEED = 7
TOL = 1e-4


def run_example(folder: Path) -> tuple[Result, str]:
    """Make the edge list ``opinions.txt`` in a folder, and the workspace ``club.pf``; solve, check and explain it."""
    likes, dislikes = write_opinions(folder / "opinions.txt")
    report = convert(folder / "opinions.txt", folder / "club.pf", kind="signed", duplicates="sum")
    result = workspaces.solve(folder / "club.pf", problem="clustering", tol=TOL)
    checked = workspaces.verify(folder / "club.pf", oracle="numba")
    sizes = ", ".join(map(str, cluster_sizes(result.labels)))
    least = math.ceil(result.lp_lower_bound * (1.0 - TOL))  # costs are whole numbers
    best = "no grouping of any kind contradicts fewer" if result.optimal else f"none contradicts fewer than {least}"
    text = (
        f"{report['nodes']} members of a club, {likes} likes and {dislikes} dislikes\n"
        f"groups         {sizes}\n"
        f"contradict     {result.cost:.0f} opinions: dislikes within a group, likes between groups\n"
        f"proven         {best}\n"
        f"checked        again from the files: {checked['status'].replace('_', ' ')}, cost {checked['cost']:.0f}"
    )
    return result, text


def write_opinions(file: Path) -> tuple[int, int]:
    """Write an edge list of likes (1) and dislikes (-1), some of them mistaken; returns how many there are of both."""
    rng = np.random.default_rng(SEED)
    group = np.repeat(np.arange(len(GROUPS)), GROUPS)
    pairs: dict[tuple[int, int], int] = {}
    for member in range(len(group)):
        for other in rng.choice(len(group), OPINIONS, replace=False).tolist():
            opinion = 1 if group[member] == group[other] else -1
            if member != other:
                pairs[min(member, other), max(member, other)] = -opinion if rng.random() < MISTAKES else opinion
    with open(file, "w", encoding="utf-8") as opinions:
        opinions.write("# member member opinion\n")
        opinions.writelines(f"member{a} member{b} {opinion}\n" for (a, b), opinion in sorted(pairs.items()))
    likes = sum(opinion > 0 for opinion in pairs.values())
    return likes, len(pairs) - likes
