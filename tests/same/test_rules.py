"""Rules, on every runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.testing import Driver
from tests.same.conftest import Case

PAYMENTS = "card string, amount int, country string"
RECORDS = [("a", 900, "CH"), ("b", 3, "CH"), ("c", 600, "DE"), ("a", 2, "FR"), (None, 700, None), ("d", None, "CH")]
do = ps.action


def flow_of(*rules: object, **options: object) -> ps.Flow:
    flow = ps.Flow("rules")
    found = flow.source("payments", ps.items([], PAYMENTS)).rules("fraud", list(rules), **options)  # type: ignore[arg-type]
    for name, stream in found.items():
        stream.sink(name if name != "payments" else "again", ps.console())
    return flow


@pytest.mark.live
def test_records_alerts_and_rules_that_follow(same: Case) -> None:
    flow = flow_of(
        ps.rule("big", "amount > 500", do.alert("high", "{card} paid {amount}"), do.emit("suspicious")),
        ps.rule("abroad", "country != 'CH'", do.emit("odd", "card", twice="amount * 2"), on="suspicious"),
        ps.rule("small", "amount between 0 and 5", do.alert("low", "only {amount}"), deferred=True),
        ps.rule("again", "twice > 0", do.alert("high", "twice is {twice}"), on="odd"),
    )
    same.check(
        flow,
        {"payments": RECORDS},
        {
            "alerts": [
                ("big", "high", "a paid 900", "payments"),
                ("big", "high", "c paid 600", "payments"),
                ("big", "high", "null paid 700", "payments"),
                ("small", "low", "only 3", "payments"),
                ("small", "low", "only 2", "payments"),
                ("again", "high", "twice is 1200", "odd"),
            ],
            "suspicious": [RECORDS[0], RECORDS[2], RECORDS[4]],
            "odd": [("c", 1200)],
        },
    )


def test_tables_that_rules_update(same: Case) -> None:
    flow = flow_of(
        ps.rule("open", "amount > 500", do.update("cases", "card", n="amount")),
        ps.rule("close", "amount <= 5", do.delete("cases", "card")),
        tables={"cases": "card"},
    )
    same.check(flow, {"payments": [*RECORDS[:4], ("c", 7, "CH")]}, {"cases": [("c", 600)]})


def test_the_first_rule_that_stops_keeps_others_from_the_record(same: Case) -> None:
    flow = flow_of(
        ps.rule("all", None, do.emit("rest", "card")),
        ps.rule("swiss", "country = 'CH'", do.emit("home", "card"), do.stop(), priority=1),
        ps.rule("large", "amount >= 600", do.emit("large", "card"), do.stop(), priority=2),
    )
    expected: dict[str, list[str | None]] = {"large": ["a", "c", None], "home": ["b", "d"], "rest": ["a"]}
    same.check(flow, {"payments": RECORDS}, {name: [(card,) for card in cards] for name, cards in expected.items()})


@pytest.mark.live
def test_rules_that_switch_others_by_key(same: Case) -> None:
    """A probe of a card has its next large payment found, once; other cards are not concerned."""
    flow = ps.Flow("switches")
    rules = [
        ps.rule("probe", "amount < 5", do.activate("large"), do.emit("probes", "card")),
        ps.rule("large", "amount > 500", do.emit("found", "card", "amount"), do.deactivate("large"), active=False),
        ps.rule("never", "country = 'FR'", do.deactivate("probe"), on="probes_of", priority=-1),
        ps.rule("seen", "amount < 5", do.emit("probes_of")),
    ]
    found = flow.source("payments", ps.items([], PAYMENTS)).key_by("card").rules("watch", rules)
    found.found.sink("found", ps.console())
    found.probes.sink("probes", ps.console())
    payments = [
        ("a", 900, "CH"), ("a", 1, "CH"), ("b", 901, "CH"), ("a", 902, "CH"), ("a", 903, "CH"),
        ("b", 2, "FR"), ("b", 3, "CH"), ("b", 904, "CH"), (None, 1, "CH"), (None, 905, "CH"),
    ]  # fmt: skip
    expected: dict[str, list[Any]] = {
        "found": [("a", 902), ("b", 904), (None, 905)],
        "probes": [("a",), ("b",), (None,)],
    }
    same.check(flow, {"payments": payments}, expected)


def test_rules_on_several_streams(same: Case) -> None:
    """A record, a change of a table and a rule that follows from both are events of one set."""
    flow = ps.Flow("events")
    stream = flow.source("payments", ps.items([], PAYMENTS))
    logins = flow.source("logins", ps.items([], "user string, ok boolean"))
    totals = logins.key_by("user").count("n", into="n").changelog("changes", before=False)
    rules = [
        ps.rule("big", "amount > 500", do.alert("high", "{card}"), do.emit("cases", who="card")),
        ps.rule("failed", "not ok", do.alert("low", "{user}"), do.emit("cases", who="user"), on="login"),
        ps.rule("first", "op = 'insert'", do.emit("cases", who="concat('new ', user)"), on="total"),
        ps.rule("case", "who like 'a%'", do.emit("seen", "who"), on="cases"),
    ]
    found = stream.rules("fraud", rules, events={"login": logins, "total": totals}, tables={"never": "k"})
    for name in ("alerts", "seen", "cases"):
        found[name].sink(name, ps.console())
    inputs: dict[str, list[Any]] = {"payments": RECORDS[:3], "logins": [("ada", False), ("bob", True)]}
    expected: dict[str, list[Any]] = {
        "alerts": [
            ("big", "high", "a", "payments"),
            ("big", "high", "c", "payments"),
            ("failed", "low", "ada", "login"),
        ],
        "cases": [("a",), ("c",), ("ada",), ("new ada",), ("new bob",)],
        "seen": [("a",), ("ada",)],
    }
    same.check(flow, inputs, expected)


def test_matches_and_absences_are_events(same: Case) -> None:
    flow = ps.Flow("orders")
    stream = flow.source("events", ps.items([], "id string, kind string, at string"), event_time="at")
    paid = ps.pattern("paid").begin("order", "kind = 'order'").followed_by("payment", "kind = 'payment'").within("10m")
    hits = stream.key_by("id").match("paid", paid, select={"id": "order.id"})
    rules = ps.rules(
        "rule ship on paid do emit to shipped(id) rule remind on unpaid do alert('medium', 'order {id}'), emit to reminders(id)"
    )
    found = hits.rules("act", rules, event="paid", events={"unpaid": hits.side("timed_out")})
    for name, each in found.items():
        each.sink(name, ps.console())
    events = [
        ("a", "order", "2026-01-01 10:00:00"),
        ("b", "order", "2026-01-01 10:01:00"),
        ("a", "payment", "2026-01-01 10:05:00"),
    ]
    expected: dict[str, list[Any]] = {
        "shipped": [("a",)],
        "reminders": [("b",)],
        "alerts": [("remind", "medium", "order b", "unpaid")],
    }
    same.check(flow, {"events": events}, expected)


def test_conditions_look_up_in_tables_and_in_streams(same: Case, tmp_path: Path) -> None:
    (tmp_path / "cards.csv").write_text("card,home\na,DE\nc,DE\n")
    flow = ps.Flow("lookups")
    limits = flow.source("limits", ps.items([], "country string, most int"))
    stream = flow.source("payments", ps.items([], PAYMENTS))
    rules = ps.rules("""
        rule abroad if country != holder.home do alert('low', '{card} of {holder.home} in {country}')
        rule over if amount > allowed.most do emit to over(card, most = allowed.most)
        rule unknown if holder.home is null do emit to unknown(card)
    """)
    cards = ps.files(tmp_path / "cards.csv", "csv", "card string, home string")
    found = stream.rules("fraud", rules, lookups={"holder": (cards, "card"), "allowed": (limits, "country")})
    for name, each in found.items():
        each.sink(name, ps.console())
    inputs: dict[str, list[Any]] = {"payments": RECORDS, "limits": [("CH", 1000), ("CH", 500), ("DE", 600)]}
    expected: dict[str, list[Any]] = {
        "alerts": [("abroad", "low", "a of DE in CH", "payments"), ("abroad", "low", "a of DE in FR", "payments")],
        "over": [("a", 500)],
        "unknown": [("b",), (None,), ("d",)],
    }
    same.check(flow, inputs, expected, cuts={"limits": [3], "payments": [2]})


def changing_flow() -> ps.Flow:
    flow = ps.Flow("changing")
    changes = flow.source("changes", ps.items([], "rule string, op string, text string, by string"))
    payments = flow.source("payments", ps.items([], PAYMENTS))
    rules = [
        ps.rule("big", "amount > 500", do.alert("high", "{card} paid {amount}")),
        ps.rule("odd", "country = 'XX'", do.emit("found", "card")),
    ]
    found = payments.rules("fraud", rules, changes=changes)
    found.alerts.sink("alerts", ps.console())
    found.found.sink("found", ps.console())
    return flow


@pytest.mark.live
def test_changes_of_rules_take_effect_before_the_records_of_their_batch(same: Case) -> None:
    changes = [
        ("big", "change", "if amount > 800 do alert('top', '{card}')", "ann"),
        ("small", "add", "if amount < 5 do emit to found(card)", "bob"),
        ("gone", "add", "do emit to found(card)", "bob"),
        ("gone", "remove", None, "bob"),
        ("odd", "disable", None, "ann"),
    ]
    payments = [*RECORDS, ("x", 1000, "XX")]
    expected: dict[str, list[Any]] = {
        "alerts": [("big", "top", "a", "payments"), ("big", "top", "x", "payments")],
        "found": [("b",), ("a",)],
    }
    cuts = {"changes": [len(changes)], "payments": [3]}
    same.check(changing_flow(), {"changes": changes, "payments": payments}, expected, cuts=cuts)


def test_a_change_is_kept_with_the_state_and_a_crash_replays_it(flow_driver: Any) -> None:
    driver: Driver = flow_driver(changing_flow())
    driver.push("payments", ("a", 600, "CH"))
    assert [row.text for row in driver.barrier()["alerts"]] == ["a paid 600"]
    driver.push("changes", ("big", "change", "if amount > 800 do alert('top', '{card}')", "ann"))
    driver.push("payments", ("b", 600, "CH"), ("c", 900, "CH"))
    driver.crash()
    assert [row.text for row in driver.barrier()["alerts"]] == ["a paid 600", "c"]
    driver.push("changes", ("big", "disable", None, "ann"), ("big", "enable", None, "ann"))
    driver.push("payments", ("d", 700, "CH"), ("e", 900, "CH"))
    assert [row.text for row in driver.barrier()["alerts"]] == ["a paid 600", "c", "e"]


def test_a_change_that_does_not_fit_is_a_dead_letter(flow_driver: Any) -> None:
    flow = changing_flow()
    flow.dead_letters("dead", ps.console())
    driver: Driver = flow_driver(flow)
    bad = [
        ("a", "add", "if amout > 3 do emit to found(card)", "ann"),
        ("b", "add", "if amount > 3 do emit to nowhere", "ann"),
        ("c", "add", "if amount > do stop", "ann"),
        ("nobody", "enable", None, "ann"),
        ("big", "replace", None, "ann"),
        (None, "add", "if amount > 3 do alert('top', '{card}')", "ann"),
    ]
    driver.push("changes", *bad)
    driver.push("payments", ("a", 600, "CH"))
    results = driver.barrier()
    assert [row.text for row in results["alerts"]] == ["a paid 600"]
    causes = [row.cause for row in results["dead"]]
    wanted = (
        "no column 'amout'",
        "nowhere",
        "cannot read rule 'c'",
        "'nobody' is not there",
        "got 'replace'",
        "got None",
    )
    assert len(causes) == len(bad)
    assert all(any(part in cause for cause in causes) for part in wanted), causes


def test_rules_by_key_change_and_what_was_switched_stays(same: Case) -> None:
    flow = ps.Flow("switches")
    changes = flow.source("changes", ps.items([], "rule string, op string, text string"))
    payments = flow.source("payments", ps.items([], PAYMENTS))
    rules = ps.rules(
        "rule probe if amount < 5 do activate large rule large if amount > 500 do emit to found(card, amount) inactive"
    )
    payments.key_by("card").rules("watch", rules, changes=changes).found.sink("found", ps.console())
    inputs: dict[str, list[Any]] = {
        "changes": [
            ("large", "change", "if amount > 800 do emit to found(card, amount) inactive"),
            ("off", "add", "do stop priority 1 inactive"),
        ],
        "payments": [
            ("a", 1, "CH"),
            ("b", 2, "CH"),
            ("a", 700, "CH"),
            ("a", 900, "CH"),
            ("b", 901, "CH"),
            ("c", 902, "CH"),
        ],
    }
    cuts = {"changes": [2], "payments": [2, 4]}
    same.check(flow, inputs, {"found": [("a", 900), ("b", 901)]}, cuts=cuts)


def test_a_table_of_rules_is_a_source_of_changes(same: Case) -> None:
    """The rows of a table are the rules: what goes from it goes from the set."""
    flow = ps.Flow("table")
    rows = flow.source("rows", ps.items([], "op string, rule string, text string, enabled boolean"))
    payments = flow.source("payments", ps.items([], PAYMENTS))
    table = rows.as_table("table", "rule")
    found = payments.rules("fraud", [], streams={"found": "card string"}, changes=table)
    found.found.sink("found", ps.console())
    inputs: dict[str, list[Any]] = {
        "rows": [
            ("insert", "big", "if amount > 500 do emit to found(card)", True),
            ("insert", "gone", "do emit to found(card)", True),
            ("insert", "off", "do emit to found(card)", False),
            ("delete", "gone", None, None),
            ("update_after", "big", "if amount > 800 do emit to found(card)", True),
        ],
        "payments": [("x", 1, "CH"), *RECORDS],
    }
    same.check(flow, inputs, {"found": [("a",)]}, cuts={"rows": [5], "payments": [4]})
