"""Rules in their three forms: every kind of event, every action, and every option, in Python, as text and in a YAML file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.graph.rules import RuleSet
from penstock.testing import run_local
from tests.same.conftest import Case

do = ps.action
SCHEMA = "card string, amount int, at string"


@ps.function
def noted(card: str) -> str:
    """Something that Python does."""
    return f"noted {card}"


def case(why: str, who: str = "card") -> Any:
    return do.emit("cases", who=who, why=ps.lit(why))


PYTHON = [
    ps.rule(
        "big", "amount > 500", do.alert("high", "{card} paid {amount}"), case("big"), do.update("totals", "card", "amount"),
        priority=2,
    ),
    ps.rule("small", "amount < 5", do.delete("totals", "card"), do.alert("low", "only {amount}")),
    ps.rule("after", "amount > 500", case("deferred"), deferred=True),
    ps.rule("matched", None, case("match"), on="pair"),
    ps.rule("missing", None, case("absence"), on="lone"),
    ps.rule("timed", None, case("timer", "'clock'"), on="tick"),
    ps.rule("changed", "op = 'insert'", case("row"), on="count"),
    ps.rule("page", "why = 'big'", do.post("pager", "who"), on="cases"),
    ps.rule("note", "why = 'match'", do.call("noted(who)"), do.emit("done", "who"), on="cases"),
    ps.rule("closed", "amount = 7", case("closed"), do.stop(), priority=9),
]  # fmt: skip
TEXT = """
    rule big if amount > 500
      do alert('high', '{card} paid {amount}'), emit to cases(who = card, why = 'big'), update totals(card, amount) priority 2
    rule small if amount < 5 do delete from totals(card), alert('low', 'only {amount}')
    rule after if amount > 500 do emit to cases(who = card, why = 'deferred') deferred
    rule matched on pair do emit to cases(who = card, why = 'match')
    rule missing on lone do emit to cases(who = card, why = 'absence')
    rule timed on tick do emit to cases(who = 'clock', why = 'timer')
    rule changed on count if op = 'insert' do emit to cases(who = card, why = 'row')
    rule page on cases if why = 'big' do post to pager(who)
    rule note on cases if why = 'match' do call noted(who), emit to done(who)
    rule closed if amount = 7 do emit to cases(who = card, why = 'closed'), stop priority 9
"""
YAML = """
rules:
  - {name: big, if: amount > 500, do: ["alert('high', '{card} paid {amount}')", "emit to cases(who = card, why = 'big')", "update totals(card, amount)"], priority: 2}
  - {name: small, if: amount < 5, do: ["delete from totals(card)", "alert('low', 'only {amount}')"]}
  - {name: after, if: amount > 500, do: "emit to cases(who = card, why = 'deferred')", deferred: true}
  - {name: matched, on: pair, do: "emit to cases(who = card, why = 'match')"}
  - {name: missing, on: lone, do: "emit to cases(who = card, why = 'absence')"}
  - {name: timed, rule: "on tick do emit to cases(who = 'clock', why = 'timer')"}
  - {name: changed, on: count, if: "op = 'insert'", do: "emit to cases(who = card, why = 'row')"}
  - {name: page, on: cases, if: "why = 'big'", do: post to pager(who)}
  - {name: note, on: cases, if: "why = 'match'", do: ["call noted(who)", "emit to done(who)"]}
  - {name: closed, if: amount = 7, do: ["emit to cases(who = card, why = 'closed')", stop], priority: 9}
