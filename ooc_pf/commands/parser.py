"""How the words of a command line are understood, and the examples that ``--help`` shows."""

import argparse
import re
from typing import Any

from ..errors import nearest


class Parser(argparse.ArgumentParser):
    """Takes -1e-1 for a number, as it does -0.1, not for an option; and knows what a mistyped word may mean."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._negative_number_matcher = re.compile(r"^-(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[argparse.Namespace, list[str]]:
        found, left = super().parse_known_args(args, namespace)
        unknown = [word for word in left if word.startswith("-")]
        if unknown:
            self.error(f"unrecognized option: {unknown[0]}{nearest(unknown[0], self._option_string_actions)}")
        return found, left

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            near = nearest(str(value), map(str, action.choices))
            told = ", ".join(map(str, action.choices))
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}{near}; choose from {told}")


EXAMPLES = {
    "ooc-pf": """
        ooc-pf example                                    groups in a small network, proven
        ooc-pf convert links.csv links.pf                 an edge list becomes a workspace
        ooc-pf solve links.pf --tol 1e-6 --max-time 6h    Ctrl-C whenever you like
        ooc-pf resume links.pf                            goes on where it stopped
        ooc-pf report links.pf -o report.html             the run as a page with curves""",
    "transport": """
        ooc-pf transport a.npy b.npy plan.npz --points x.npy y.npy --gamma 1000
        ooc-pf transport a.parquet b.parquet plan.csv --cost cost.zarr --reg 0.1""",
    "svm": """
        ooc-pf svm rows.npy labels.npy -o svm.pf --C 10 --memory 2GB
        ooc-pf svm table.parquet --label spam -o svm.pf --intercept --model weights.csv
        ooc-pf resume svm.pf                              goes on with one that was interrupted
        ooc-pf svm rows.zarr labels.npy --method stochastic --model weights.npz""",
    "convert": """
        ooc-pf convert links.txt links.pf
        ooc-pf convert votes.csv votes.pf --kind signed --columns from,to,vote
        zcat links.gz | ooc-pf convert - links.pf""",
    "solve": """
        ooc-pf solve links.pf --tol 1e-6
        ooc-pf solve links.pf --memory 8GB --max-time 6h
        ooc-pf solve votes.pf --problem clustering --ratio 1.01
        ooc-pf solve friends.pf --problem clustering --base -0.1
        ooc-pf solve monday.pf --warm-start sunday.pf""",
    "resume": """
        ooc-pf resume links.pf
        ooc-pf resume links.pf --tol 1e-8 --max-time 30min""",
    "status": """
        ooc-pf status links.pf
        ooc-pf status links.pf --watch""",
    "verify": """
        ooc-pf verify links.pf
        ooc-pf verify links.pf --oracle numba --memory 2GB""",
    "report": """
        ooc-pf report links.pf
        ooc-pf report links.pf -o report.html""",
    "export": """
        ooc-pf export links.pf answer.parquet
        ooc-pf export votes.pf clusters.csv --clusters
        ooc-pf export own.pf duals.csv --duals""",
    "example": """
        ooc-pf example --keep club""",
    "completion": """
        ooc-pf completion bash > ~/.local/share/bash-completion/completions/ooc-pf""",
}


def examples(command: str) -> str:
    """The examples of a command, as they stand under its options."""
    lines = [line.strip() for line in EXAMPLES[command].strip().splitlines()]
    return "\n  ".join(["examples:", *lines])
