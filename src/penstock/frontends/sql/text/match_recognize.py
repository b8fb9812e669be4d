"""MATCH_RECOGNIZE after an item of FROM: the clause as a node of the syntax tree, its pattern as text."""

from __future__ import annotations

from typing import Any, cast

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

SEMANTICS = ("FINAL", "RUNNING")
_SKIPS = (("PAST", "LAST", "ROW"), ("TO", "NEXT", "ROW"))
_EMPTY = (("SHOW", "EMPTY", "MATCHES"), ("OMIT", "EMPTY", "MATCHES"), ("WITH", "UNMATCHED", "ROWS"))


class MatchRecognizeParser:
    """What the parser of the dialect reads of row patterns; `_parse_match_recognize` is called after a table."""

    def match_recognize(self, table: exp.Expr) -> exp.MatchRecognize:
        """The clause over a table: MATCH_RECOGNIZE ( ... ) [AS alias]."""
        parser = cast("Any", self)
        token = parser._prev
        parser._match_l_paren()
        node = exp.MatchRecognize(partition_by=parser._parse_partition_by(), order=parser._parse_order())
        node.set("this", table)
        if self._words("MEASURES"):
            node.set("measures", parser._parse_csv(self._measure))
        self._rows(node)
        self._after(node)
        self._pattern(node)
        if self._words("SUBSET"):
            node.set("subsets", parser._parse_csv(self._subset))
        if self._words("DEFINE"):
            node.set("define", parser._parse_csv(self._definition))
        parser._match_r_paren()
        node.set("alias", parser._parse_table_alias())
        return node.update_positions(token)

    def _words(self, *words: str) -> bool:
        """Whether these words are next; they are taken then."""
        parser = cast("Any", self)
        return bool(parser._match_text_seq(*words))

    def _name(self, what: str) -> exp.Identifier:
        parser = cast("Any", self)
        made = parser._parse_id_var(any_token=True)
        if made is None:
            parser.raise_error(f"expected {what}")
        return cast("exp.Identifier", made)

    def _measure(self) -> exp.Expr:
        """Expression AS name."""
        parser = cast("Any", self)
        value = parser._parse_disjunction()
        if value is None or not parser._match(TokenType.ALIAS):
            parser.raise_error("expected a measure such as LAST(A.price) AS price")
        return exp.Alias(this=value, alias=self._name("the name of a measure"))

    def _rows(self, node: exp.MatchRecognize) -> None:
        """Which rows are emitted for a match; with timed-out partial matches, if asked for."""
        if self._words("ONE", "ROW", "PER", "MATCH"):
            node.set("rows", exp.var("ONE"))
        elif self._words("ALL", "ROWS", "PER", "MATCH"):
            found = next((each for each in _EMPTY if self._words(*each)), ("ALL",))
            node.set("rows", exp.var(" ".join(found)))
        if self._words("WITH", "TIMEOUT", "ROWS"):
            node.set("timeouts", exp.var("WITH TIMEOUT ROWS"))

    def _after(self, node: exp.MatchRecognize) -> None:
        """AFTER MATCH SKIP ..."""
        parser = cast("Any", self)
        if not self._words("AFTER", "MATCH", "SKIP"):
            return
        plain = next((each for each in _SKIPS if self._words(*each)), None)
        if plain is not None:
            node.set("after", exp.var(" ".join(plain)))
            return
        if not self._words("TO"):
            parser.raise_error("expected PAST LAST ROW, TO NEXT ROW, TO FIRST variable or TO LAST variable")
        direction = next((word for word in ("FIRST", "LAST") if self._words(word)), "LAST")
        node.set("after", exp.var(f"TO {direction}"))
        node.set("after_variable", self._name("a variable of the pattern"))

    def _pattern(self, node: exp.MatchRecognize) -> None:
        """PATTERN (text) [WITHIN interval]; the text is read by the grammar of row patterns."""
        parser = cast("Any", self)
        if not self._words("PATTERN"):
            parser.raise_error("expected PATTERN (...)")
        parser._match_l_paren()
        begin: Token | None = parser._curr
        depth = 1
        while parser._curr and depth:
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(parser._curr.token_type, 0)
            end = parser._curr
            parser._advance()
        if depth or begin is None:
            parser.raise_error("expected ) after the pattern")
            return
        text = exp.var(parser.sql[begin.start : end.start])
        text.meta["start"] = begin.start
        node.set("pattern", text)
        if self._words("WITHIN"):
            node.set("within", parser._parse_interval() or parser._parse_primary())

    def _subset(self) -> exp.Expr:
        """U = (A, B)."""
        parser = cast("Any", self)
        name = self._name("the name of a subset")
        if not parser._match(TokenType.EQ):
            parser.raise_error("expected = after the name of a subset")
        parser._match_l_paren()
        members = parser._parse_csv(lambda: self._name("a variable of the pattern"))
        parser._match_r_paren()
        return exp.Alias(this=exp.Tuple(expressions=members), alias=name)

    def _definition(self) -> exp.Expr:
        """A AS condition."""
        parser = cast("Any", self)
        name = self._name("a variable of the pattern")
        if not parser._match(TokenType.ALIAS):
            parser.raise_error("expected AS after a variable in DEFINE")
        condition = parser._parse_disjunction()
        if condition is None:
            parser.raise_error("expected a condition")
        return exp.Alias(this=condition, alias=name)

    def semantics(self) -> exp.Expr | None:
        """FINAL or RUNNING before a function; None where neither stands there."""
        parser = cast("Any", self)
        token, after = parser._curr, parser._next
        if token is None or after is None or str(token.text).upper() not in SEMANTICS:
            return None
        if after.token_type in (TokenType.L_PAREN, TokenType.DOT, TokenType.COMMA, TokenType.ALIAS, TokenType.R_PAREN):
            return None
        if after.start <= token.end + 1 or not str(after.text)[:1].isalpha():
            return None
        parser._advance()
        inner = parser._parse_unary()
        made = exp.Anonymous(this=str(token.text).upper(), expressions=[inner])
        return cast("exp.Expr", made.update_positions(token))
