"""What the shell offers while a statement is typed: keywords, tables, columns, functions."""

from __future__ import annotations

import re
from collections.abc import Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from penstock.cli.sql.typing_state import COMMANDS
from penstock.graph.expr import AGGREGATES
from penstock.graph.expr.functions import FUNCTIONS
from penstock.jobs.sql.session import SqlSession

_WORDS = (
    "SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT DISTINCT AS JOIN LEFT RIGHT FULL OUTER INNER CROSS ON USING UNION ALL INTERSECT EXCEPT "
    "AND OR NOT IN EXISTS BETWEEN LIKE IS NULL CASE WHEN THEN ELSE END CAST INTERVAL WITH VALUES INSERT INTO CREATE TABLE VIEW FUNCTION "
    "TEMPORARY DROP IF PRIMARY KEY ENFORCED WATERMARK FOR EXPLAIN DESCRIBE SHOW TABLES VIEWS FUNCTIONS SET RESET BEGIN STATEMENT TUMBLE "
    "HOP CUMULATE SESSION DESCRIPTOR OVER PARTITION ROWS RANGE PRECEDING CURRENT ROW FILTER ROLLUP CUBE GROUPING SETS MATCH_RECOGNIZE "
    "MEASURES PATTERN DEFINE TRUE FALSE ASC DESC LATERAL UNNEST STANDING QUERY EVERY UNTIL SNAPSHOT"
)  # fmt: skip
KEYWORDS = _WORDS.split()
_TABLE_AFTER = re.compile(r"\b(?:from|join|into|table|describe)\s+[\w`\"]*$", re.IGNORECASE)
_NAMED = re.compile(r"\b(?:from|join|table)\s+[`\"]?(\w+)", re.IGNORECASE)
_FIELD_OF = re.compile(r"(\w+)\.(\w*)$")


class SqlCompleter(Completer):
    """Completes by what stands before the cursor: tables after FROM, the columns of the tables that are named, functions, keywords."""

    def __init__(self, session: SqlSession) -> None:
        self.session = session

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """What may stand at the cursor."""
        before = document.text_before_cursor
        if before.lstrip().startswith("\\"):
            yield from self._command(before.lstrip())
            return
        word = document.get_word_before_cursor(WORD=False)
        field = _FIELD_OF.search(before)
        if field is not None:
            yield from _offered(self._columns_of(field[1], document.text), field[2], "column")
        elif _TABLE_AFTER.search(before):
            yield from _offered(self.session.catalog.names(), word, "table")
        elif word:
            yield from _offered(self._columns(document.text), word, "column")
            yield from _offered([*self._functions()], word, "function")
            yield from _offered(KEYWORDS, word, "keyword")

    def _command(self, text: str) -> Iterable[Completion]:
        head, space, name = text.partition(" ")
        if space:
            yield from _offered(self.session.catalog.names(), name, "table")
            return
        for command, about in COMMANDS.items():
            if command.startswith(head):
                yield Completion(command, -len(head), display_meta=about)

    def _columns(self, text: str) -> list[str]:
        names = dict.fromkeys(name for table in _NAMED.findall(text) for name, _ in self.session.columns(table))
        return list(names)

    def _columns_of(self, qualifier: str, text: str) -> list[str]:
        """The columns of a table, or of the table that an alias stands for."""
        alias = re.search(
            rf"\b(?:from|join)\s+[`\"]?(\w+)[`\"]?\s+(?:as\s+)?{re.escape(qualifier)}\b", text, re.IGNORECASE
        )
        return [name for name, _ in self.session.columns(alias[1] if alias else qualifier)]

    def _functions(self) -> Iterable[str]:
        words = (name for name in (*FUNCTIONS, *AGGREGATES) if name.isidentifier())
        return dict.fromkeys([*self.session.catalog.all_functions(), *words])


def _offered(names: Iterable[str], word: str, kind: str) -> Iterable[Completion]:
    for name in names:
        if name.lower().startswith(word.lower()) and name.lower() != word.lower():
            shown = name.lower() if kind == "keyword" and word.islower() else name
            yield Completion(shown, -len(word), display_meta=kind)
