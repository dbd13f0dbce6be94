"""The examples of docstrings run, and docstrings name the parameters that functions have."""

import dataclasses
import doctest
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ooc_pf as pf

SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
NAME = r"\*{0,2}[A-Za-z_]\w*"
ENTRY = re.compile(rf"^({NAME}(?:, {NAME})*)(?: : .*)?$")
OTHERS = re.compile(r"other parameters are those of `(\w+)`")

# Parts that the package makes for itself.
INNER = {
    "objectives.Curvature",
    "objectives.Own",
    "objectives.project_l1_ball",
    "oracles.Table",
    "oracles.read_block",
    "oracles.read_oracle",
    "oracles.read_table",
}


def public():
    """(name, object) of every function and class of the package and of the modules it offers."""
    for name in pf.__all__:
        found = getattr(pf, name)
        if not inspect.ismodule(found):
            yield name, found
            continue
        for inner, member in vars(found).items():
            made_here = getattr(member, "__module__", None) == found.__name__
            if made_here and not inner.startswith("_") and f"{name}.{inner}" not in INNER:
                yield f"{name}.{inner}", member


PUBLIC = dict(public())
FUNCTIONS = [name for name, found in PUBLIC.items() if inspect.isfunction(found)]
RECORDS = [name for name, found in PUBLIC.items() if dataclasses.is_dataclass(found)]


def sections(found):
    """The docstring as {title: text}; what comes first has the title ''."""
    parts = SECTION.split(inspect.getdoc(found) or "")
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def entries(text):
    """The names that a section explains: every name of a line like "max_iter, max_time : optional"."""
    names = []
    for line in text.splitlines():
        matched = ENTRY.match(line)
        if matched:
            names += [name.lstrip("*") for name in matched.group(1).split(", ")]
    return names


def explained(found):
    """The parameters a docstring explains, with those it leaves to another function; None without a section."""
    told = sections(found)
    if "Parameters" not in told:
        return None
    names = entries(told["Parameters"])
    for other in OTHERS.findall(told["Parameters"]):
        own = inspect.signature(found).parameters
        names += [name for name in entries(sections(PUBLIC[other])["Parameters"]) if name in own and name not in names]
    return names


def test_sections_and_entries_are_read():
    """The reader itself, as everything here hangs on it."""

    def example(a, b, c, *more):
        """Do something.

        Parameters
        ----------
        a, b : int, optional
            The first two: for example
            c : not an entry
        c
            Without a type.
        *more : str

        Returns
        -------
        d : int
        """

    assert entries(sections(example)["Parameters"]) == ["a", "b", "c", "more"]
    assert entries(sections(example)["Returns"]) == ["d"]


@pytest.mark.parametrize("name", PUBLIC)
def test_there_is_a_docstring(name):
    assert (PUBLIC[name].__doc__ or "").strip(), f"{name} has no docstring"


@pytest.mark.parametrize("name", [name for name in FUNCTIONS])
def test_parameters_are_those_of_the_signature(name):
    """In the section of parameters; or, where a sentence says all, in that sentence."""
    names, own = explained(PUBLIC[name]), inspect.signature(PUBLIC[name]).parameters
    if names is None:
        words = set(re.findall(r"\w+", inspect.getdoc(PUBLIC[name])))
        assert set(own) <= words
    else:
        assert sorted(names) == sorted(own)


@pytest.mark.parametrize("name", [name for name in RECORDS])
def test_attributes_are_those_of_the_record(name):
    """Everything explained is there, and every field is explained, unless it only helps to make another one."""
    record = PUBLIC[name]
    names = entries(sections(record).get("Attributes", ""))
    fields = [field.name for field in dataclasses.fields(record)]
    assert [told for told in names if told not in fields and not hasattr(record, told)] == []
    assert [field for field in fields if field not in names and not field.startswith(("_", "read_"))] == []


EXAMPLES = [
    test
    for name, found in PUBLIC.items()
    for test in doctest.DocTestFinder(recurse=False).find(found, name, globs={})
    if test.examples
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_example_runs_as_it_stands(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(example, out=said.append)
    assert runner.failures == 0, "".join(said)


def test_there_are_examples():
    names = {example.name for example in EXAMPLES}
    assert names >= {"metric_nearness", "correlation_clustering", "project_and_forget", "project_onto_sets"}


def test_the_reference_has_every_public_name(tmp_path):
    """It is made by the one command that the README has."""
    pytest.importorskip("pdoc")
    command = re.search(r"`(pdoc ooc_pf [^`]*)`", (Path(__file__).parents[1] / "README.md").read_text()).group(1)
    subprocess.run([sys.executable, "-m", *command.split()], cwd=tmp_path, check=True, capture_output=True)
    page = (tmp_path / "reference" / "ooc_pf.html").read_text()
    assert all(f'id="{name}"' in page or f"{name}.html" in page for name in pf.__all__)
