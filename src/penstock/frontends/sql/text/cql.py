"""Windows of CQL after a table of FROM, `S [RANGE 1 HOUR SLIDE 10 MINUTES]`, and ISTREAM, DSTREAM, RSTREAM around a query."""

from __future__ import annotations

from typing import Any, cast

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

STREAMS = ("ISTREAM", "DSTREAM", "RSTREAM")


class CqlParser:
    """What the parser of the dialect reads of CQL."""

    def cql_window(self, table: exp.Expr) -> exp.Bracket:
        """A window in brackets over a table, and the alias after it."""
        parser = cast("Any", self)
        token = parser._prev
        made = exp.Bracket(this=table, expressions=[])
        if parser._match_text_seq("NOW"):
            made.set("kind", exp.var("NOW"))
        elif parser._match_text_seq("RANGE"):
            self._range(made)
        else:
            self._last_rows(made)
        if not parser._match(TokenType.R_BRACKET):
            parser.raise_error("expected ] after a window")
        made.set("alias", parser._parse_table_alias() or table.args.get("alias"))
        return made.update_positions(token)

    def _range(self, made: exp.Bracket) -> None:
        parser = cast("Any", self)
        if parser._match_text_seq("UNBOUNDED"):
            made.set("kind", exp.var("UNBOUNDED"))
            return
        made.set("kind", exp.var("RANGE"))
        made.set("range", self._span())
        if parser._match_text_seq("SLIDE"):
            made.set("slide", self._span())

    def _last_rows(self, made: exp.Bracket) -> None:
        parser = cast("Any", self)
        made.set("kind", exp.var("ROWS"))
        if parser._match(TokenType.PARTITION_BY):
            made.set("partition", parser._parse_csv(parser._parse_column))
        if not parser._match(TokenType.ROWS) and not parser._match_text_seq("ROWS"):
            parser.raise_error("expected NOW, RANGE, ROWS or PARTITION BY in a window")
        made.set("rows", parser._parse_number())

    def _span(self) -> exp.Interval:
        """A span of time: 10 MINUTES, or INTERVAL '10' MINUTE."""
        parser = cast("Any", self)
        found = parser._parse_interval()
        if found is not None:
            return cast("exp.Interval", found)
        number = parser._parse_number()
        unit = parser._parse_var(any_token=True)
        if number is None or unit is None:
            parser.raise_error("expected a span of time such as 10 MINUTES")
        made = exp.Interval(
            this=exp.Literal.string(str(number.this)), unit=exp.var(unit.name.upper().removesuffix("S"))
        )
        return made.update_positions(number)