"""


def of_yaml(text: str) -> Callable[[Path], RuleSet]:
    def read(folder: Path) -> RuleSet:
        (folder / "rules.yaml").write_text(text)
        return ps.rules(folder / "rules.yaml")

    return read


FORMS: dict[str, Callable[[Path], Any]] = {
    "python": lambda _: PYTHON,
    "text": lambda _: ps.rules(TEXT),
    "yaml": of_yaml(YAML),
}
EVENTS = [
    ("a", 900, "2026-01-01 10:00:00"),
    ("b", 3, "2026-01-01 10:00:10"),
    ("a", 7, "2026-01-01 10:00:20"),
    ("c", 600, "2026-01-01 10:01:05"),
    ("c", 2, "2026-01-01 10:01:08"),
]


def flow_of(rules: Any) -> ps.Flow:
    """Records, matches, absences, timers and changes of a table as the events of one set."""
    flow = ps.Flow("forms", functions=[noted])
    payments = flow.source("payments", ps.items([], SCHEMA), event_time="at")
    pair = ps.pattern("pair").begin("big", "amount > 500").followed_by("small", "amount < 10").within("15s")
    hits = payments.key_by("card").match("pairs", pair, select={"card": "big.card"})
    ticks = payments.match("ticks", ps.pattern_text("every timer:interval(1 min)"))
    counts = payments.key_by("card").count("per_card", into="n").changelog("counts", before=False)
    found = payments.rules(
        "act", rules, tables={"totals": "card"}, posts={"pager": ps.console()}, streams={"totals": "card string, amount int"},
        events={"pair": hits, "lone": hits.side("timed_out"), "tick": ticks, "count": counts},
    )  # fmt: skip
    for name in ("alerts", "cases", "totals", "done"):
        found[name].sink(name, ps.console())
    return flow


EXPECTED: dict[str, list[Any]] = {
    "alerts": [
        ("big", "high", "a paid 900", "payments"),
        ("small", "low", "only 3", "payments"),
        ("big", "high", "c paid 600", "payments"),
        ("small", "low", "only 2", "payments"),
    ],
    "cases": [
        ("a", "big"),
        ("c", "big"),
        ("a", "deferred"),
        ("c", "deferred"),
        ("c", "match"),
        ("a", "absence"),
        ("clock", "timer"),
        ("clock", "timer"),
        ("a", "row"),
        ("b", "row"),
        ("c", "row"),
        ("a", "closed"),
    ],
    "totals": [("a", 900)],
    "done": [("c",)],
    "act.pager": [("a",), ("c",)],
}


@pytest.mark.parametrize("form", FORMS)
def test_events_and_actions(form: str, same: Case, tmp_path: Path) -> None:
    same.check(flow_of(FORMS[form](tmp_path)), {"payments": EVENTS}, EXPECTED)


def test_the_forms_are_the_same_rules(tmp_path: Path) -> None:
    made = [[str(rule) for rule in RuleSet(tuple(form(tmp_path)))] for form in FORMS.values()]
    assert made[0] == made[1] == made[2]


SWITCHES: dict[str, Callable[[Path], Any]] = {
    "python": lambda _: [
        ps.rule("probe", "amount < 5", do.activate("large")),
        ps.rule("large", "amount > 500", do.emit("found", "card", "amount"), do.deactivate("large"), active=False),
    ],
    "text": lambda _: ps.rules(
        "rule probe if amount < 5 do activate large "
        "rule large if amount > 500 do emit to found(card, amount), deactivate large inactive"
    ),
    "yaml": of_yaml(
        "- {name: probe, if: amount < 5, do: activate large}\n"
        "- {name: large, if: amount > 500, do: ['emit to found(card, amount)', deactivate large], active: false}\n"
    ),
}
PAID = [("a", 901), ("b", 1), ("a", 902), ("b", 903), ("a", 904), ("b", 2), ("a", 905)]


@pytest.mark.parametrize("form", SWITCHES)
@pytest.mark.parametrize("by_key", [True, False])
def test_rules_switch_others(form: str, by_key: bool, tmp_path: Path) -> None:
    """For each key, or for all records in one task."""
    flow = ps.Flow("switches")
    payments = flow.source("payments", ps.items([], "card string, amount int"))
    rules = SWITCHES[form](tmp_path)
    found = payments.key_by("card").rules("act", rules) if by_key else payments.rules("act", rules)
    found.found.sink("out", ps.console())
    expected = [("b", 903)] if by_key else [("a", 902), ("a", 905)]
    assert run_local(flow, {"payments": PAID})["out"] == expected


def test_rules_switch_others_without_a_key(same: Case) -> None:
    flow = ps.Flow("switches")
    payments = flow.source("payments", ps.items([], "card string, amount int"))
    payments.rules("act", SWITCHES["text"](Path())).found.sink("out", ps.console())
    same.check(flow, {"payments": PAID}, {"out": [("a", 902), ("a", 905)]})


def test_rules_by_key_look_up_in_tables(same: Case, tmp_path: Path) -> None:
    """A static table, one that is read again, and a stream as a table."""
    (tmp_path / "cards.csv").write_text("card,home\na,DE\nb,CH\n")
    flow = ps.Flow("lookups")
    limits = flow.source("limits", ps.items([], "country string, most int"))
    payments = flow.source("payments", ps.items([], "card string, amount int, country string"))
    rules = ps.rules("""
        rule abroad if country != holder.home do activate over, emit to abroad(card)
        rule over if amount > allowed.most do emit to over(card, amount), deactivate over inactive
    """)
    cards = ps.files(tmp_path / "cards.csv", "csv", "card string, home string")
    found = payments.key_by("card").rules(
        "act", rules, lookups={"holder": (cards, "card"), "allowed": (limits, "country")}
    )
    found.abroad.sink("abroad", ps.console())
    found.over.sink("over", ps.console())
    paid = [("a", 900, "DE"), ("a", 1, "CH"), ("b", 900, "CH"), ("a", 800, "DE"), ("a", 700, "DE")]
    expected: dict[str, list[Any]] = {"abroad": [("a",)], "over": [("a", 800)]}
    inputs: dict[str, list[Any]] = {"payments": paid, "limits": [("DE", 500), ("CH", 500)]}
    same.check(flow, inputs, expected, cuts={"limits": [2], "payments": [3]})
