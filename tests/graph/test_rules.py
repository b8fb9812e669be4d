"""Rules as a model: text, YAML, templates, and what is refused when a flow is built."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.errors import ExpressionError, FlowError, NameTaken, SchemaError, UnknownName
from penstock.frontends.rules.yaml_rules import rules_of_yaml
from penstock.graph.expr import to_text
from penstock.graph.rules.templates import template
from penstock.graph.rules.text import parse_rule, parse_rules

do = ps.action


def payments() -> Any:
    return ps.Flow("f").source("payments", ps.items([], "card string, amount int, country string"))


TEXTS = [
    "do stop",
    "if amount > 500 do emit to large",
    "on large if (amount > 500) and (country IN ('CH', 'DE')) do alert('high', 'paid {amount}'), emit to cases(card, n = amount * 2)",
    "on large do update cases(card, n = 1), delete from cases(card), post to pager(card) priority -2 deferred",
    "if card LIKE 'a%' do call notify(card), activate 'an other', deactivate 'b' inactive",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_rule_prints_as_it_is_written(text: str) -> None:
    printed = str(parse_rule("r", text))
    assert str(parse_rule("r", printed)) == printed
    assert printed.replace("`", "").lower() == text.lower()


@pytest.mark.parametrize(
    ("text", "line", "column", "part"),
    [
        ("if amount > 5", 1, 14, "expected an operator, or do"),
        ("amount > 5 do stop", 1, 1, "expected if or do"),
        ("if amount >\n do stop", 2, 5, ""),
        ("do\n  emmit to x", 2, 3, "expected an action (emit to"),
        ("do emit to x(a b)", 1, 16, "expected ')'"),
        ("do stop priority high", 1, 18, "expected a whole number"),
        ("do alert(high)", 1, 10, "expected a text in quotes"),
        ("do alert('a', 'b', 'c')", 1, 9, "an alert has a severity and a text"),
        ("do stop,", 1, 9, "expected an action"),
        ("do stop please", 1, 9, "expected a comma and another action"),
        ("if " + "(" * 1200 + "amount" + ")" * 1200 + " > 3 d stop", 1, 0, ""),
    ],
)
def test_a_text_that_cannot_be_read_says_where_and_what_was_expected(
    text: str, line: int, column: int, part: str
) -> None:
    if column == 0:
        with pytest.raises((ExpressionError, RecursionError)):
            parse_rule("r", text)
        return
    with pytest.raises(ExpressionError) as error:
        parse_rule("r", text)
    assert f"cannot read rule 'r': line {line}, column {column}: " in str(error.value)
    assert part in str(error.value)


def test_several_rules_of_one_text() -> None:
    found = parse_rules("rule a do stop\nrule 'b c' on a if n > 1 do emit to x priority 2\nrule `rule` do stop")
    assert [(rule.name, rule.on, rule.priority) for rule in found] == [("a", "", 0), ("b c", "a", 2), ("rule", "", 0)]
    with pytest.raises(NameTaken, match="'a' must have a name of its own"):
        parse_rules("rule a do stop rule a do stop")
    with pytest.raises(ExpressionError, match="line 1, column 1: expected the word rule and a name"):
        parse_rules("a do stop")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", "''"),
        ("plain", "'plain'"),
        ("{{n}}", "concat('{', 'n', '}')"),
        ("{n + 1}", "concat(coalesce(CAST(n + 1 AS string), 'null'))"),
    ],
)
def test_a_template_is_an_expression(text: str, shown: str) -> None:
    assert to_text(template(text)) == shown


@pytest.mark.parametrize("text", ["a {", "a }", "{n", "{n +}", "{{n}"])
def test_a_template_with_a_loose_brace_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        template(text)


def test_rules_in_yaml_are_those_of_text(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(
        """
rules:
  - name: big
    on: payments
    if: amount > 500
    do:
      - alert('high', 'paid {amount}')
      - emit to large, stop
    priority: 3
    deferred: yes
  - name: small
    rule: if amount < 5 do emit to small priority 1
    enabled: false
  - {name: waits, do: stop, active: false}
