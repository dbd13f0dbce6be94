"""The page of a run: whole, closed to the outside, and readable without seeing it."""

import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml
from html.parser import HTMLParser

import numpy as np
import pytest

import ooc_pf as pf
from ooc_pf.commands.charts import line_chart
from ooc_pf.commands.cli import main
from ooc_pf.commands.curves import Curve, count_calls, curves, thinned, work_by_phase
from tests.gallery import random_signed

VOID = {"meta", "br"}


class Reader(HTMLParser):
    """Tags in order, whether each is closed where it should be, and the text of headings and captions."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.attributes, self.told = [], [], [], {}
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.told.setdefault(self.open[-1], []).append(data)


@pytest.fixture
def clustered(rng, tmp_path):
    """A workspace of a clustering that was resumed."""
    path = tmp_path / "votes.pf"
    pf.correlation_clustering(random_signed(rng, 40, 200), workspace=path, max_iter=3)
    return pf.resume(path).workspace


def test_the_page_tells_the_run(clustered, capsys):
    target = clustered.with_suffix(".html")
    assert main(["report", str(clustered), "-o", str(target)]) == 0
    page, result = Reader(target.read_text()), pf.open(clustered)
    told = " ".join(text for texts in page.told.values() for text in texts)
    for words in (
        "clustering: converged",
        "40 nodes, 200 edges",
        f"{result.lower_bound:.10g}",
        f"{result.certified_ratio:.4f}",
        "It was resumed once.",
        "gamma",
    ):
        assert words in told
    for heading in ("What is proven", "How it went", "Clusters", "What was asked", "Where the work went"):
        assert heading in page.told["h2"]


def test_a_report_is_not_written_as_what_it_is_not(clustered, capsys):
    target = clustered.with_suffix(".pdf")
    assert main(["report", str(clustered), "-o", str(target)]) == 1
    assert "name a file that ends in .html or .md" in capsys.readouterr().err and not target.exists()


def test_the_page_can_be_read_without_seeing_it(clustered):
    page = pf.report(clustered, format="html")
    read = Reader(page)
    assert '<html lang="en">' in page and read.tags.count("h1") == read.tags.count("main") == 1
    assert read.tags.count("table") == read.tags.count("caption") == len(read.told["caption"])
    charts = read.tags.count("svg")
    assert charts == read.tags.count("desc") == read.tags.count("figcaption") == 9
    named = [ids for name, value in read.attributes if name == "aria-labelledby" for ids in value.split()]
    assert sorted(named) == sorted(value for name, value in read.attributes if name == "id")
    assert len(set(named)) == len(named) == 2 * charts


def test_nothing_is_loaded_from_elsewhere(clustered):
    page = pf.report(clustered, format="html")
    assert not {"script", "link", "img", "iframe", "object", "a"} & set(Reader(page).tags)
    assert not re.search(r"https?:|url\(|@import|src=|href=", page)
    assert "default-src &#x27;none&#x27;" in page


def test_names_are_escaped(small, tmp_path):
    path = tmp_path / "<script>&'.pf"
    pf.metric_nearness(small, workspace=path)
    page = pf.report(path, format="html")
    assert "<script" not in page and "&lt;script&gt;&amp;&#x27;.pf" in page
    chart = line_chart(0, "<b>", [Curve("</svg>", [1, 2], [0.1, 0.2], [1.0, 2.0])])
    assert "<b>" not in chart and chart.count("</svg>") == 1


def test_runs_of_every_kind_have_a_page(table, tmp_path):
    pf.metric_nearness(table, workspace=tmp_path / "table.pf")
    objective, rows = pf.objectives.quadratic([1.0, 2.0]), ([[1.0, 1.0]], [1.0])
    pf.project_and_forget(objective, rows, workspace=tmp_path / "rows.pf")
    for name, words in (("table", "satisfies every constraint"), ("rows", "feasible up to the violation")):
        page = pf.report(tmp_path / f"{name}.pf", format="html")
        assert words in page and Reader(page)
    with pytest.raises(pf.InputError, match="did you mean 'html'"):
        pf.report(tmp_path / "table.pf", format="htm")


def test_a_run_without_iterations_has_a_page(small, tmp_path):
    pf.metric_nearness(small, workspace=tmp_path / "new.pf", max_iter=0)
    assert "No iteration was made." in pf.report(tmp_path / "new.pf", format="html")


# -- curves -----------------------------------------------------------------------------------------------------------


def test_curves_are_those_of_the_history(clustered):
    result = pf.open(clustered)
    bound, objective = curves(result.history, {"lower_bound": "bound", "objective": "objective", "no": "nothing"})
    assert bound.value == [record["lower_bound"] for record in result.history]
    assert objective.iteration == [record["iteration"] for record in result.history if "gap" in record]
    assert bound.seconds[-1] == pytest.approx(sum(work_by_phase(result.history).values()))
    assert count_calls(result.history) == 2
    assert len(thinned(list(range(10_000)))) <= 601 and thinned(list(range(10_000)))[-1] == 9999


def test_numbers_too_large_to_draw_are_left_out():
    """Their difference is no number."""
    history = [{"iteration": k + 1, "seconds": {}, "worst": worst} for k, worst in enumerate((-1.7e308, 2.0, 1.7e308))]
    (line,) = curves(history, {"worst": "violation"})
    assert line.value == [2.0]
    assert "polyline" in line_chart(1, "title", [line])


@pytest.mark.parametrize("values", [[0.0], [5.0, 5.0], [-1.0, 3.0], [1e-300, 1e300], [1e-9, 1.0, 7.0]])
@pytest.mark.parametrize("logarithm", [False, True])
def test_lines_stay_within_their_chart(values, logarithm):
    values = [abs(value) or 1.0 for value in values] if logarithm else values
    line = Curve("line", list(range(1, len(values) + 1)), list(np.arange(len(values)) / 7), values)
    for over_time in (False, True):
        chart = xml.fromstring(line_chart(3, "title", [line], over_time=over_time, logarithm=logarithm))
        (drawn,) = chart.iter("polyline")
        places = np.array([point.split(",") for point in drawn.get("points").split()], float)
        assert (places >= [66, 25.9]).all() and (places <= [448.1, 220.1]).all()
        numbers = [text.text for text in chart.iter("text")]
        assert 3 <= len(numbers) <= 16


@pytest.mark.parametrize("over_time", [False, True])
def test_a_picture_has_the_same_curves(clustered, tmp_path, over_time):
    figure = pf.plot(pf.open(clustered), over_time=over_time)
    names = [[line.get_label() for line in axes.lines] for axes in figure.axes]
    assert names == [["lower bound", "objective"], ["gap", "violation"], ["rows found", "rows kept"]]
    figure.savefig(tmp_path / "run.png")
    assert (tmp_path / "run.png").stat().st_size > 10_000


def test_without_matplotlib_it_says_what_to_install(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'ooc_pf\[plot\]'"):
        pf.plot(pf.metric_nearness(small, max_iter=1))


BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.mark.long
@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium to look at the page with")
def test_a_browser_shows_the_page(clustered, tmp_path):
    """The picture has the page's colours: paper, ink and both lines."""
    target, picture = tmp_path / "page.html", tmp_path / "page.png"
    target.write_text(pf.report(clustered, format="html"))
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    command = [BROWSER, *options, "--window-size=1100,1600", f"--screenshot={picture}", target.as_uri()]
    subprocess.run(command, capture_output=True, check=True, timeout=120)
    from matplotlib.image import imread

    seen = {tuple(color) for color in (imread(picture)[..., :3] * 255).round().astype(int).reshape(-1, 3)[::3]}
    assert (11, 98, 196) in seen and len(seen) > 20
