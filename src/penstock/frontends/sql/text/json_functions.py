"""The functions of JSON, which have words between and after their arguments."""

from __future__ import annotations

from typing import Any, cast

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

ABSENT = "absent_on_null"
"""Where the dialect notes, in `meta`, whether a function leaves nulls out."""
_EMPTY = {"OBJECT": "{}", "ARRAY": "[]"}


class JsonParser:
    """What the parser of the dialect reads of JSON."""

    def json_value(self) -> exp.Expr:
        """`JSON_VALUE(x, path [RETURNING type] [NULL | DEFAULT value ON EMPTY | ERROR])`."""
        parser = cast("Any", self)
        token, given = parser._prev, parser._parse_csv(parser._parse_assignment)
        made: exp.Expr = parser.expression(exp.Anonymous(this="JSON_VALUE", expressions=given), token=token)
        if parser._match_text_seq("RETURNING"):
            made = parser.expression(exp.TryCast(this=made, to=parser._parse_types()), token=token)
        while self._word() in ("NULL", "DEFAULT"):
            parser._advance()
            default = parser._parse_bitwise() if parser._prev.text.upper() == "DEFAULT" else None
            self._on_what()
            if default is not None:
                made = parser.expression(exp.Anonymous(this="COALESCE", expressions=[made, default]), token=token)
        return made

    def json_exists(self) -> exp.Expr:
        """`JSON_EXISTS(x, path [TRUE | FALSE | UNKNOWN ON ERROR])`."""
        parser = cast("Any", self)
        token, given = parser._prev, parser._parse_csv(parser._parse_assignment)
        if self._word() in ("TRUE", "FALSE", "UNKNOWN"):
            parser._advance()
            self._on_what()
        return cast("exp.Expr", parser.expression(exp.Anonymous(this="JSON_EXISTS", expressions=given), token=token))

    def json_query(self) -> exp.Expr:
        """`JSON_QUERY(x, path [RETURNING type] [WITH | WITHOUT ... WRAPPER] [NULL | EMPTY ARRAY | EMPTY OBJECT ON EMPTY | ERROR])`."""
        parser = cast("Any", self)
        token, given = parser._prev, parser._parse_csv(parser._parse_assignment)
        name = "JSON_QUERY"
        if parser._match_text_seq("RETURNING"):
            name = "JSON_ITEMS" if parser._parse_types().this == exp.DataType.Type.ARRAY else name
        wrapper, empty = self._wrapper(), ""
        while self._word() in ("NULL", "EMPTY", "ERROR"):
            said = self._word()
            parser._advance()
            sort = self._word() if said == "EMPTY" else ""
            if sort:
                parser._advance()
            if self._on_what() == "EMPTY":
                empty = _EMPTY.get(sort, "")
        if name == "JSON_QUERY" and not wrapper and not empty:
            words = []
        else:
            words = [exp.Literal.string(wrapper), exp.Literal.string(empty)]
        made = exp.Anonymous(this=name, expressions=[*given, *words])
        return cast("exp.Expr", parser.expression(made, token=token))

    def _wrapper(self) -> str:
        """Whether what is found is put into a list."""
        parser = cast("Any", self)
        if parser._match_text_seq("WITHOUT"):
            made = ""
        elif parser._match_text_seq("WITH"):
            made = "CONDITIONAL" if parser._match_text_seq("CONDITIONAL") else "WITH"
            parser._match_text_seq("UNCONDITIONAL")
        else:
            return ""
        parser._match_text_seq("ARRAY")
        if not parser._match_text_seq("WRAPPER"):
            parser.raise_error("expected WRAPPER")
        return made

    def json_object(self, name: str) -> exp.Expr:
        """`JSON_OBJECT([KEY] key VALUE value, ... [NULL | ABSENT ON NULL])`, and the same of one pair as an aggregate."""
        parser = cast("Any", self)
        token, parts = parser._prev, []
        while parser._curr and parser._curr.token_type != TokenType.R_PAREN and self._word() not in ("ABSENT", "NULL"):
            if self._word() == "KEY":
                parser._advance()
            parts.append(parser._parse_bitwise())
            if not (parser._match_text_seq("VALUE") or parser._match(TokenType.COLON)):
                parser.raise_error("expected VALUE")
            parts.append(parser._parse_bitwise())
            if not parser._match(TokenType.COMMA):
                break
        return self._with_nulls(name, parts, token, "NULL")

    def json_array(self, name: str) -> exp.Expr:
        """`JSON_ARRAY(value, ... [NULL | ABSENT ON NULL])`, and the same of one value as an aggregate."""
        parser = cast("Any", self)
        token, parts = parser._prev, []
        while parser._curr and parser._curr.token_type != TokenType.R_PAREN and self._word() != "ABSENT":
            parts.append(parser._parse_bitwise())
            if not parser._match(TokenType.COMMA):
                break
        return self._with_nulls(name, parts, token, "ABSENT")

    def _with_nulls(self, name: str, parts: list[Any], token: Any, default: str) -> exp.Expr:
        """A function, and whether nulls are left out."""
        parser = cast("Any", self)
        said = default
        if self._word() in ("ABSENT", "NULL"):
            said = self._word()
            parser._advance()
            if not (parser._match_text_seq("ON") and parser._match_text_seq("NULL")):
                parser.raise_error("expected ON NULL")
        made = parser.expression(exp.Anonymous(this=name, expressions=[p for p in parts if p is not None]), token=token)
        made.meta[ABSENT] = said == "ABSENT"
        return cast("exp.Expr", made)

    def _on_what(self) -> str:
        parser = cast("Any", self)
        if parser._match_text_seq("ON"):
            for what in ("EMPTY", "ERROR"):
                if parser._match_text_seq(what):
                    return what
        parser.raise_error("expected ON EMPTY or ON ERROR")
        return ""

    def _word(self) -> str:
        parser = cast("Any", self)
        return str(parser._curr.text).upper() if parser._curr else ""