"""
    )
    big, small, waits = ps.rules(str(file))
    assert (
        str(big)
        == "on payments if amount > 500 do alert('high', 'paid {amount}'), emit to large, stop priority 3 deferred"
    )
    assert (str(small), small.enabled) == ("if amount < 5 do emit to small priority 1", False)
    assert not waits.active
    assert big.line == f"{file}:3"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a list of rules, got an empty file"),
        ("rules: 3", "line 1, column 1: expected rules: and a list of rules"),
        ("rules:\n  - nam: a", "line 2, column 5: no key 'nam' here; did you mean 'name'?"),
        ("rules:\n  - do: stop", "line 2, column 5: a rule needs a name"),
        ("rules:\n  - name: a", "line 2, column 5: rule 'a' needs actions"),
        ("rules:\n  - name: a\n    do: [stop, emmit]", "line 3, column 16: cannot read the actions of rule 'a'"),
        ("rules:\n  - name: a\n    if: n >\n    do: stop", "line 3, column 9: cannot read the expression"),
        (
            "rules:\n  - name: a\n    do: stop\n    priority: high",
            "line 4, column 15: expected a whole number, got 'high'",
        ),
        ("rules:\n  - name: a\n    do: stop\n    enabled: maybe", "line 4, column 14: expected true or false"),
        ("rules:\n  - name: a\n    do: stop\n    rule: do stop", "line 3, column 9: 'do' is in the text"),
        ("rules:\n  - name: [a]\n    do: stop", "line 2, column 11: expected a text"),
        ("rules:\n  - name: a\n    name: b", "line 3, column 5: the key 'name' appears twice"),
        ("rules: [a", "no YAML"),
    ],
)
def test_a_rule_file_that_is_none_says_where(text: str, message: str) -> None:
    with pytest.raises(FlowError) as error:
        rules_of_yaml(text, "r.yaml")
    assert str(error.value).startswith("r.yaml: ")
    assert message in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FlowError, match=r"nowhere\.rules cannot be read"):
        ps.rules(tmp_path / "nowhere.rules")
    file = tmp_path / "some.rules"
    file.write_text("rule a do\nstopp")
    with pytest.raises(ExpressionError, match=r"some\.rules: cannot read the rules: line 2, column 1"):
        ps.rules(file)


@pytest.mark.parametrize(
    ("rules", "error", "message"),
    [
        ([ps.rule("a", "amout > 3", do.stop())], ExpressionError, "rule 'a' .*no column 'amout'; did you mean 'amount'"),
        ([ps.rule("a", "amount + 3", do.stop())], ExpressionError, "must be true or false"),
        ([ps.rule("a", "amount > 3")], FlowError, "it does nothing"),
        ([ps.rule("a", None, do.stop(), on="paymnts")], UnknownName, "is no event here.*did you mean 'payments'"),
        ([ps.rule("a", None, do.stop()), ps.rule("a", None, do.stop())], NameTaken, "a name of its own"),
        ([ps.rule("a", None, do.alert("high", "{who}"))], ExpressionError, "no column 'who'"),
        ([ps.rule("a", None, do.emit("x", "card")), ps.rule("b", None, do.emit("x", "amount"))], SchemaError, "expected the same fields, got amount"),
        ([ps.rule("a", None, do.emit("x", n="amount")), ps.rule("b", None, do.emit("x", n="country"))], SchemaError, "is int, from rule 'a'.*got string"),
        ([ps.rule("a", None, do.update("cases", "card"))], UnknownName, "is no table of this set"),
        ([ps.rule("a", None, do.post("pager", "card"))], UnknownName, "posts to 'pager'"),
        ([ps.rule("a", None, do.activate("b"))], UnknownName, "it switches 'b'"),
        (["a"], FlowError, "made with ps.rule"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_when_the_flow_is_built(rules: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"(?s)step 'fraud' .*{message}"):
        payments().rules("fraud", rules)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tables": {"cases": "card"}, "streams": {"cases": "n int"}}, "needs its key 'card'"),
        ({"rounds": 0}, "rounds is a number from 1 on"),
        ({"streams": {"alerts": "n int"}}, "is there already"),
        ({"events": {"payments": None}}, "are streams"),
        ({"changes": 3}, "the changes of rules and their events are streams"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: Any, message: str) -> None:
    rules = [ps.rule("a", None, do.update("cases", n="amount") if "tables" in options else do.emit("x"))]
    with pytest.raises(FlowError, match=message):
        payments().rules("fraud", rules, **options)


def test_a_table_is_updated_and_not_emitted_to() -> None:
    with pytest.raises(FlowError, match="is a table; say update or delete"):
        payments().rules("fraud", [ps.rule("a", None, do.emit("cases"))], tables={"cases": "card"})
    with pytest.raises(SchemaError, match="declare them"):
        payments().rules("fraud", [ps.rule("a", None, do.delete("cases", "card"))], tables={"cases": "card"})


RULE: Any = ps.rule
DO: Any = do


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (
            lambda: RULE("r", "true", do.stop(), priority="3"),
            "rule 'r': priority is a whole number such as 10, got '3'",
        ),
        (lambda: RULE("r", "true", do.stop(), priority=1.5), "got 1.5"),
        (lambda: RULE("", "true", do.stop()), "the name of a rule is a text, got ''"),
        (lambda: DO.alert(7, "x"), "the severity of an alert is a text, got 7"),
        (lambda: DO.alert("high", 5), "what an alert says is a text, got 5"),
        (lambda: RULE("r", len, do.stop()), "got the function 'len'; make it with @ps.function"),
        (lambda: payments().rules("set", len), "rules are made with ps.rule"),
        (lambda: payments().rules("set", "do stop"), "rules are made with ps.rule"),
        (lambda: payments().rules("set", [], lookups={"card": "x"}), "the look-up 'card' is a table and its key"),
        (lambda: DO.emit(""), "the stream that emit names is a text"),
        (lambda: DO.update(" "), "the table that update names is a text"),
        (lambda: DO.activate(None), "the rule that activate names is a text, got None"),
    ],
)
def test_parts_of_a_rule_are_checked_where_they_are_written(made: Callable[[], object], message: str) -> None:
    with pytest.raises(FlowError, match=message):
        made()


def test_open_and_closed_rules_are_told_apart() -> None:
    rules = parse_rules(
        "rule a do emit to x, update y(card) rule b do alert('t') rule c do post to z rule d do call f(n) rule e do stop"
    )
    assert {rule.name: rule.is_open for rule in rules} == {"a": False, "b": True, "c": True, "d": True, "e": False}


def test_posts_are_sinks_of_their_own() -> None:
    stream = payments()
    stream.rules("fraud", [ps.rule("a", None, do.post("pager", "card"))], posts={"pager": ps.console()})
    assert [(sink.name, str(sink.inputs[0])) for sink in stream.flow.graph.sinks] == [("fraud.pager", "fraud.pager")]


def test_rules_that_switch_others_are_on_one_stream() -> None:
    flow = ps.Flow("f")
    payments, logins = (flow.source(name, ps.items([], "card string")) for name in ("payments", "logins"))
    rules = [ps.rule("a", None, do.deactivate("a"))]
    with pytest.raises(FlowError, match=r"on one stream.*got the events 'login' too"):
        payments.rules("fraud", rules, events={"login": logins})


def test_a_stream_with_event_time_is_an_event_by_its_own_name() -> None:
    flow = ps.Flow("f")
    payments = flow.source("payments", ps.items([], "card string, at timestamp"), event_time="at")
    assert "found" in dict(payments.rules("fraud", [ps.rule("a", None, do.emit("found"), on="payments")]).items())


def test_events_of_a_set_have_names_of_their_own() -> None:
    stream = payments()
    with pytest.raises(NameTaken, match="call the other one otherwise"):
        stream.rules("fraud", [ps.rule("a", None, do.emit("x"))], events={"payments": stream.select("s", "card")})
