"""A pattern from a text, whichever of the forms of rule tables it has."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from penstock.errors import PatternError
from penstock.frontends.patterns.events import Types, pattern_text
from penstock.frontends.patterns.sase import sase_text
from penstock.frontends.patterns.vendor_json import pattern_json
from penstock.graph.patterns.limits import limit_of
from penstock.graph.patterns.operators import OperatorPattern
from penstock.graph.patterns.pattern import Pattern, RunLimit

_SASE = "PATTERN"


_RULE = re.compile(r"(?:on|if|do)\b(?!\s*=)", re.IGNORECASE)
"""How the text of a rule begins."""


def is_pattern(text: str) -> bool:
    """Whether a text is that of a pattern, and not of a rule.

    >>> is_pattern("every a=Login -> b=Pay"), is_pattern("PATTERN SEQ(A a, B b)"), is_pattern("if n > 3 do stop")
    (True, True, False)
    """
    return _RULE.match(text.lstrip()) is None


def pattern_reader(types: Types = None, *, limit: RunLimit | int | None = None) -> PatternReader:
    """What reads the patterns of `patterns(..., reader=...)` from texts: pattern text, SASE's, or the JSON of dynamic CEP.

    Args:
        types: what the types of events in texts are: a field that names them, or a condition for each.
        limit: how many runs each of them may have at a time: a number for each key, above which the oldest are dropped, or `ps.run_limit(...)`.

    Returns:
        A function of the name and the text of a pattern.

    Raises:
        FlowError: `types` is neither.

    >>> import penstock as ps
    >>> print(ps.pattern_reader("kind")("paid", "PATTERN SEQ(order a, paid b)"))
    a ->> b
    """
    return PatternReader(types, limit_of(limit))


@dataclass(frozen=True, eq=False)
class PatternReader:
    """Reads patterns: the text of operators, SASE's, or the JSON of dynamic CEP.

    Args:
        types: what the types of events in texts are.
        limit: how many runs each pattern may have.
    """

    types: Types = None
    limit: RunLimit | None = None

    def __call__(self, name: str, text: str) -> Pattern | OperatorPattern:
        """The pattern of a text, with its name.

        Raises:
            PatternError: it cannot be read.
        """
        given = text.strip()
        if given.startswith("{"):
            return replace(pattern_json(given, limit=self.limit), name=name)
        if given[: len(_SASE)].upper() == _SASE:
            return sase_text(given, types=self.types, name=name, limit=self.limit).pattern
        try:
            return pattern_text(given, types=self.types, limit=self.limit)
        except PatternError as error:
            forms = "JSON with nodes and edges, PATTERN SEQ(...), or operators such as every a=A -> b=B"
            raise PatternError(f"pattern {name!r}: expected {forms}: {error}") from None
