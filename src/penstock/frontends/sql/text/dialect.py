"""The dialect: sqlglot's parser with names in backticks or double quotes, functions left as they are written, and windows in FROM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot import parser as parsers
from sqlglot import tokens as tokenizers
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy
from sqlglot.tokenizer_core import TokenType

from penstock.frontends.sql.text.cql import CqlParser
from penstock.frontends.sql.text.json_functions import JsonParser
from penstock.frontends.sql.text.match_recognize import MatchRecognizeParser

_NEXT_ARGUMENT = ("DESCRIPTOR", "INTERVAL", "TIMECOL", "GAP", "SIZE")
WINDOWS = ("TUMBLE", "HOP", "CUMULATE", "SESSION")
TABLE_ARGUMENT, DESCRIPTOR, PARTITION = "table_argument", "descriptor", "partition_by"
"""Where the dialect notes, in `meta`, that an argument is `TABLE t` or `DESCRIPTOR(c)`, and how the table is partitioned."""


class Penstock(Dialect):
    """What Penstock reads."""

    NORMALIZATION_STRATEGY = NormalizationStrategy.CASE_INSENSITIVE

    class Tokenizer(tokenizers.Tokenizer):
        """Names stand in backticks or double quotes, texts in single quotes, without escapes but a doubled quote."""

        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"', "`"]
        QUOTES: ClassVar[list[tuple[str, str] | str]] = ["'"]
        STRING_ESCAPES: ClassVar[list[str]] = ["'"]
        HEX_STRINGS: ClassVar[list[str | tuple[str, str]]] = [("x'", "'"), ("X'", "'")]
        COMMANDS: ClassVar[set[TokenType]] = set()
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **tokenizers.Tokenizer.KEYWORDS,
            "MATCH_RECOGNIZE": TokenType.MATCH_RECOGNIZE,
            "ROW": TokenType.STRUCT,
            "MULTISET": TokenType.VAR,
            "BYTES": TokenType.VARBINARY,
            "STRING": TokenType.TEXT,
        }

    class Parser(MatchRecognizeParser, CqlParser, JsonParser, parsers.Parser):
        """Every function stays a name with arguments: what it means is the planner's to say."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNC_TOKENS: ClassVar[set[TokenType]] = {*parsers.Parser.FUNC_TOKENS, TokenType.SESSION}
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
            **{
                name: parser
                for name, parser in parsers.Parser.FUNCTION_PARSERS.items()
                if name in ("CAST", "TRY_CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM", "CEIL", "FLOOR", "OVERLAY")
            },
            **{name: lambda self, name=name: self.window_function(name) for name in WINDOWS},
            "DESCRIPTOR": lambda self: self.descriptor(),
            "JSON_VALUE": lambda self: self.json_value(),
            "JSON_EXISTS": lambda self: self.json_exists(),
            "JSON_QUERY": lambda self: self.json_query(),
            "JSON_OBJECT": lambda self: self.json_object("JSON_OBJECT"),
            "JSON_OBJECTAGG": lambda self: self.json_object("JSON_OBJECTAGG"),
            "JSON_ARRAY": lambda self: self.json_array("JSON_ARRAY"),
            "JSON_ARRAYAGG": lambda self: self.json_array("JSON_ARRAYAGG"),
        }

        QUERY_MODIFIER_PARSERS: ClassVar[dict[TokenType, Any]] = {
            kind: parser
            for kind, parser in parsers.Parser.QUERY_MODIFIER_PARSERS.items()
            if kind != TokenType.MATCH_RECOGNIZE
        }

        def _warn_unsupported(self) -> None:
            """Says nothing: a statement that is not understood is refused with its place."""

        def _parse_table(self, *args: Any, **kwargs: Any) -> Any:
            """An item of FROM, perhaps with a row pattern after it."""
            table = super()._parse_table(*args, **kwargs)
            if table is not None and self._match(TokenType.L_BRACKET):
                table = self.cql_window(table)
            while table is not None and self._match(TokenType.MATCH_RECOGNIZE):
                table = self.match_recognize(table)
            return table

        def _parse_bracket(self, this: Any = None) -> Any:
            """An item of a value; what stands in brackets after a table is a window."""
            return this if isinstance(this, exp.Table) else super()._parse_bracket(this)

        def _parse_unary(self) -> Any:
            """A value, in a measure perhaps with FINAL or RUNNING before it."""
            return self.semantics() or super()._parse_unary()

        def _parse_cube_or_rollup(self, with_prefix: bool = False) -> exp.Cube | exp.Rollup | None:
            """ROLLUP or CUBE of keys, which are expressions of any kind."""
            kind = self._match_set((TokenType.CUBE, TokenType.ROLLUP)) and self._prev.token_type
            if not kind:
                return None
            keys = [] if with_prefix else self._parse_wrapped_csv(self._parse_disjunction)
            return self.expression((exp.Cube if kind == TokenType.CUBE else exp.Rollup)(expressions=keys))

        def _parse_grouping_set(self) -> exp.Expr | None:
            """One of GROUPING SETS."""
            return self._parse_grouping_sets() or self._parse_cube_or_rollup() or self._parse_disjunction()

        def window_function(self, name: str) -> exp.Anonymous:
            """A function of windows: of a table in FROM, or of a time in GROUP BY."""
            token = self._prev
            arguments = self._parse_csv(self.window_argument)
            return self.expression(exp.Anonymous(this=name, expressions=arguments), token=token)

        def window_argument(self) -> exp.Expr | None:
            """An argument, perhaps by its name: a table, a descriptor, or a value."""
            if self._next and self._next.token_type in (TokenType.FARROW, TokenType.DARROW):
                name = self._curr.text
                token = self._curr
                self._advance(2)
                made = exp.Kwarg(this=exp.var(name), expression=self.window_argument())
                return self.expression(made, token=token)
            if self._match(TokenType.TABLE):
                return self.table_argument()
            return self._parse_lambda()

        def table_argument(self) -> exp.Expr | None:
            """`TABLE t`, `TABLE(t)` or `TABLE (SELECT ...)`, perhaps with PARTITION BY."""
            table: exp.Expr | None = self._parse_table()
            if table is None:
                self.raise_error("expected a table after TABLE")
                return None
            table.meta[TABLE_ARGUMENT] = True
            if self._match(TokenType.PARTITION_BY):
                table.meta[PARTITION] = self.partition_columns()
            return table

        def partition_columns(self) -> list[exp.Expr | None]:
            """The columns after PARTITION BY, in parentheses or not, up to the next argument."""
            if self._match(TokenType.L_PAREN):
                wrapped = self._parse_csv(self._parse_column)
                self._match_r_paren()
                return list(wrapped)
            made = [self._parse_column()]
            while self._curr.token_type == TokenType.COMMA and self._next.text.upper() not in _NEXT_ARGUMENT:
                self._advance()
                made.append(self._parse_column())
            return made

        def descriptor(self) -> exp.Anonymous:
            """`DESCRIPTOR(c)`."""
            token = self._prev
            columns = self._parse_csv(self._parse_id_var)
            made = self.expression(exp.Anonymous(this="DESCRIPTOR", expressions=columns), token=token)
            made.meta[DESCRIPTOR] = True
            return made
