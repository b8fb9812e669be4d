"""Changes of standing queries: from the text of a statement to the constants of a shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.errors import FlowError, nearest
from penstock.graph.logic.standing import DROP
from penstock.graph.schema import schema_of

CONSTANTS = schema_of("query string, op string, shape int, constants array<string>, until timestamp")
"""A change of a query as the plans of shapes read it; a query that is dropped has no shape."""


@dataclass(frozen=True)
class ReadQuery:
    """The function of a step that reads changes: `rule` is the name of the query, `text` its statement.

    Args:
        shapes: the shapes that the flow has plans for, as `Shape.key` writes them.
    """

    shapes: tuple[str, ...]

    def __call__(self, row: Any) -> Iterator[tuple[Any, ...]]:
        """The change; one that cannot be read, or has a shape that the flow has no plan for, fails."""
        from penstock.frontends.sql.standing.shapes import shape_of
        from penstock.frontends.sql.text.source import SqlText

        if row.op in DROP:
            yield row.rule, "drop", None, [], None
            return
        text = SqlText(row.text or "", f"query {row.rule}")
        statement = read_query(text, row.rule)
        shape, constants = shape_of(text, statement)
        if shape.key not in self.shapes:
            raise FlowError(
                f"query {row.rule!r} has a shape that the flow has no plan for; a query that is added while it runs differs from one of the flow's in "
                f"the constants of its conditions alone; {nearest(shape.key, self.shapes)}"
            )
        yield row.rule, "add", self.shapes.index(shape.key), constants, statement.until


def read_query(text: Any, name: str) -> Any:
    """The standing query of a text: CREATE STANDING QUERY, under whatever name it is kept.

    Raises:
        SqlError: it is none.
    """
    from penstock.frontends.sql.text.reader import read_statements
    from penstock.frontends.sql.text.statements import CreateStandingQuery

    statements = read_statements(text)
    if len(statements) != 1 or not isinstance(statements[0], CreateStandingQuery):
        raise text.error(0, "expected CREATE STANDING QUERY name AS SELECT ... INTO table")
    return statements[0]
