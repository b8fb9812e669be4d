"""`%%penstock` in a notebook: the statements of a cell, in a session that all cells share.

    %load_ext penstock
    %%penstock
    SELECT word, count(*) AS n FROM words GROUP BY word

The value of a cell is the rows of its last query. Tables are those that statements define, and variables of the notebook that hold an endpoint.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from penstock.errors import Impossible
from penstock.frontends.sql.catalog.catalog import Table
from penstock.graph.nodes import Endpoint
from penstock.graph.picture.text import as_text
from penstock.jobs.sql.answers import answer, runs_here
from penstock.jobs.sql.session import Asked, Explained, Listed, Outcome, Said, SqlSession

SHOWN = 100
"""So many rows are drawn below a cell."""


class Notebook(Protocol):
    """What is used of IPython's shell."""

    user_ns: dict[str, Any]

    def register_magic_function(self, func: Any, magic_kind: str = "line", magic_name: str | None = None) -> None:
        """Makes a function a magic of a name."""


class CellRows(list[Any]):
    """The rows of a query: a list, drawn as a table below its cell."""

    def __init__(self, names: Sequence[str], rows: Sequence[Any]) -> None:
        super().__init__(rows)
        self.names = tuple(names)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.names)
        body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in self[:SHOWN])
        more = f"<p>{len(self):,} rows, the first {SHOWN} are shown</p>" if len(self) > SHOWN else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    def frame(self) -> Any:
        """The rows as a DataFrame of pandas."""
        import pandas as pd

        return pd.DataFrame([tuple(row) for row in self], columns=list(self.names))


class CellText(str):
    """A text, shown below its cell as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _cell(value: object) -> str:
    return f"<td>{'null' if value is None else html.escape(str(value))}</td>"


@dataclass
class CellMagic:
    """The magic of a notebook.

    Args:
        notebook: its shell.
    """

    notebook: Notebook
    session: SqlSession = field(default_factory=SqlSession)

    def __call__(self, line: str, cell: str = "") -> CellRows | str | None:
        """Runs the statements of a cell; returns what the last of them shows."""
        for name, value in list(self.notebook.user_ns.items()):
            if isinstance(value, Endpoint) and not name.startswith("_"):
                self.session.catalog.define(Table(name, endpoint=value))
        shown: CellRows | str | None = None
        for outcome in self.session.run(cell or line, "cell"):
            shown = self._shown(outcome)
        return shown

    def _shown(self, outcome: Outcome) -> CellRows | str | None:
        if isinstance(outcome, Said):
            return CellText(outcome.text)
        if isinstance(outcome, Listed):
            return CellRows(outcome.names, outcome.rows)
        if isinstance(outcome, Explained):
            return CellText(as_text(outcome.described, modes=True))
        if isinstance(outcome, Asked) and runs_here(outcome.graph):
            found = answer(outcome.graph)
            return CellRows(found.names, found.rows)
        raise Impossible(
            "a cell answers queries over bounded data in this process; a live query or an INSERT is a flow: "
            "ps.run(ps.sql_flow(text, tables={...})), or penstock sql in a terminal"
        )


def load(notebook: Notebook) -> CellMagic:
    """Makes `%%penstock` known to a notebook."""
    made = CellMagic(notebook)
    notebook.register_magic_function(made, "line_cell", "penstock")
    return made
