"""Exports, in parts where memory is short."""

import pytest

import ooc_pf as pf


def test_export_keeps_within_a_budget_too(small, tmp_path, settings):
    run, whole, parts = tmp_path / "run.pf", tmp_path / "whole.csv", tmp_path / "parts.csv"
    pf.metric_nearness(small, tol=1e-3, workspace=run)
    pf.export(run, whole)
    with pytest.raises(pf.BudgetError, match="least that will do") as caught:
        pf.export(run, parts, memory="1MB")
    assert not parts.exists()
    least = int(str(caught.value).rsplit("is ", 1)[1].split(" ")[0].replace(",", ""))
    settings.small_exports(50)  # so that it takes several parts
    pf.export(run, parts, memory=least)
    assert len(small[0]) > 100
    assert parts.read_bytes() == whole.read_bytes()
