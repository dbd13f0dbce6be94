"""Draw how the cost of clusters and the bound of any clustering close in on each other over time.

python tools/bench/picture.py RUN PICTURE.svg [--title TEXT] [--save HISTORY.json]

RUN is a workspace with a run of clustering, or a history that --save wrote: so the picture can be drawn again without
the network. The picture of the front page is of Slashdot:

ooc-pf convert soc-sign-Slashdot090221.txt.gz slashdot.pf --kind signed --duplicates sign
ooc-pf solve slashdot.pf --tol 1e-6 --ratio 1.0015
python tools/bench/picture.py slashdot.pf tools/bench/slashdot.svg --save tools/bench/slashdot.json
"""

import argparse
import json
import re
from pathlib import Path
from typing import Any

import ooc_pf as pf
from ooc_pf.commands.charts import line_chart
from ooc_pf.commands.curves import curves

FIELDS = {"cost": "cost of clusters", "bound_of_clusterings": "proven lower bound"}
KEPT = ("iteration", "seconds", *FIELDS)
STYLE = """<style>
text { font: 11px sans-serif; fill: #333 }
.grid { stroke: #ddd } .line { fill: none; stroke-width: 2 }
.line0 { stroke: #c2410c } .line1 { stroke: #1d4ed8 }
@media (prefers-color-scheme: dark) { text { fill: #ccc } .grid { stroke: #444 }
.line0 { stroke: #fb923c } .line1 { stroke: #60a5fa } }
</style>"""


def read_history(run: Path) -> list[dict[str, Any]]:
    """The records of a run, no more of them than the picture needs."""
    history = json.loads(run.read_text()) if run.suffix == ".json" else pf.open(run).history
    return [{name: record[name] for name in KEPT if name in record} for record in history]


def draw(history: list[dict[str, Any]], title: str) -> str:
    """The picture, as a file of its own."""
    chart = line_chart(0, title, curves(history, FIELDS), over_time=True)
    drawing = re.search(r"<svg.*</svg>", chart, re.DOTALL)
    assert drawing is not None
    head = '<svg xmlns="http://www.w3.org/2000/svg" width="690" height="390"'
    return f"{drawing.group().replace('<svg', head, 1).replace('</svg>', STYLE + '</svg>')}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--title", default="Slashdot: 82,140 people, 498,532 friends and foes")
    parser.add_argument("--save", type=Path)
    args = parser.parse_args()
    history = read_history(args.run)
    if args.save:
        lines = ",\n".join(json.dumps(record) for record in history)
        args.save.write_text(f"[{lines}]\n")
    args.picture.write_text(draw(history, args.title))


if __name__ == "__main__":
    main()
