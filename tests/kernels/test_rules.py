"""Rules at work, without a JVM: the order in which they act, and where they end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.errors import StepError
from penstock.graph.rules.interned import MOST
from penstock.kernels.rules.changes import MOST as CHANGED_SETS
from penstock.testing import Driver, run_local

do = ps.action


def numbers(rules: list[Any], records: list[int], *, on_error: str | None = None, **options: Any) -> Any:
    flow = ps.Flow("numbers", on_error=on_error)
    found = flow.source("numbers", ps.items([], "n bigint")).rules("all", rules, **options)
    for name, stream in found.items():
        stream.sink(name, ps.console())
    if on_error:
        flow.dead_letters("dead", ps.console())
    return run_local(flow, {"numbers": records})


def test_rules_follow_from_rules_until_nothing_follows() -> None:
    rules = [
        ps.rule("down", "n > 0", do.emit("step", n="n - 1")),
        ps.rule("on", "n > 0", do.emit("step", n="n - 1"), on="step"),
    ]
    assert [row.n for row in numbers(rules, [3, 1])["step"]] == [2, 0, 1, 0]


def test_the_event_of_the_set_may_be_emitted_again() -> None:
    rules = [ps.rule("halve", "n % 2 = 0 and n > 0", do.emit("numbers", n="n div 2"), do.emit("seen"))]
    assert [row.n for row in numbers(rules, [8, 3])["seen"]] == [8, 4, 2]


def test_rules_that_do_not_come_to_rest_end_the_run_and_name_themselves() -> None:
    rules = [ps.rule("ping", "n = 1", do.emit("pong")), ps.rule("again", None, do.emit("pong"), on="pong")]
    with pytest.raises(StepError) as error:
        numbers(rules, [0, 1], rounds=7)
    text = str(error.value)
    assert "the rules did not come to rest: after 7 rounds they still make events 'pong', by 'again'" in text
    assert "record 2 of 'numbers'" in text


def test_a_record_whose_rules_do_not_come_to_rest_is_a_dead_letter() -> None:
    rules = [ps.rule("ping", "n = 1", do.emit("pong")), ps.rule("again", "n = 1", do.emit("pong"), on="pong")]
    rules += [ps.rule("rest", "n <> 1", do.emit("rest"))]
    made = numbers(rules, [0, 1, 2], on_error="dead_letter")
    assert [row.n for row in made["rest"]] == [0, 2]
    assert made["pong"] == []
    assert "did not come to rest" in made["dead"][0].cause


def test_exactly_as_many_rounds_as_are_allowed_are_fine() -> None:
    rules = [ps.rule("on", "n > 0", do.emit("numbers", n="n - 1"), do.emit("seen"))]
    assert len(numbers(rules, [5], rounds=5)["seen"]) == 5
    with pytest.raises(StepError, match="after 4 rounds"):
        numbers(rules, [5], rounds=4)


def test_rules_act_by_priority_and_then_as_written() -> None:
    rules = [
        ps.rule(f"r{at}", None, do.emit("acted", who=ps.lit(f"r{at}")), priority=p) for at, p in enumerate([0, 5, 0, 9])
    ]
    assert [row.who for row in numbers(rules, [1, 2])["acted"]] == ["r3", "r1", "r0", "r2"] * 2


def test_deferred_rules_act_when_the_batch_ends() -> None:
    rules = [
        ps.rule("late", "n > 1", do.emit("acted", who=ps.lit("late")), deferred=True, priority=9),
        ps.rule("now", None, do.emit("acted", who=ps.lit("now"))),
        ps.rule("after", "who = 'late'", do.emit("after"), on="acted"),
        ps.rule("never", "who = 'never'", do.emit("after"), on="acted", deferred=True),
    ]
    made = numbers(rules, [1, 2])
    assert [row.who for row in made["acted"]] == ["now", "now", "late"]
    assert [row.who for row in made["after"]] == ["late"]


def test_disabled_rules_do_nothing() -> None:
    rules = [ps.rule("off", None, do.emit("x"), enabled=False), ps.rule("on", None, do.emit("y"))]
    made = numbers(rules, [1])
    assert (made["x"], len(made["y"])) == ([], 1)


def test_a_condition_that_fails_names_its_record() -> None:
    with pytest.raises(StepError, match=r"(?s)ZeroDivision.*record:   Row\(n=0\)"):
        numbers([ps.rule("divide", "10 div n > 3", do.emit("x"))], [1, 0, 2])
    made = numbers([ps.rule("divide", "10 div n > 3", do.emit("x"))], [1, 0, 2], on_error="dead_letter")
    assert ([row.n for row in made["x"]], len(made["dead"])) == ([1, 2], 1)


def test_python_functions_stand_in_conditions_and_actions() -> None:
    called: list[int] = []

    @ps.function
    def odd(n: int) -> bool:
        return n % 2 == 1

    @ps.function
    def note(n: int) -> int:
        called.append(n)
        return n

    flow = ps.Flow("functions", functions=[odd, note])
    rules = ps.rules("rule odd if odd(n) do emit to odds(n, twice = note(n) * 2), call note(n + 100)")
    flow.source("numbers", ps.items([], "n bigint")).rules("all", rules).odds.sink("out", ps.console())
    assert run_local(flow, {"numbers": [1, 2, 3]})["out"] == [(1, 2), (3, 6)]


def test_a_table_that_is_looked_up_in_is_read_again_when_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "limits.csv"
    file.write_text("country,most\nCH,500\n")
    flow = ps.Flow("refreshed")
    payments = flow.source("payments", ps.items([], "country string, amount int"))
    limits = ps.files(file, "csv", "country string, most int")
    rules = ps.rules("rule over if amount > allowed.most do emit to over(amount)")
    payments.rules("act", rules, lookups={"allowed": (limits, "country")}).over.sink("out", ps.console())
    driver = Driver(flow)
    driver.push("payments", ("CH", 600), ("FR", 600))
    assert driver.barrier()["out"] == [(600,)]
    file.write_text("country,most\nCH,1000\nFR,100\n")
    driver.push("payments", ("CH", 700), ("FR", 700))
    driver.clock.advance(3600)
    assert driver.barrier()["out"] == [(600,), (700,)]


def test_alerts_carry_the_event_time() -> None:
    flow = ps.Flow("timed")
    stream = flow.source("events", ps.items([("a", "2026-01-01 10:00:00")], "who string, at string"), event_time="at")
    alerts = stream.rules("all", [ps.rule("any", None, do.alert("low", "{who}"))]).alerts
    assert alerts.event_time_of is not None
    alerts.sink("out", ps.console())
    (row,) = run_local(flow)["out"]
    assert (row.text, row.time.hour) == ("a", 10)


def test_switches_survive_a_crash() -> None:
    flow = ps.Flow("switches")
    rules = ps.rules("rule on if n = 1 do activate big rule big if n > 5 do emit to found inactive")
    flow.source("numbers", ps.items([], "k string, n bigint")).key_by("k").rules("all", rules).found.sink(
        "out", ps.console()
    )
    driver = Driver(flow)
    driver.push("numbers", ("a", 7), ("a", 1))
    driver.barrier()
    driver.push("numbers", ("a", 8), ("b", 9))
    driver.crash()
    assert driver.barrier(end=True)["out"] == [("a", 8)]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3), st.booleans()), min_size=1, max_size=8),
    st.lists(st.integers(0, 9), max_size=12),
)
def test_priorities_and_stops_are_those_of_a_plain_loop(given: list[tuple[int, int, bool]], records: list[int]) -> None:
    rules = []
    for at, (least, priority, stops) in enumerate(given):
        actions = [do.emit("acted", "n", who=ps.lit(at)), *([do.stop()] if stops else [])]
        rules.append(ps.rule(f"r{at}", f"n >= {least}", *actions, priority=priority))
    wanted = []
    ranked = sorted(enumerate(given), key=lambda each: -each[1][1])
    for n in records:
        for at, (least, _, stops) in ranked:
            if n >= least:
                wanted.append((n, at))
                if stops:
                    break
    assert [tuple(row) for row in numbers(rules, records)["acted"]] == wanted


def test_more_sets_than_a_process_remembers_work() -> None:
    for at in range(MOST + 2):
        assert numbers([ps.rule(f"r{at}", f"n > {at}", do.emit("x"))], [at, at + 1])["x"] == [(at + 1,)]


def test_rules_change_more_often_than_a_process_remembers() -> None:
    flow = ps.Flow("often")
    changes = flow.source("changes", ps.items([], "rule string, text string"))
    stream = flow.source("numbers", ps.items([], "n bigint"))
    stream.rules("all", ps.rules("rule r do emit to x"), changes=changes).x.sink("out", ps.console())
    driver = Driver(flow)
    for least in range(CHANGED_SETS + 3):
        driver.push("changes", ("r", f"if n > {least} do emit to x"))
        driver.push("numbers", least, least + 1)
        driver.barrier()
    assert [row.n for row in driver.barrier(end=True)["out"]] == list(range(1, CHANGED_SETS + 4))


def test_two_thousand_rules_are_added_while_the_flow_runs() -> None:
    flow = ps.Flow("many")
    changes = flow.source("changes", ps.items([], "rule string, text string"))
    stream = flow.source("numbers", ps.items([], "n bigint"))
    stream.rules("all", ps.rules("rule r if n < 0 do emit to x(n, who = 'r')"), changes=changes).x.sink(
        "out", ps.console()
    )
    driver = Driver(flow)
    driver.push("changes", *((f"r{at}", f"if n = {at} do emit to x(n, who = 'r{at}')") for at in range(2_000)))
    driver.push("numbers", *range(0, 4_000, 100))
    driver.barrier()
    driver.push("changes", ("r100", "if n < 0 do emit to x(n, who = 'r100')"))
    driver.push("numbers", 100, 200)
    made = driver.barrier(end=True)["out"]
    assert [tuple(row) for row in made] == [(n, f"r{n}") for n in (*range(0, 2_000, 100), 200)]
