"""The JSON form of dynamic CEP: read as vendors write it, and what its errors say."""

from __future__ import annotations

import copy
import itertools
import json
import random
from typing import Any

import pytest

import penstock as ps
from penstock.errors import FlowError, PatternError
from penstock.graph.expr import Expr, to_text
from penstock.graph.patterns.pattern import Skip
from penstock.graph.patterns.tree import Contiguity, Preference, Repeat, Sequence, stages_of
from tests.patterns.mutation import mutated


def quantifier(*properties: str, **more: object) -> dict[str, object]:
    return {
        "consumingStrategy": "SKIP_TILL_NEXT", "properties": list(properties or ("SINGLE",)), "times": None, "untilCondition": None, **more,
    }  # fmt: skip


def node(name: str, expression: str | None = "n > 1", *properties: str, **more: object) -> dict[str, Any]:
    condition = None if expression is None else {"type": "AVIATOR", "expression": expression}
    return {"name": name, "type": "ATOMIC", "quantifier": quantifier(*properties, **more), "condition": condition}


def graph(*nodes: dict[str, Any], edges: str = "SKIP_TILL_NEXT", **more: object) -> dict[str, Any]:
    """Nodes in a row. They are listed from the last to the first, as vendors do."""
    names = [each["name"] for each in nodes]
    joined = [{"source": a, "target": b, "type": edges} for a, b in itertools.pairwise(names)]
    return {
        "name": "pattern", "type": "COMPOSITE", "quantifier": quantifier(), "condition": None, "nodes": list(reversed(nodes)), "edges": joined,
        "window": None, "afterMatchStrategy": {"type": "NO_SKIP", "patternName": None}, "version": 1, **more,
    }  # fmt: skip


DEMO = graph(
    node("start", "action == 0 || action == 2", "LOOPING", times={"from": 3, "to": 3, "windowTime": None}),
    node("end", "action != 1 && name =~ /A.*/"),
    window={"type": "FIRST_AND_LAST", "time": {"unit": "MINUTES", "size": 10}},
    afterMatchStrategy={"type": "SKIP_PAST_LAST_EVENT", "patternName": None},
)


@pytest.mark.parametrize(
    "given", [DEMO, json.dumps(DEMO), {"id": "1", "version": 1, "pattern": json.dumps(DEMO), "function": "demo.F"}]
)
def test_a_pattern_as_vendors_write_it(given: str | dict[str, object]) -> None:
    made = ps.pattern_json(given)
    assert (made.name, str(made.root), made.within) == ("pattern", "start{3,} -> end", 600_000_000)
    assert made.after_match.skip is Skip.PAST_LAST
    found = {
        stage.name: to_text(stage.condition) for stage in stages_of(made.root) if isinstance(stage.condition, Expr)
    }
    assert found == {"start": "(action = 0) OR (action = 2)", "end": "(action <> 1) AND (name RLIKE '^(?:A.*)$')"}


@pytest.mark.parametrize(
    ("properties", "times", "shown"),
    [
        (("SINGLE",), None, "a"),
        (("LOOPING",), None, "a+"),
        (("LOOPING", "OPTIONAL"), None, "a*"),
        (("SINGLE", "OPTIONAL"), None, "a?"),
        (("TIMES",), {"from": 2, "to": 4}, "a{2,4}"),
        (("TIMES",), {"from": 2, "to": 2}, "a{2}"),
        (("LOOPING",), {"from": 2, "to": 2}, "a{2,}"),
        (("TIMES", "OPTIONAL"), {"from": 2, "to": 2}, "a{2}?"),
    ],
)
def test_quantifiers(properties: tuple[str, ...], times: object, shown: str) -> None:
    made = ps.pattern_json(graph(node("b"), node("a", "n > 1", *properties, times=times), node("c")))
    assert str(made.root) == f"b -> {shown} -> c"


def test_contiguity_greediness_and_the_end_of_a_loop() -> None:
    until = {"type": "AVIATOR", "expression": "n == 9"}
    loop = node("a", "n > 1", "LOOPING", "GREEDY", consumingStrategy="STRICT", untilCondition=until)
    made = ps.pattern_json(graph(node("b"), loop, node("c"), edges="SKIP_TILL_ANY")).root
    assert isinstance(made, Sequence)
    assert made.links == (Contiguity.ANY, Contiguity.ANY)
    repeat = made.parts[1]
    assert isinstance(repeat, Repeat)
    assert (repeat.inner, repeat.preference) == (Contiguity.STRICT, Preference.GREEDY)
    assert isinstance(repeat.until, Expr)


@pytest.mark.parametrize(("edge", "shown"), [("NOT_FOLLOW", "a -> !(b) -> c"), ("NOT_NEXT", "a -> !b -> c")])
def test_what_must_not_happen(edge: str, shown: str) -> None:
    given = graph(node("a"), node("b"), node("c"))
    given["edges"][0]["type"] = edge
    assert str(ps.pattern_json(given).root) == shown


def test_graphs_in_graphs() -> None:
    inner = graph(node("b"), node("c"), name="group", quantifier=quantifier("TIMES", times={"from": 2, "to": 2}))
    assert str(ps.pattern_json(graph(node("a"), inner, node("d"))).root) == "a -> (b -> c){2} -> d"


