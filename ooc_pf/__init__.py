"""Project and forget, out of core: convex problems with more constraints than anyone can list."""

from . import objectives, oracles, sets
from .api import open_workspace as open
from .api import resume, solve, verify
from .edgelist import convert
from .errors import BudgetError, ClusterError, InputError, WorkspaceBusyError, WorkspaceError
from .export import export
from .problems.clustering import correlation_clustering
from .problems.convex import project_onto_sets
from .problems.dissimilarities import random_dissimilarities
from .problems.linear import project_and_forget
from .problems.nearness import metric_nearness
from .problems.wang import wang_weights
from .report import report
from .result import Result

__version__ = "0.1.0"

__all__ = [
    "BudgetError",
    "ClusterError",
    "InputError",
    "Result",
    "WorkspaceBusyError",
    "WorkspaceError",
    "convert",
    "correlation_clustering",
    "export",
    "metric_nearness",
    "objectives",
    "open",
    "oracles",
    "project_and_forget",
    "project_onto_sets",
    "random_dissimilarities",
    "report",
    "resume",
    "sets",
    "solve",
    "verify",
    "wang_weights",
]
