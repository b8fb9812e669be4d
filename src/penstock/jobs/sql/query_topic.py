"""Standing queries in a topic of the embedded log: what `penstock queries` reads and writes.

A change is a record like that of a rule, so the topic keeps versions, who changed a query, and when.
"""

from __future__ import annotations

from typing import ClassVar

from penstock.frontends.sql.standing.reading import read_query
from penstock.frontends.sql.standing.shapes import shape_of
from penstock.frontends.sql.text.source import SqlText
from penstock.frontends.sql.text.statements import CreateStandingQuery
from penstock.jobs.rule_topic import RuleTopic, StoredRule


class QueryTopic(RuleTopic):
    """The standing queries in a topic."""

    noun: ClassVar[str] = "query"
    way_out: ClassVar[str] = "drop it first"

    def check(self, rule: str, text: str) -> None:
        """Refuses a text that is no standing query."""
        source = SqlText(text)
        shape_of(source, read_query(source, rule))

    def put(self, text: str, by: str) -> StoredRule:
        """Adds the query of a statement, under the name that the statement has.

        Raises:
            SqlError: it is no standing query.
            NameTaken: there is one of that name.
        """
        statement: CreateStandingQuery = read_query(SqlText(text), "")
        return self.add(statement.name, text, by)