def test_gaps_between_events() -> None:
    given = graph(node("a"), node("b"), window={"type": "PREVIOUS_AND_CURRENT", "time": {"unit": "SECONDS", "size": 5}})
    assert ps.pattern_json(given).gaps == (("b", 5_000_000),)


def test_conditions_that_join_others() -> None:
    base = "org.apache.flink.cep.pattern.conditions."
    nested = [{"type": "AVIATOR", "expression": "n > 1"}, {"type": "AVIATOR", "expression": "m < 2"}]
    either = {"type": "CLASS", "className": f"{base}RichOrCondition", "nestedConditions": nested}
    negated = {"type": "CLASS", "className": f"{base}RichNotCondition", "nestedConditions": [either]}
    given = graph(node("a"))
    given["nodes"][0]["condition"] = negated
    (stage,) = stages_of(ps.pattern_json(given).root)
    assert isinstance(stage.condition, Expr)
    assert to_text(stage.condition) == "NOT ((n > 1) OR (m < 2))"


def changed(path: str, value: object) -> dict[str, Any]:
    made = copy.deepcopy(DEMO)
    at: Any = made
    *steps, last = path.split(".")
    for step in steps:
        at = at[int(step)] if step.isdigit() else at[step]
    at[last] = value
    return made


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (
            "nodes.0.condition",
            {"type": "CLASS", "className": "demo.EndCondition"},
            "at nodes[0].condition: the Java class 'demo.EndCondition'",
        ),
        (
            "nodes.0.condition",
            {"type": "CUSTOM_ARGS", "className": "demo.X", "args": ["a"]},
            "the Java class 'demo.X' cannot run here",
        ),
        ("nodes.0.condition", {"type": "GROOVY", "expression": "n > 1"}, "Groovy"),
        ("nodes.0.condition.expression", "n >", "at nodes[0].condition.expression: cannot read the Aviator expression"),
        ("nodes.0.condition.type", "LUA", "expected one of AVIATOR"),
        ("nodes.0.name", "", "at nodes[0].name: expected a text"),
        ("nodes.0.name", "start", "a name of its own"),
        ("nodes.0.type", "MOLECULAR", "expected one of ATOMIC, COMPOSITE"),
        ("nodes.0.quantifier.properties", ["MANY"], "no property 'MANY'"),
        ("nodes.0.quantifier.properties", ["GREEDY"], "GREEDY goes with"),
        ("nodes.1.quantifier.times", {"from": "3"}, "at nodes[1].quantifier.times.from: expected a whole number"),
        ("nodes.1.quantifier.innerConsumingStrategy", "LAZY", "expected one of STRICT"),
        ("edges.0.target", "ende", "no node 'ende'; did you mean 'end'"),
        ("edges.0.type", "AFTER", "expected one of STRICT"),
        ("edges", [], "one node without an edge to it"),
        ("nodes", [], "at least one node"),
        ("nodes", {"a": 1}, "a list of objects"),
        ("window.time.unit", "EONS", "expected one of DAYS"),
        ("window.type", "ALWAYS", "expected one of FIRST_AND_LAST"),
        ("afterMatchStrategy", {"type": "SKIP_TO_FIRST", "patternName": None}, "the name of a node"),
        ("afterMatchStrategy", {"type": "SKIP_TO_FIRST", "patternName": "middle"}, "'middle'"),
    ],
)
def test_errors_say_where_and_what_was_expected(path: str, value: object, said: str) -> None:
    with pytest.raises(PatternError) as caught:
        ps.pattern_json(changed(path, value))
    assert said in str(caught.value)


def test_text_that_is_no_json_is_refused_with_its_position() -> None:
    with pytest.raises(PatternError, match="line 2, column 3") as caught:
        ps.pattern_json('{"name": 1,\n  ]')
    assert (caught.value.line, caught.value.column) == (2, 3)
    with pytest.raises(FlowError, match="a JSON object"):
        ps.pattern_json("[1]")
    with pytest.raises(PatternError, match="too deep"):
        ps.pattern_json("[" * 100_000)


def refused(text: str) -> FlowError | None:
    try:
        ps.pattern_json(text)
    except FlowError as error:
        return error
    return None


def test_mutated_texts_are_patterns_or_errors() -> None:
    rolled, texts = random.Random(17), [json.dumps(DEMO), json.dumps(graph(node("a"), node("b")), indent=1)]
    values: list[object] = [None, 1, -1, "x", [], {}, [{}], True, "SKIP_TILL_ANY", 1.5]
    read = 0
    for _ in range(3_000):
        read += refused(mutated(rolled, texts)) is None
        read += refused(json.dumps(_with_another_value(rolled, values))) is None
    assert 50 < read < 5_900


def _with_another_value(rolled: random.Random, values: list[object]) -> object:
    made: Any = copy.deepcopy(DEMO)
    at = made
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            return made
        key = rolled.choice(keys)
        if not isinstance(at[key], dict | list) or rolled.random() < 0.2:
            at[key] = rolled.choice(values)
            return made
        at = at[key]
