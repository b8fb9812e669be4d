"""A file of statements as a flow: `penstock run flow.sql`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from penstock.errors import FlowError, SqlError
from penstock.frontends.sql.plan.statements.scripts import script_of
from penstock.frontends.sql.plan.statements.settings import NAME
from penstock.frontends.sql.plan.statements.statements import Script
from penstock.frontends.sql.standing.groups import TOPIC
from penstock.frontends.sql.standing.reading import KnownShapes
from penstock.frontends.sql.text import statements as s
from penstock.frontends.sql.text.reader import read_statements
from penstock.frontends.streams.flow import Flow
from penstock.jobs.sql.query_topic import TopicQueries
from penstock.jobs.sql.settings import run_options_of


@dataclass
class SqlFile:
    """A flow that was written as statements, and the options of a run that they set.

    Args:
        path: the file.
        script: what was made of it.
        queries: finds the standing queries of a topic.
    """

    path: Path
    script: Script
    queries: TopicQueries
    _known: KnownShapes = field(default_factory=KnownShapes)

    @property
    def flow(self) -> Flow:
        """The flow."""
        made: Flow = self.script.flow
        return made

    @property
    def options(self) -> dict[str, object]:
        """The options of a run that SET has set."""
        return run_options_of(self.script.session.settings)

    def revised(self) -> SqlFile | None:
        """The same file with plans for the queries that have come by its topic; None where it has them all."""
        topic = self.script.session.settings.get(TOPIC)
        if not topic or not self._has_new(topic):
            return None
        return read_sql_file(self.path, self.queries)

    def refused(self, topic: str) -> dict[str, str]:
        """Why queries of a topic cannot be planned, by their names."""
        found = {name: self.script.shapes.get(shape, "") for name, shape in self._shapes(topic)}
        return {name: why for name, why in found.items() if why}

    def _has_new(self, topic: str) -> bool:
        """Whether a query of the topic has a shape that nobody has tried to plan."""
        return any(shape not in self.script.shapes for _, shape in self._shapes(topic))

    def _shapes(self, topic: str) -> Iterator[tuple[str, str]]:
        """The queries of a topic and their shapes, but for texts that cannot be read."""
        for text in self.queries(topic):
            with contextlib.suppress(SqlError):
                statement = self._known.read(text)
                yield statement.name, self._known.shape(text, statement).id


def read_sql_file(path: Path, queries: TopicQueries | None = None) -> SqlFile:
    """The flow of a file; of its topic of standing queries, if it has one, the shapes are planned.

    Raises:
        FlowError: the file cannot be read, or is no text.
        SqlError: a statement cannot be read or planned.
        OptionError: SET names an option that there is not.
    """
    text, queries = _text(path), queries or TopicQueries()
    script = script_of(text, {}, Flow(path.stem), origin=path.name)
    statements = read_statements(script.text)
    name = next((st.value for st in statements if isinstance(st, s.SetOption) and st.name == NAME and st.value), "")
    if name:
        script = script_of(text, {}, Flow(name), origin=path.name)
        statements = read_statements(script.text)
    script.topic_queries = queries
    script.run(statements)
    made = SqlFile(path, script, queries)
    run_options_of(script.session.settings)
    return made


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FlowError(f"{path} is not a text in UTF-8 (byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise FlowError(f"{path} cannot be read ({error.strerror})") from None
