"""A pattern from a text, whichever of the forms of rule tables it has."""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.errors import PatternError
from penstock.frontends.patterns.events import Types
from penstock.frontends.patterns.sase import sase_text
from penstock.frontends.patterns.vendor_json import pattern_json
from penstock.graph.patterns.pattern import Pattern

_SASE = "PATTERN"


def is_pattern(text: str) -> bool:
    """Whether a text is that of a pattern, and not of a rule."""
    given = text.lstrip()
    return given.startswith("{") or given[: len(_SASE)].upper() == _SASE


def pattern_reader(types: Types = None) -> PatternReader:
    """What reads the patterns of `patterns(..., reader=...)` from texts: SASE's, or the JSON of dynamic CEP.

    Args:
        types: what the types of events in SASE's text are: a field that names them, or a condition for each.

    Returns:
        A function of the name and the text of a pattern.

    Raises:
        FlowError: `types` is neither.

    >>> import penstock as ps
    >>> print(ps.pattern_reader("kind")("paid", "PATTERN SEQ(order a, paid b)"))
    a ->> b
    """
    return PatternReader(types)


@dataclass(frozen=True, eq=False)
class PatternReader:
    """Reads patterns of which every run is a match: SASE's text, or the JSON of dynamic CEP.

    Args:
        types: what the types of SASE's text are.
    """

    types: Types = None

    def __call__(self, name: str, text: str) -> Pattern:
        """The pattern of a text, with its name.

        Raises:
            PatternError: it cannot be read.
        """
        given = text.strip()
        if given.startswith("{"):
            return replace(pattern_json(given), name=name)
        if given[: len(_SASE)].upper() == _SASE:
            return replace(sase_text(given, types=self.types, name=name).pattern, name=name)
        raise PatternError(
            f"pattern {name!r}: expected JSON with nodes and edges, or PATTERN SEQ(...), got {given[:40]!r}"
        )
