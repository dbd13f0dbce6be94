"""An allocation that fails, wherever it is, ends in one of our errors and loses nothing."""

import contextlib
import shutil
import sys

import numpy as np
import pytest

import ooc_pf as pf
from tests.gallery import CASES
from tests.properties import assert_same_run

ALLOCATE = ("zeros", "empty", "full", "concatenate", "zeros_like", "empty_like", "full_like", "where", "array")


@contextlib.contextmanager
def failing(number):
    """The allocation of this number that the package asks numpy for fails; yields how many there were."""
    count = [0]

    def wrap(function):
        def allocate(*args, **kwargs):
            if sys._getframe(1).f_globals.get("__name__", "").startswith("ooc_pf."):
                count[0] += 1
                if count[0] == number:
                    raise MemoryError("Unable to allocate 1.00 TiB for an array")
            return function(*args, **kwargs)

        return allocate

    with pytest.MonkeyPatch.context() as patch:
        for name in ALLOCATE:
            patch.setattr(np, name, wrap(getattr(np, name)))
        yield count


def check(name, number, tmp_path, whole):
    path = tmp_path / f"{name}-{number}.pf"
    with failing(number) as count:
        try:
            CASES[name](workspace=path, workers=1)
        except pf.BudgetError as error:
            assert "no memory left" in str(error)
        except MemoryError:
            assert not path.exists(), "before there was anything to lose"
    reached = count[0] >= number
    assert_same_run(whole, CASES[name](workspace=path, workers=1))
    shutil.rmtree(path)
    return reached


NAMES = ("nearness", "clustering", "table", "rows", "sets")


OTHERS = ("complete", "linear", "external", "svm", "itml", "itml-projections", "transport", "transport-exact")


@pytest.mark.faults
@pytest.mark.parametrize("name", [*NAMES, *OTHERS])
def test_some_allocations_fail(name, tmp_path):
    whole = CASES[name](workspace=tmp_path / "whole.pf", workers=1)
    reached = [check(name, number, tmp_path, whole) for number in (1, 3, 11, 29, 67, 141, 300)]
    assert any(reached)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_each_of_the_first_thousand_allocations_fails(name, tmp_path):
    whole = CASES[name](workspace=tmp_path / "whole.pf", workers=1)
    for number in range(1, 1001):
        if not check(name, number, tmp_path, whole):
            break
