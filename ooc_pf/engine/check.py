"""What every check of a workspace against itself uses."""

from ..errors import WorkspaceError
from ..storage.workspace import Workspace

TOLERANCE = 1e-9  # of the size of the numbers; rounding in a long run stays far below


def require(workspace: Workspace, holds: bool, problem: str) -> None:
    """Raise a WorkspaceError that names the problem unless ``holds``."""
    if not holds:
        raise WorkspaceError(
            f"{workspace.name}: {problem}; the workspace is damaged, `ooc-pf solve --restart` starts again"
        )


def agree(workspace: Workspace, found: float, claimed: float, what: str, size: float = 0.0) -> None:
    """Refuse a claim that the arrays do not bear out; ``size`` is that of the terms it is a sum of."""
    near = abs(found - claimed) <= TOLERANCE * max(abs(claimed), size)
    require(workspace, near, f"the manifest claims {what} {claimed!r}, the arrays give {found!r}")
