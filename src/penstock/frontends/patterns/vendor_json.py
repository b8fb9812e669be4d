"""The JSON form in which vendors of dynamic Flink CEP keep patterns, read as it is into the tree that `ps.pattern` makes.

A pattern is a graph: nodes, each with a quantifier and a condition, and edges with the contiguity between two of them. Graphs can be nodes. Conditions
are Aviator expressions; Java classes cannot be run here and are refused, but for those that join others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from penstock.errors import ExpressionError, FlowError, PatternError, nearest
from penstock.frontends.patterns.aviator import aviator
from penstock.frontends.patterns.reading import DEEPEST
from penstock.graph.expr import Call, Expr
from penstock.graph.patterns.limits import limit_of
from penstock.graph.patterns.operator_conditions import together
from penstock.graph.patterns.pattern import AfterMatch, Pattern, RunLimit, Skip
from penstock.graph.patterns.tree import Absence, Contiguity, Part, Preference, Repeat, Sequence, Stage, taken_stages
from penstock.graph.spelling import spelled

Object: TypeAlias = Mapping[str, object]
CONTIGUITIES = {"STRICT": Contiguity.STRICT, "SKIP_TILL_NEXT": Contiguity.RELAXED, "SKIP_TILL_ANY": Contiguity.ANY}
EDGES = (*CONTIGUITIES, "NOT_NEXT", "NOT_FOLLOW")
PROPERTIES = ("SINGLE", "LOOPING", "TIMES", "OPTIONAL", "GREEDY")
SKIPS = {
    "NO_SKIP": Skip.NONE,
    "SKIP_TO_NEXT": Skip.TO_NEXT,
    "SKIP_PAST_LAST_EVENT": Skip.PAST_LAST,
    "SKIP_TO_FIRST": Skip.TO_FIRST,
    "SKIP_TO_LAST": Skip.TO_LAST,
}
WINDOWS = ("FIRST_AND_LAST", "PREVIOUS_AND_CURRENT")
UNITS = {
    "DAYS": 86_400_000_000,
    "HOURS": 3_600_000_000,
    "MINUTES": 60_000_000,
    "SECONDS": 1_000_000,
    "MILLISECONDS": 1_000,
}
_JOINED = {"RichAndCondition": "and", "RichOrCondition": "or", "RichNotCondition": "not"}


@spelled
def pattern_json(given: str | Mapping[str, object], *, limit: RunLimit | int | None = None) -> Pattern:
    """A pattern from the JSON that vendors of dynamic Flink CEP use, for `match`.

    Args:
        given: the JSON, as text or read already: a graph of nodes and edges, or a row of a rule table whose `pattern` is one.
        limit: how many runs there may be at a time: a number for each key, above which the oldest are dropped, or `ps.run_limit(...)`.

    Returns:
        The pattern.

    Raises:
        PatternError: it cannot be read, or has what cannot run here, such as a Java class for a condition; the message has the path to it.
        FlowError: `given` is no JSON object.

    >>> import penstock as ps
    >>> once = {"consumingStrategy": "SKIP_TILL_NEXT", "properties": ["SINGLE"], "times": None, "untilCondition": None}
    >>> print(ps.pattern_json({
    ...     "name": "fails", "type": "COMPOSITE", "quantifier": once, "condition": None,
    ...     "nodes": [
    ...         {"name": "end", "type": "ATOMIC", "quantifier": once, "condition": {"type": "AVIATOR", "expression": "action == 1"}},
    ...         {"name": "start", "type": "ATOMIC", "quantifier": {**once, "properties": ["LOOPING"], "times": {"from": 3, "to": 3}},
    ...          "condition": {"type": "AVIATOR", "expression": "action == 0 || action == 2"}}],
    ...     "edges": [{"source": "start", "target": "end", "type": "SKIP_TILL_NEXT"}],
    ...     "window": None, "afterMatchStrategy": {"type": "SKIP_PAST_LAST_EVENT", "patternName": None}}))
    start{3,} -> end
    """
    graph, path = _graph(_loaded(given), "")
    return replace(_Reader().pattern(graph, path), limit=limit_of(limit))


def _loaded(given: object) -> Object:
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except json.JSONDecodeError as error:
            made = PatternError(f"cannot read the pattern, line {error.lineno}, column {error.colno}: {error.msg}")
            made.line, made.column = error.lineno, error.colno
            raise made from None
        except RecursionError:
            raise wrong("", "the JSON is nested too deep") from None
    if not isinstance(given, Mapping):
        raise FlowError(f"a pattern is a JSON object with nodes and edges, got {given!r}")
    return given


def _graph(given: Object, path: str) -> tuple[Object, str]:
    """The graph of a pattern, perhaps in a row of a rule table."""
    inner = given.get("pattern")
    if "nodes" in given or inner is None:
        return given, path
    return _loaded(inner), "pattern"


def wrong(path: str, reason: str) -> PatternError:
    """What is wrong with a part of the JSON."""
    return PatternError(f"cannot read the pattern{f', at {path}' if path else ''}: {reason}")


def _path(*parts: str) -> str:
    return ".".join(part for part in parts if part)


class _Reader:
    """Reads one pattern; gathers what belongs to it as a whole on the way."""

    def __init__(self) -> None:
        self.within: int | None = None
        self.gaps: dict[str, int] = {}
        self.rounds: dict[str, int] = {}

    def pattern(self, graph: Object, path: str) -> Pattern:
        """The whole."""
        root = self.sequence(graph, path, 0)
        self.window(graph, path, root)
        name = _text(graph, "name", path)
        after = self.after_match(graph, path)
        quantified = self.quantified(graph, path, root)
        rounds = {"rounds": tuple(self.rounds.items())} if self.rounds else {}
        try:
            return Pattern(name, quantified, self.within, tuple(self.gaps.items()), after, **rounds)  # type: ignore[arg-type]
        except FlowError as error:
            raise wrong(path, str(error)) from None

    def sequence(self, graph: Object, path: str, depth: int) -> Part:
        """The nodes of a graph in the order of its edges."""
        if depth > DEEPEST:
            raise wrong(path, f"expected at most {DEEPEST} graphs in each other")
        nodes = {_text(node, "name", at): (node, at) for node, at in _objects(graph, "nodes", path)}
        if not nodes:
            raise wrong(path, "expected at least one node in nodes")
        if len(nodes) != len(_objects(graph, "nodes", path)):
            raise wrong(_path(path, "nodes"), "expected a name of its own for each node")
        ordered = _ordered(list(nodes), _objects(graph, "edges", path), path)
        parts, links = [], []
        for name, edge in ordered:
            node, at = nodes[name]
            parts.append(self.part(node, at, edge, depth))
            links.append(CONTIGUITIES.get(edge, Contiguity.RELAXED))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts), tuple(links[1:]))

    def part(self, node: Object, path: str, edge: str, depth: int) -> Part:
        """A node: a stage, an absence, or a group."""
        kind = _choice(
            node, "type", ("ATOMIC", "COMPOSITE"), path, missing="COMPOSITE" if "nodes" in node else "ATOMIC"
        )
        if kind == "COMPOSITE":
            inner = self.sequence(node, path, depth + 1)
            group = inner if isinstance(inner, Sequence) else Sequence((inner,))
            return self.quantified(node, path, group)
        stage = Stage(_text(node, "name", path), self.condition(node.get("condition"), _path(path, "condition"), 0))
        self.window(node, path, stage)
        if edge.startswith("NOT_"):
            return Absence(stage, strict=edge == "NOT_NEXT")
        return self.quantified(node, path, stage)

    def quantified(self, node: Object, path: str, part: Part) -> Part:
        """A part with its quantifier."""
        given, at = node.get("quantifier"), _path(path, "quantifier")
        if given is None:
            return part
        if not isinstance(given, Mapping):
            raise wrong(at, f"expected an object, got {given!r}")
        properties = _properties(given, at)
        optional = "OPTIONAL" in properties
        if "LOOPING" in properties or "TIMES" in properties:
            part = self.loop(given, at, part, properties)
        elif "GREEDY" in properties:
            raise wrong(at, "GREEDY goes with LOOPING or TIMES")
        if not optional:
            return part
        least_none = isinstance(part, Repeat) and part.least == 1
        if least_none and isinstance(part, Repeat):
            return Repeat(part.part, 0, part.most, part.inner, part.preference, part.until)
        return Repeat(part, 0, 1)

    def loop(self, given: Object, path: str, part: Part, properties: list[str]) -> Part:
        """A repetition: TIMES has both bounds, LOOPING the lower one."""
        low, high = self.times(given, path, part)
        most = None if "LOOPING" in properties else high
        inner = CONTIGUITIES[
            _choice(given, "innerConsumingStrategy", tuple(CONTIGUITIES), path, missing=_inner(given, path))
        ]
        preference = Preference.GREEDY if "GREEDY" in properties else Preference.EVERY
        until = self.condition(given.get("untilCondition"), _path(path, "untilCondition"), 0)
        if low == 0:
            return Repeat(part, 0, most, inner, preference, until)
        return Repeat(part, low, most, inner, preference, until)

    def times(self, given: Object, path: str, part: Part) -> tuple[int, int]:
        """How often; once where nothing is said."""
        times, at = given.get("times"), _path(path, "times")
        if times is None:
            return 1, 1
        if not isinstance(times, Mapping):
            raise wrong(at, f"expected an object with from and to, got {times!r}")
        low = _whole(times, "from", at, 1)
        window = times.get("windowTime")
        if window is not None:
            self.rounds |= {stage.name: _span(window, _path(at, "windowTime")) for stage in taken_stages(part)}
        return low, _whole(times, "to", at, low)

    def window(self, node: Object, path: str, part: Part) -> None:
        """How long all of it may take, or from one event to the next."""
        window, at = node.get("window"), _path(path, "window")
        if window is None:
            return
        if not isinstance(window, Mapping):
            raise wrong(at, f"expected an object with type and time, got {window!r}")
        kind = _choice(window, "type", WINDOWS, at, missing=WINDOWS[0])
        span = _span(window.get("time"), _path(at, "time"))
        if kind == "FIRST_AND_LAST":
            self.within = span if self.within is None else min(self.within, span)
            return
        stages = taken_stages(part)
        for stage in stages[1:] if len(stages) > 1 else stages:
            self.gaps[stage.name] = min(span, self.gaps.get(stage.name, span))

    def after_match(self, graph: Object, path: str) -> AfterMatch:
        """Which runs are dropped after a match."""
        key = "afterMatchStrategy" if "afterMatchStrategy" in graph else "afterMatchSkipStrategy"
        given, at = graph.get(key), _path(path, key)
        if given is None:
            return AfterMatch()
        if not isinstance(given, Mapping):
            raise wrong(at, f"expected an object with type and patternName, got {given!r}")
        skip = SKIPS[_choice(given, "type", tuple(SKIPS), at)]
        stage = given.get("patternName")
        to_stage = skip in (Skip.TO_FIRST, Skip.TO_LAST)
        if to_stage and not isinstance(stage, str):
            raise wrong(at, f"expected the name of a node in patternName, got {stage!r}")
        return AfterMatch(skip, str(stage) if to_stage else "")

    def condition(self, given: object, path: str, depth: int) -> Expr | None:
        """A condition; None where there is none."""
        if given is None:
            return None
        if not isinstance(given, Mapping):
            raise wrong(path, f"expected an object with a type, got {given!r}")
        if depth > DEEPEST:
            raise wrong(path, f"expected at most {DEEPEST} conditions in each other")
        kind = _choice(given, "type", ("AVIATOR", "CLASS", "GROOVY", "CUSTOM_ARGS"), path)
        if kind == "AVIATOR":
            return _aviator(given, path)
        joined = _JOINED.get(str(given.get("className", "")).rpartition(".")[2].rpartition("$")[2])
        if joined is None:
            raise wrong(path, _refusal(kind, given))
        return self.joined(given, path, joined, depth)

    def joined(self, given: Object, path: str, how: str, depth: int) -> Expr:
        """Conditions joined by and, or and not."""
        nested = _objects(given, "nestedConditions", path)
        made = [self.condition(each, at, depth + 1) for each, at in nested]
        found = [each for each in made if each is not None]
        if not found or (how == "not" and len(found) != 1):
            raise wrong(
                _path(path, "nestedConditions"),
                f"expected {'one condition' if how == 'not' else 'conditions'}, got {len(found)}",
            )
        if how == "not":
            return Call("not", (found[0],))
        if how == "and":
            both = together(found)
            assert both is not None
            return both
        either = found[0]
        for each in found[1:]:
            either = Call("or", (either, each))
        return either


def _refusal(kind: str, given: Object) -> str:
    if kind == "GROOVY":
        return 'a Groovy expression cannot run here; write the condition with type AVIATOR and an expression such as "price > 10"'
    name = given.get("className", "")
    return (
        f'the Java class {name!r} cannot run here; write the condition with type AVIATOR and an expression such as "price > 10", or build the '
        f"pattern with ps.pattern and a Python function"
    )


def _aviator(given: Object, path: str) -> Expr:
    written = _text(given, "expression", path)
    try:
        return aviator(written)
    except ExpressionError as error:
        raise wrong(_path(path, "expression"), str(error)) from None
    except RecursionError:
        raise wrong(_path(path, "expression"), "the expression is nested too deep") from None


def _inner(given: Object, path: str) -> str:
    return _choice(given, "consumingStrategy", tuple(CONTIGUITIES), path, missing="SKIP_TILL_NEXT")


def _properties(given: Object, path: str) -> list[str]:
    """The properties of a quantifier, which older patterns call details."""
    found = given.get("properties", given.get("details"))
    if found is None:
        return ["SINGLE"]
    if not isinstance(found, list):
        raise wrong(_path(path, "properties"), f"expected a list, got {found!r}")
    for each in found:
        if each not in PROPERTIES:
            raise wrong(_path(path, "properties"), f"no property {each!r}; {nearest(str(each), PROPERTIES)}")
    return found


def _ordered(names: list[str], edges: list[tuple[Object, str]], path: str) -> list[tuple[str, str]]:
    """The nodes from the first to the last, each with the edge that leads to it."""
    following: dict[str, tuple[str, str]] = {}
    reached: set[str] = set()
    for edge, at in edges:
        source, target = _text(edge, "source", at), _text(edge, "target", at)
        for end, name in (("source", source), ("target", target)):
            if name not in names:
                raise wrong(_path(at, end), f"no node {name!r}; {nearest(name, names)}")
        if source in following or target in reached:
            raise wrong(at, "expected nodes in a row: one edge from each node, and one to it")
        following[source] = (target, _choice(edge, "type", EDGES, at))
        reached.add(target)
    begins = [name for name in names if name not in reached]
    if len(begins) != 1:
        raise wrong(
            _path(path, "edges"), f"expected one node without an edge to it, which is the first, got {len(begins)}"
        )
    made, at_node = [(begins[0], "SKIP_TILL_NEXT")], begins[0]
    while at_node in following:
        made.append(following[at_node])
        at_node = made[-1][0]
    if len(made) != len(names):
        raise wrong(_path(path, "edges"), "expected edges that join all nodes")
    return made


def _objects(given: Object, name: str, path: str) -> list[tuple[Object, str]]:
    """A list of objects, each with the path to it."""
    found, at = given.get(name), _path(path, name)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):
        raise wrong(at, f"expected a list of objects, got {str(found)[:200]}")
    return [(each, f"{at}[{number}]") for number, each in enumerate(found)]


def _text(given: Object, name: str, path: str) -> str:
    found = given.get(name)
    if not isinstance(found, str) or not found:
        raise wrong(_path(path, name), f"expected a text, got {found!r}")
    return found


def _choice(given: Object, name: str, known: tuple[str, ...], path: str, missing: str = "") -> str:
    found = given.get(name) or missing
    if found not in known:
        raise wrong(_path(path, name), f"expected one of {', '.join(known)}, got {given.get(name)!r}")
    return str(found)


def _whole(given: Object, name: str, path: str, missing: int) -> int:
    found = given.get(name, missing)
    found = missing if found is None else found
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < 10**9:
        raise wrong(_path(path, name), f"expected a whole number, got {found!r}")
    return found


def _span(given: object, path: str) -> int:
    """A span of time: a unit and a size."""
    if not isinstance(given, Mapping):
        raise wrong(path, f"expected an object with unit and size, got {given!r}")
    return UNITS[_choice(given, "unit", tuple(UNITS), path)] * _whole(given, "size", path, 0)
