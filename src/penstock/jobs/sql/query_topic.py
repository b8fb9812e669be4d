"""Standing queries in a topic of the embedded log: what `penstock queries` reads and writes, and what a flow plans.

A change is a record like that of a rule, so the topic keeps versions, who changed a query, and when.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from penstock.frontends.sql.standing.reading import read_query
from penstock.frontends.sql.standing.shapes import shape_of
from penstock.frontends.sql.text.source import SqlText
from penstock.frontends.sql.text.statements import CreateStandingQuery
from penstock.graph.endpoints.log import log_path
from penstock.jobs.rule_topic import RuleTopic, StoredRule
from penstock.log import Log


class QueryTopic(RuleTopic):
    """The standing queries in a topic."""

    noun: ClassVar[str] = "query"
    way_out: ClassVar[str] = "drop it first"

    def check(self, rule: str, text: str) -> None:
        """Refuses a text that is no standing query."""
        source = SqlText(text)
        shape_of(source, read_query(source))

    def put(self, text: str, by: str) -> StoredRule:
        """Adds the query of a statement, under the name that the statement has.

        Raises:
            SqlError: it is no standing query.
            NameTaken: there is one of that name.
        """
        statement: CreateStandingQuery = read_query(SqlText(text))
        return self.add(statement.name, text, by)


@dataclass
class TopicQueries:
    """The queries of a topic as they stand; the log is read again when it has grown.

    Args:
        path: the directory of the log; else `PENSTOCK_LOG`, or .penstock/log.
    """

    path: str | None = None
    _ends: dict[str, Any] = field(default_factory=dict)
    _texts: dict[str, list[SqlText]] = field(default_factory=dict)

    def __call__(self, topic: str) -> list[SqlText]:
        """The statements of the queries that stand."""
        folder = Path(log_path(self.path))
        if not (folder / "penstock-log.json").is_file():
            return []
        with Log(folder) as log:
            ends = log.offsets(topic) if topic in log.topics() else {}
            if self._ends.get(topic) != ends:
                stored = QueryTopic(log, topic).rules()
                self._texts[topic] = [SqlText(each.text, f"query {name}") for name, each in stored.items()]
                self._ends[topic] = ends
        return self._texts.get(topic, [])
