"""The layout shows the architecture: imports point down, and each library has its place."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "ooc_pf"
LAYERS = [
    ["errors"],
    ["kernels"],
    [
        "arrays",
        "pages",
        "budget",
        "external",
        "mirror",
        "workspace",
        "edgetext",
        "edgeparquet",
        "edgesort",
        "edgelist",
        "graph",
        "rows",
        "constraints",
        "parallel",
        "monitor",
        "certificate",
        "inputs",
    ],
    [
        "arcs",
        "oracle",
        "igraph_oracle",
        "cluster_oracle",
        "problem",
        "engine",
        "cycles",
        "program",
        "objectives",
        "oracles",
        "sets",
        "general",
        "sweeping",
        "rounding",
        "result",
        "persist",
        "dense",
        "solving",
        "verify",
    ],
    ["problems"],
    ["export", "report", "api", "cli", "__main__", "__init__"],
]
ONLY_IN = {
    "numba": {"kernels"},
    "zarr": {"arrays"},
    "dask": {"parallel"},
    "duckdb": {"edgesort"},
    "argparse": {"cli"},
    "fsspec": {"mirror"},
}
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}


def modules():
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE).with_suffix("").parts
        yield parts[0], file, len(parts)


def imports(file, depth):
    """(own module or None, foreign package or None) of every import statement."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from ((None, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield None, node.module.split(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.level == depth:
            names = [node.module.split(".")[0]] if node.module else [alias.name for alias in node.names]
            yield from ((name, None) for name in names)


def test_imports_point_down():
    for name, file, depth in modules():
        assert name in RANK, f"{file.name} has no layer"
        for own, _ in imports(file, depth):
            if own is not None:
                assert RANK[own] <= RANK[name], f"{file.name} imports {own} from a layer above"


def test_each_library_has_its_place():
    for name, file, depth in modules():
        for _, foreign in imports(file, depth):
            assert name in ONLY_IN.get(foreign, {name}), f"{file.name} imports {foreign}"


def test_only_the_command_line_prints():
    for name, file, _ in modules():
        calls = [n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.Call)]
        prints = [n for n in calls if isinstance(n.func, ast.Name) and n.func.id == "print"]
        assert not prints or name in ("cli", "monitor"), f"{file.name} prints"
