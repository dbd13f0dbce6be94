"""What every check of a workspace against itself uses."""

from ..errors import WorkspaceError
from ..storage.workspace import Workspace

TOLERANCE = 1e-9  # relative; rounding in a long run stays far below


def require(workspace: Workspace, holds: bool, problem: str) -> None:
    """Raise a WorkspaceError that names the problem unless ``holds``."""
    if not holds:
        raise WorkspaceError(
            f"{workspace.name}: {problem}; the workspace is damaged, `ooc-pf solve --restart` starts again"
        )


def agree(workspace: Workspace, found: float, claimed: float, what: str) -> None:
    """Refuse a claim that the arrays do not bear out."""
    near = abs(found - claimed) <= TOLERANCE * (1.0 + abs(claimed))
    require(workspace, near, f"the manifest claims {what} {claimed!r}, the arrays give {found!r}")
