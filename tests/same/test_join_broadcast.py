"""Broadcast state: a stream of rules that reaches every task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.graph.logic.broadcast import BroadcastProcess
from penstock.testing import Driver, run_spark
from tests.same.conftest import Case

RULES = "sensor string, most bigint"
EVENTS = "sensor string, value bigint"


class Limits(BroadcastProcess):
    """Events above the limit of their sensor; a rule without a limit takes the old one away."""

    def on_rule(self, rule: Any) -> Any:
        return None if rule.most is None else rule

    def on_event(self, row: Any, rules: Mapping[Any, Any]) -> Iterator[Any]:
        if row.sensor in rules and row.value > rules[row.sensor].most:
            yield row.sensor, row.value, len(rules)


def flow_of(logic: Any = Limits) -> ps.Flow:
    flow = ps.Flow("limits")
    rules = flow.source("rules", ps.items([], RULES))
    events = flow.source("events", ps.items([], EVENTS))
    events.with_broadcast("over", rules, logic, "sensor string, value bigint, n int", key="sensor").sink(
        "out", ps.console()
    )
    return flow


@pytest.mark.live
def test_rules_of_a_batch_take_effect_before_its_events(same: Case) -> None:
    rules = [("a", 10), ("b", 20), ("c", 5), ("c", None), ("a", 11)]
    events = [("a", 11), ("a", 12), ("b", 21), ("b", 3), ("c", 100), ("d", 100)]
    expected = [("a", 12, 2), ("b", 21, 2)]
    inputs: dict[str, list[Any]] = {"rules": rules, "events": events}
    same.check(flow_of(), inputs, {"out": expected}, cuts={"rules": [5], "events": [2, 4]})


def test_events_without_any_rule(same: Case) -> None:
    same.check(flow_of(), {"rules": [], "events": [("a", 1), ("b", 2)]}, {"out": []})


@pytest.mark.live
def test_rules_without_events_are_kept(same: Case) -> None:
    same.check(flow_of(), {"rules": [("a", 1)], "events": []}, {"out": []})


class Windows(BroadcastProcess):
    """Keeps something of its own for each rule, under a key of two fields."""

    def on_rule(self, rule: Any) -> Any:
        return {"twice": rule.most * 2}

    def on_event(self, row: Any, rules: Mapping[Any, Any]) -> list[Any]:
        return [(name, kept["twice"], most) for (name, most), kept in rules.items() if name == row.sensor]


def test_keys_of_several_fields_and_values_of_its_own(same: Case) -> None:
    flow = ps.Flow("own")
    rules = flow.source("rules", ps.items([], RULES))
    events = flow.source("events", ps.items([], EVENTS))
    made = events.with_broadcast("all", rules, Windows, "sensor string, twice bigint, n int", key=["sensor", "most"])
    made.where("some", "twice > 2").sink("out", ps.console())
    expected = [("a", 4, 2), ("a", 6, 3)]
    inputs = {"rules": [("a", 1), ("a", 2), ("a", 3), ("b", 9)], "events": [("a", 0)]}
    same.check(flow, inputs, {"out": expected}, cuts={"rules": [4], "events": [1]})


def test_rules_change_between_batches(flow_driver: Any) -> None:
    driver: Driver = flow_driver(flow_of())
    driver.push("events", ("a", 11))
    driver.push("rules", ("a", 10))
    driver.barrier()
    driver.push("rules", ("a", 100))
    driver.crash()
    driver.push("events", ("a", 50), ("a", 101))
    driver.barrier()
    driver.push("rules", ("a", None))
    driver.push("events", ("a", 1000))
    assert driver.barrier()["out"] == [("a", 11, 1), ("a", 101, 1)]


@pytest.mark.spark
def test_rules_survive_a_restart_with_other_parallelism(penstock_spark: Any, tmp_path: Path) -> None:
    rules = [("a", 10), ("b", 20), ("c", 30), ("d", 40)]
    events = [("a", 15), ("b", 15), ("c", 15), ("d", 45)]
    more = [("a", 100)]
    flow = flow_of()
    first = run_spark(
        flow,
        penstock_spark,
        {"rules": rules, "events": events},
        cuts=1,
        folder=tmp_path,
        parallelism=4,
    )
    assert sorted(first["out"]) == [("a", 15, 4), ("d", 45, 4)]
    second = run_spark(
        flow,
        penstock_spark,
        {"rules": [*rules, *more], "events": [*events, ("a", 50), ("b", 50)]},
        cuts={"rules": [4], "events": [4]},
        folder=tmp_path,
        parallelism=2,
    )
    assert sorted(second["out"]) == [("b", 50, 4)]
