"""Hints: `/*+ STATE_TTL('a' = '1d') */` and the like. Those that are not understood are refused where they stand."""

from __future__ import annotations

from sqlglot import exp

from penstock.errors import PenstockError, nearest
from penstock.frontends.sql.catalog.spans import flink_span
from penstock.frontends.sql.plan.context import Planning
from penstock.frontends.sql.plan.statements.settings import TTL
from penstock.frontends.sql.text.hints import place_in_hint
from penstock.frontends.sql.text.source import SqlText
from penstock.graph.duration import micros

IGNORED = ("BROADCAST", "SHUFFLE_HASH", "SHUFFLE_MERGE", "NEST_LOOP")
"""Hints about how a join is carried out, which is decided here without them."""
LOOKUP = ("table", "async", "output-mode", "capacity", "timeout")
"""What a LOOKUP hint may say; but for the table it changes nothing, since look-ups of a batch are made together."""
_RETRY = ("retry-predicate", "retry-strategy", "fixed-delay", "max-attempts")


def ttl_of(planning: Planning, tree: exp.Select) -> int | None:
    """How long a step keeps what it has of a key that does not change: as a hint says, or SET 'table.exec.state.ttl'."""
    hint = tree.args.get("hint")
    spans = _ttls(planning, tree, hint) if hint is not None else []
    if spans:
        return max(spans)
    return span_set(planning, TTL)


def span_set(planning: Planning, name: str) -> int | None:
    """A span of time that SET has set; None where it is not set, or zero."""
    written = planning.session.settings.get(name, "")
    return micros(flink_span(written), name) or None if written else None


def _ttls(planning: Planning, tree: exp.Select, hint: exp.Expr) -> list[int]:
    """The spans of STATE_TTL hints; all other hints are checked."""
    text, made = planning.text, []
    for each in hint.expressions:
        name = str(each.this if isinstance(each, exp.Anonymous) else each.name).upper()
        pairs = _pairs(text, each) if isinstance(each, exp.Anonymous) and name in ("STATE_TTL", "LOOKUP") else []
        if name == "STATE_TTL":
            for table, span, place in pairs:
                _check_table(planning, tree, table, place)
                made.append(_span(text, span, place))
        elif name == "LOOKUP":
            _check_lookup(planning, tree, pairs)
        elif name not in IGNORED:
            known = ", ".join(("STATE_TTL", "LOOKUP", *IGNORED))
            raise text.error(
                place_in_hint(text, name), f"no hint {name}; there are: {known}, and OPTIONS after a table"
            )
    return made


Pair = tuple[str, str, int]


def _pairs(text: SqlText, hint: exp.Anonymous) -> list[Pair]:
    made = []
    for pair in hint.expressions:
        sides = (pair.this, pair.expression) if isinstance(pair, exp.EQ) else ()
        names = [str(side.this) for side in sides if isinstance(side, exp.Literal)]
        names = names or [side.name for side in sides if isinstance(side, exp.Column)]
        if len(names) != 2:
            name = str(hint.this).upper()
            raise text.error(place_in_hint(text, name), f"expected {name}('name' = 'value'), in single quotes")
        made.append((names[0], names[1], place_in_hint(text, names[0])))
    return made


def _span(text: SqlText, written: str, place: int) -> int:
    try:
        return micros(flink_span(written), "STATE_TTL")
    except PenstockError as error:
        raise text.error(place, str(error)) from None


def _check_table(planning: Planning, tree: exp.Select, name: str, place: int) -> None:
    """A hint names a table or an alias of the query."""
    items = [tree.args.get("from_"), *(tree.args.get("joins") or ())]
    known = [each.this.alias_or_name for each in items if each is not None]
    if name.lower() not in {each.lower() for each in known}:
        raise planning.text.error(
            place, f"no table {name!r} in this query; {nearest(name, known) if known else 'it has none'}"
        )


def _check_lookup(planning: Planning, tree: exp.Select, pairs: list[Pair]) -> None:
    for name, value, place in pairs:
        if name in _RETRY:
            raise planning.text.error(
                place, f"LOOKUP '{name}' is not supported: a row that finds nothing does not wait to look again"
            )
        if name not in LOOKUP:
            raise planning.text.error(place, f"no option {name!r} of LOOKUP; {nearest(name, LOOKUP)}")
        if name == "table":
            _check_table(planning, tree, value, place)
    if not any(name == "table" for name, _, _ in pairs):
        raise planning.text.error(place_in_hint(planning.text, "LOOKUP"), "expected LOOKUP('table' = 'name', ...)")
