"""The result of the bench `nexmark` as a table in Markdown, put into a page between two marks.

penstock bench nexmark --json | tail -1 | python -m benchmarks.nexmark.table docs/guide/nexmark.md
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

BEGIN, END = "<!-- nexmark: begin -->", "<!-- nexmark: end -->"
BUSY = 1.0
"""The load of a machine, before the bench begins, above which its figures are said to be those of a busy one."""


def table(result: dict[str, Any]) -> str:
    """The figures, a line for each query, and the mean.

    >>> figures = {"events": 1000, "load": 0.1, "q0_rows": 920, "q0_penstock": 1.5, "q0_flink": 3.0, "q0_speed_up": 2.0}
    >>> print(table({"figures": figures, "bars": [{"value": 2.0}], "versions": {"pyspark": "4.3.0"}}))
    1,000 events, on a quiet machine.
    <BLANKLINE>
    | query | rows of the answer | Penstock, s | Flink, s | Flink's time over Penstock's |
    |---|---|---|---|---|
    | q0 | 920 | 1.50 | 3.00 | 2.00 |
    | geometric mean | | | | 2.00 |
    """
    figures = result["figures"]
    state = (
        "a quiet machine" if figures["load"] < BUSY else f"a BUSY machine (load {figures['load']:.1f}): a first look"
    )
    head = [
        f"{figures['events']:,.0f} events, on {state}.",
        "",
        "| query | rows of the answer | Penstock, s | Flink, s | Flink's time over Penstock's |",
    ]
    names = [key.removesuffix("_rows") for key in figures if key.endswith("_rows")]
    mean = [f"| geometric mean | | | | {bar['value']:.2f} |" for bar in result["bars"]]
    return "\n".join([*head, "|---|---|---|---|---|", *(_line(name, figures) for name in names), *mean])


def _line(name: str, figures: dict[str, float]) -> str:
    shown = [
        f"{figures[key]:.2f}" if (key := f"{name}_{what}") in figures else ""
        for what in ("penstock", "flink", "speed_up")
    ]
    return f"| {name} | {figures[f'{name}_rows']:,.0f} | {' | '.join(shown)} |"


def put(page: str, made: str) -> str:
    r"""A page with another text between its marks.

    >>> put(f"a\n{BEGIN}\nold\n{END}\nb", "new") == f"a\n{BEGIN}\nnew\n{END}\nb"
    True
    """
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{made}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(put(path.read_text(), table(json.loads(sys.stdin.read()))))
