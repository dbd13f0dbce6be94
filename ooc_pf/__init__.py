"""Project and forget, out of core: convex problems with more constraints than anyone can list."""

from . import objectives, oracles, sets
from .commands.export import export
from .commands.report import report
from .edgelist.convert import convert
from .engine.result import Result
from .errors import BudgetError, ClusterError, InputError, WorkspaceBusyError, WorkspaceError
from .problems.clustering import correlation_clustering
from .problems.data import random_dissimilarities, wang_weights
from .problems.nearness import metric_nearness
from .problems.project_and_forget import project_and_forget
from .problems.project_onto_sets import project_onto_sets
from .workspaces import open_workspace as open
from .workspaces import resume, solve, verify

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
