"""What loads when: the package and the help of its command load no library, and a name loads what it needs."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import ooc_pf as pf
from ooc_pf import workspaces
from ooc_pf.commands import cli

HEAVY = {"numba", "dask", "duckdb", "pyarrow", "igraph", "zarr", "scipy", "numpy"}
LOADED = f"import sys; print(sorted({HEAVY} & set(sys.modules)))"


def run(code):
    """What a fresh interpreter prints and says."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


@pytest.mark.parametrize("arguments", [None, ["--help"], ["--version"], ["solve", "--help"], ["convert", "--help"]])
def test_nothing_heavy_is_loaded_before_it_is_needed(arguments):
    code = "import ooc_pf"
    if arguments:
        code = f"from ooc_pf.commands.cli import main\ntry: main({arguments})\nexcept SystemExit as end: print(end)"
    done = run(f"{code}\n{LOADED}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
    assert not arguments or done.stdout.splitlines()[-2] == "0"


def test_every_public_name_is_there():
    assert set(pf._MODULES) | set(pf._SUBMODULES) == set(pf.__all__)
    for name in pf.__all__:
        assert getattr(pf, name) is not None
        assert name in dir(pf)
    assert pf.open is workspaces.open_workspace
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = pf.nonsense


@pytest.mark.long
@pytest.mark.parametrize(
    "code",
    [
        "from ooc_pf import metric_nearness, objectives, Result",
        "from ooc_pf import *; solve, sets, wang_weights",
        "import ooc_pf as pf; pf.objectives.quadratic, pf.oracles.cycles, pf.sets.box, pf.open, pf.InputError",
        "import ooc_pf.oracles, ooc_pf; ooc_pf.oracles.cycles",
    ],
)
def test_names_are_found_however_they_are_asked_for(code):
    done = run(code)
    assert done.returncode == 0, done.stderr


def test_errors_alone_load_no_library():
    assert run(f"import ooc_pf; ooc_pf.WorkspaceError\n{LOADED}").stdout.strip() == "[]"


def test_the_status_of_a_workspace_is_read_without_a_solver(tmp_path):
    pf.project_and_forget(pf.objectives.quadratic([1.0, 2.0]), ([[1.0, 1.0]], [1.0]), workspace=tmp_path / "run.pf")
    done = run(f"from ooc_pf.commands.cli import main\nmain(['status', {str(tmp_path / 'run.pf')!r}])\n{LOADED}")
    assert done.stdout.splitlines()[1].startswith("rows: converged, iteration")
    assert not set(eval(done.stdout.splitlines()[-1])) & {"numba", "dask", "duckdb", "pyarrow", "igraph", "scipy"}


def test_ctrl_c_while_libraries_load_is_not_a_traceback():
    code = """
import sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Finder())
from ooc_pf.commands.cli import main
sys.exit(main(["solve", "nowhere.pf"]))
"""
    done = run(code)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_the_command_offers_problems_that_can_be_solved(capsys):
    with pytest.raises(SystemExit):
        cli.main(["solve", "--help"])
    assert "{clustering,nearness}" in capsys.readouterr().out
    assert workspaces.problems() == ["clustering", "nearness"]


def test_version(capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"ooc-pf {pf.__version__}\n"


def test_types_are_for_users_too():
    assert (Path(pf.__file__).parent / "py.typed").exists()


ROOT = Path(__file__).parents[1]


def test_an_editable_install_is_a_plain_path():
    """With the packages below one named directory setuptools writes no import hook, which hides types from mypy."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert tools["package-dir"] == {"": "."}


@pytest.mark.slow
def test_the_script_of_a_user_type_checks(tmp_path):
    script = tmp_path / "script.py"
    call = "pf.metric_nearness(([0, 1, 0], [1, 2, 2], [1.0, 1.0, 3.0])"
    script.write_text(f"import ooc_pf as pf\nr = {call})\nreveal_type(r)\nreveal_type(r.gap)\n{call}, toll=1)\n")
    arguments = ["--follow-imports=silent", "--cache-dir", str(tmp_path / "cache"), str(script)]
    place = {**os.environ, "MYPYPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-m", "mypy", *arguments], capture_output=True, text=True, env=place)
    lines = done.stdout.splitlines()
    assert '"ooc_pf.engine.result.Result"' in lines[0] and '"float"' in lines[1], done.stdout
    assert 'script.py:5: error: Unexpected keyword argument "toll"' in lines[2] and "Found 1 error" in lines[-1]
