"""Project and forget, out of core: convex problems with more constraints than anyone can list.

Public names are imported on first use, so that ``import ooc_pf`` and ``ooc-pf --help`` load no library.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import objectives, oracles, sets
    from .commands.export import export
    from .commands.plot import plot
    from .commands.report import report
    from .edgelist.convert import convert
    from .engine.result import Result
    from .engine.run import interrupts_return
    from .errors import BudgetError, ClusterError, InputError, Interrupted, WorkspaceBusyError, WorkspaceError
    from .problems.clustering import correlation_clustering
    from .problems.data import random_dissimilarities, wang_weights
    from .problems.estimators import CorrelationClustering, MetricNearness
    from .problems.itml import ITML, ITML_Supervised
    from .problems.links import LinkClusters, cluster_links
    from .problems.nearness import metric_nearness
    from .problems.project_and_forget import project_and_forget
    from .problems.project_onto_sets import project_onto_sets
    from .problems.svm import LinearSVM
    from .problems.transport import quadratic_transport
    from .workspaces import open_workspace as open
    from .workspaces import resume, solve, verify

__version__ = "0.1.0"

__all__ = [
    "ITML",
    "BudgetError",
    "ClusterError",
    "CorrelationClustering",
    "ITML_Supervised",
    "InputError",
    "Interrupted",
    "LinearSVM",
    "LinkClusters",
    "MetricNearness",
    "Result",
    "WorkspaceBusyError",
    "WorkspaceError",
    "cluster_links",
    "convert",
    "correlation_clustering",
    "export",
    "interrupts_return",
    "metric_nearness",
    "objectives",
    "open",
    "oracles",
    "plot",
    "project_and_forget",
    "project_onto_sets",
    "quadratic_transport",
    "random_dissimilarities",
    "report",
    "resume",
    "sets",
    "solve",
    "verify",
    "wang_weights",
]

# The module of each public name; after a colon what it is called there, if not the same.
_MODULES = {
    "BudgetError": ".errors",
    "ClusterError": ".errors",
    "CorrelationClustering": ".problems.estimators",
    "ITML": ".problems.itml",
    "ITML_Supervised": ".problems.itml",
    "InputError": ".errors",
    "Interrupted": ".errors",
    "LinearSVM": ".problems.svm",
    "LinkClusters": ".problems.links",
    "MetricNearness": ".problems.estimators",
    "Result": ".engine.result",
    "WorkspaceBusyError": ".errors",
    "WorkspaceError": ".errors",
    "cluster_links": ".problems.links",
    "convert": ".edgelist.convert",
    "correlation_clustering": ".problems.clustering",
    "export": ".commands.export",
    "interrupts_return": ".engine.run",
    "metric_nearness": ".problems.nearness",
    "open": ".workspaces:open_workspace",
    "plot": ".commands.plot",
    "project_and_forget": ".problems.project_and_forget",
    "project_onto_sets": ".problems.project_onto_sets",
    "quadratic_transport": ".problems.transport",
    "random_dissimilarities": ".problems.data",
    "report": ".commands.report",
    "resume": ".workspaces",
    "solve": ".workspaces",
    "verify": ".workspaces",
    "wang_weights": ".problems.data",
}
_SUBMODULES = ("objectives", "oracles", "sets")


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for (PEP 562); from then on it is an ordinary attribute."""
    if name in _SUBMODULES:
        return importlib.import_module(f".{name}", __name__)
    if name not in _MODULES:
        from .errors import nearest

        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{nearest(name, __all__)}")
    module, _, called = _MODULES[name].partition(":")
    value = getattr(importlib.import_module(module, __name__), called or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
