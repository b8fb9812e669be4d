"""Changes of standing queries: from the text of a statement to the constants of a shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from penstock.frontends.sql.standing.shapes import Shape, shape_of
from penstock.frontends.sql.text.reading import statements_in, tokens_of
from penstock.frontends.sql.text.source import SqlText
from penstock.frontends.sql.text.standing import StandingReader
from penstock.frontends.sql.text.statements import CreateStandingQuery, StandingForm
from penstock.graph.logic.standing import DROP
from penstock.graph.schema import schema_of

CONSTANTS = schema_of(
    "query string, op string, shape string, constants array<string>, every bigint, until timestamp, version bigint"
)
"""A change of a query as the plans of shapes read it; a query that is dropped has no shape.

`version` tells a query from the one of its name before it."""
Change = tuple[Any, ...]


@dataclass
class KnownShapes:
    """The shapes of statements that were read: each form of statement is looked at once."""

    text: SqlText = field(default_factory=lambda: SqlText(""))
    reader: StandingReader = field(init=False)
    shapes: dict[int, tuple[StandingForm, Shape]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.reader = StandingReader(self.text)

    def read(self, text: SqlText) -> CreateStandingQuery:
        """The standing query of a text.

        Raises:
            SqlError: it is none.
        """
        self.reader.text = text
        statements = list(statements_in(tokens_of(text)))
        if len(statements) != 1 or [token.text.upper() for token in statements[0][:3]] != [
            "CREATE",
            "STANDING",
            "QUERY",
        ]:
            raise text.error(0, "expected CREATE STANDING QUERY name AS SELECT ... INTO table")
        return self.reader.read(statements[0])

    def shape(self, text: SqlText, statement: CreateStandingQuery) -> Shape:
        """The shape of a statement."""
        known = self.shapes.get(id(statement.form))
        if known is None:
            known = self.shapes[id(statement.form)] = (statement.form, shape_of(text, statement))
        return known[1]

    def change(self, text: SqlText, statement: CreateStandingQuery) -> Change:
        """The change that adds a query."""
        shape = self.shape(text, statement)
        return statement.name, "add", shape.id, list(statement.constants), statement.every, statement.until, 0


@dataclass
class ReadQuery:
    """The function of a step that reads changes: `rule` is the name of the query, `text` its statement."""

    known: KnownShapes | None = field(default=None, compare=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.known = None

    def __call__(self, row: Any) -> Iterator[Change]:
        """The change; one that cannot be read fails. A query of a shape that has no plan waits for one."""
        if row.op in DROP:
            yield row.rule, "drop", None, [], None, None, None
            return
        if self.known is None:
            self.known = KnownShapes()
        text = SqlText(row.text or "", f"query {row.rule}")
        made = self.known.change(text, self.known.read(text))
        yield (row.rule, *made[1:])


def read_query(text: SqlText) -> CreateStandingQuery:
    """The standing query of a text: CREATE STANDING QUERY.

    Raises:
        SqlError: it is none.
    """
    return KnownShapes().read(text)
