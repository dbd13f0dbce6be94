"""The listing shows the architecture: every import points down the list of rooms, and each library has its place."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "ooc_pf"
# A room may import from itself and from the rooms above it in this list, and from nothing else of the package.
ROOMS = [
    "errors",
    "kernels",
    "storage",
    "edgelist",
    "engine",
    "cycles",
    "triangles",
    "objectives",
    "oracles",
    "general",
    "sets",
    "svm",
    "itml",
    "transport",
    "problems",
    "workspaces",
    "commands",
    "__init__",
    "__main__",
]
ONLY_IN = {
    "numba": "kernels",
    "zarr": "storage.arrays",
    "dask": "engine.parallel",
    "duckdb": "edgelist.merge",
    "fsspec": "storage.clients",
    "obstore": "storage.clients",
    "argparse": "commands",
    "sklearn": "problems",
}


def modules():
    for file in sorted(PACKAGE.rglob("*.py")):
        yield file, file.relative_to(PACKAGE).with_suffix("").parts


def imports(file, parts):
    """(room, None) of every import from the package, (None, library) of every other one; at any depth of the code."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from ((None, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield None, node.module.split(".")[0]
        elif isinstance(node, ast.ImportFrom):
            home = parts[: len(parts) - node.level]
            path = [*home, *(node.module or "").split(".")] if node.module else [*home]
            yield from ((path[0] if path else alias.name, None) for alias in node.names)


def test_every_module_is_in_a_room():
    for file, parts in modules():
        assert parts[0] in ROOMS, f"{file} is in no room of the list"


def test_imports_point_down():
    wrong = [
        f"{'.'.join(parts)} imports {room}"
        for file, parts in modules()
        for room, _ in imports(file, parts)
        if room is not None and ROOMS.index(room) > ROOMS.index(parts[0])
    ]
    assert not wrong, "; ".join(wrong)


def test_single_modules_do_not_import_each_other_in_a_circle():
    """Within a room, too, imports have an order."""
    graph = {}
    for file, parts in modules():
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module and len(parts) > 1:
                graph.setdefault(parts, set()).add((*parts[:-1], node.module))

    def reaches(start, goal, seen):
        return any(
            step == goal or (step not in seen and reaches(step, goal, seen | {step})) for step in graph.get(start, ())
        )

    circles = [".".join(module) for module in graph if reaches(module, module, frozenset())]
    assert not circles, f"in a circle of imports: {', '.join(circles)}"


def test_each_library_has_its_place():
    for file, parts in modules():
        for _, library in imports(file, parts):
            place = ONLY_IN.get(library)
            assert place is None or ".".join(parts).startswith(place), f"{file} imports {library}"


def test_only_the_command_line_prints():
    for file, parts in modules():
        calls = [n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.Call)]
        prints = [n for n in calls if isinstance(n.func, ast.Name) and n.func.id == "print"]
        assert not prints or parts in (("commands", "cli"), ("engine", "monitor")), f"{file} prints"


def test_the_textbook_twins_import_nothing_of_the_package():
    files = sorted((PACKAGE.parent / "tests" / "naive").glob("*.py"))
    assert len(files) > 5
    for file in files:
        assert not {"ooc_pf", "tests"} & {library for _, library in imports(file, ("naive", file.stem))}, file
