"""Hints: `/*+ STATE_TTL('a' = '1d') */` and the like. Those that are not understood are refused where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from penstock.frontends.sql.plan.context import Planning
from penstock.frontends.sql.text.source import SqlText
from penstock.graph.duration import micros

_HINT = re.compile(r"(\w+)\s*(?:\(([^()]*)\))?")
_PAIR = re.compile(r"\s*'([^']*)'\s*=\s*'([^']*)'\s*")
IGNORED = ("BROADCAST", "SHUFFLE_HASH", "SHUFFLE_MERGE", "NEST_LOOP", "LOOKUP")
"""Hints about how a join is carried out, which is decided here without them."""


def ttl_of(planning: Planning, tree: exp.Select) -> int | None:
    """How long a join keeps rows of a key that does not change: as a hint says, or SET 'table.exec.state.ttl'."""
    hint = tree.args.get("hint")
    spans = [span for name, span in _options(planning.text, hint) if name == "STATE_TTL"] if hint is not None else []
    if spans:
        return max(spans)
    written = planning.session.settings.get("table.exec.state.ttl", "")
    return micros(_compact(written), "table.exec.state.ttl") or None if written else None


def _options(text: SqlText, hint: exp.Expr) -> Iterator[tuple[str, int]]:
    for each in hint.expressions:
        name = str(each.this if isinstance(each, exp.Anonymous) else each.name).upper()
        if name == "STATE_TTL" and isinstance(each, exp.Anonymous):
            for pair in each.expressions:
                if not isinstance(pair, exp.EQ) or not isinstance(pair.expression, exp.Literal):
                    raise text.error(hint, "expected STATE_TTL('table' = '1d')")
                yield name, micros(_compact(str(pair.expression.this)), "STATE_TTL")
        elif name not in IGNORED:
            raise text.error(
                hint, f"no hint {name}; there are: STATE_TTL, OPTIONS (after a table), {', '.join(IGNORED)}"
            )


def _compact(span: str) -> str:
    """A span as Flink writes it, such as `1 h` or `10 min`."""
    words = {
        "min": "m",
        "minute": "m",
        "minutes": "m",
        "sec": "s",
        "second": "s",
        "seconds": "s",
        "hour": "h",
        "hours": "h",
    }
    days = {"day": "d", "days": "d"}
    return re.sub(r"[a-z]+", lambda m: {**words, **days}.get(m[0], m[0]), span.lower())


__all__ = ["ttl_of"]
