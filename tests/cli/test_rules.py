"""`penstock rules`: rules in a topic, with versions, who changed them, and when; a flow takes them up."""

from __future__ import annotations

from pathlib import Path

import penstock as ps
from penstock.testing import run_local
from tests.cli.log_commands import Commands, said

BIG = "if amount > 500 do emit to found(card)"


def test_rules_are_added_changed_switched_and_removed(penstock: Commands) -> None:
    assert penstock("rules", "add", "fraud", "big", BIG, "--by", "ann").stdout == "big: version 1, enabled, by ann\n"
    assert "'big' is there already" in said(penstock("rules", "add", "fraud", "big", BIG, code=2).output)
    penstock("rules", "disable", "fraud", "big", "--by", "bob")
    penstock("rules", "change", "fraud", "big", "if amount > 900 do alert('high', '{card}')", "--by", "cat")
    (row,) = penstock.json("rules", "list", "fraud")
    assert (row["rule"], row["version"], row["enabled"], row["open"], row["by"]) == ("big", 3, False, True, "cat")
    assert row["at"].endswith("+00:00")
    penstock("rules", "enable", "fraud", "big")
    header, line = penstock.lines("rules", "list", "fraud")
    assert header.split()[:4] == ["RULE", "VERSION", "ENABLED", "OPEN"]
    assert line.split()[:3] == ["big", "4", "True"]
    penstock("rules", "remove", "fraud", "big")
    assert penstock.json("rules", "list", "fraud") == []
    assert [row["version"] for row in penstock.json("rules", "history", "fraud", "big")] == [1, 2, 3, 4, 5]
    assert "version 6" in penstock("rules", "add", "fraud", "big", BIG).stdout


def test_what_cannot_be_read_or_is_not_there_is_refused(penstock: Commands) -> None:
    penstock("rules", "add", "fraud", "big", BIG)
    shown = said(penstock("rules", "change", "fraud", "big", "if amount > do stop", code=2).output)
    assert "cannot read rule 'big': line 1, column" in shown
    assert "did you mean 'big'" in said(penstock("rules", "disable", "fraud", "bug", code=2).output)
    assert "written, disabled" not in penstock("rules", "disable", "fraud", "bug", "--written").stdout
    assert [row["rule"] for row in penstock.json("rules", "history", "fraud")] == ["big", "bug"]


def test_a_file_is_applied_as_it_is_and_only_what_differs_is_changed(penstock: Commands, tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(f"rules:\n- {{name: big, rule: '{BIG}'}}\n- {{name: off, do: emit to found(card), enabled: no}}\n")
    penstock("rules", "add", "fraud", "old", "do stop")
    assert penstock.lines("rules", "apply", "fraud", file)[-1] == "4 changes in fraud"
    assert penstock.lines("rules", "apply", "fraud", file) == ["0 changes in fraud"]
    assert [(r["rule"], r["enabled"]) for r in penstock.json("rules", "list", "fraud")] == [
        ("big", True),
        ("off", False),
    ]
    file.write_text("rules: [{nam: x}]")
    assert "line 1, column 10: no key 'nam'" in said(penstock("rules", "apply", "fraud", file, code=2).output)


def test_a_flow_reads_the_rules_of_a_topic(penstock: Commands) -> None:
    penstock("rules", "add", "fraud", "small", "if amount < 5 do emit to found(card)", "--by", "ann")
    penstock("rules", "disable", "fraud", "big", "--written")
    flow = ps.Flow("fraud")
    changes = flow.source("changes", ps.rule_topic("fraud", path=penstock.path))
    payments = flow.source("payments", ps.items([("a", 900), ("b", 3)], "card string, amount int"))
    payments.rules("all", ps.rules(f"rule big {BIG}"), changes=changes).found.sink("out", ps.console())
    assert run_local(flow)["out"] == [("b",)]


PATTERN = "PATTERN SEQ(order a, paid b)"


def test_patterns_are_kept_beside_rules_and_a_flow_takes_them_up(penstock: Commands, tmp_path: Path) -> None:
    file = tmp_path / "paid.txt"
    file.write_text(PATTERN)
    assert "paid: version 1" in penstock("rules", "add", "fraud", "paid", f"@{file}", "--function", "ship").stdout
    penstock("rules", "change", "fraud", "paid", PATTERN, "--runs", "drain", "--by", "ann")
    (row,) = penstock.json("rules", "list", "fraud")
    assert (row["text"], row["version"], row["function"], row["open"]) == (PATTERN, 2, "ship", False)
    flow = ps.Flow("fraud")
    changes = flow.source("changes", ps.rule_topic("fraud", path=penstock.path))
    events = flow.source("events", ps.items([("a", "order"), ("a", "paid")], "id string, kind string"))
    events.key_by("id").patterns("found", changes=changes, reader=ps.pattern_reader("kind")).select(
        "short", "id", "version"
    ).sink("out", ps.console())
    assert run_local(flow)["out"] == [("a", 2)]


def test_patterns_of_operators_are_kept_beside_rules(penstock: Commands) -> None:
    penstock("rules", "add", "fraud", "paid", "every a=order -> b=paid where timer:within(1 hour)")
    flow = ps.Flow("fraud")
    changes = flow.source("changes", ps.rule_topic("fraud", path=penstock.path))
    events = flow.source("events", ps.items([("a", "order"), ("a", "paid")], "id string, kind string"))
    found = events.key_by("id").patterns("found", changes=changes, reader=ps.pattern_reader("kind"))
    found.select("short", "id", "pattern").sink("out", ps.console())
    assert run_local(flow)["out"] == [("a", "paid")]
    assert "expected" in said(penstock("rules", "add", "fraud", "p", "every a=order -> ->", code=2).output)


def test_a_pattern_that_cannot_be_read_is_refused(penstock: Commands, tmp_path: Path) -> None:
    assert "expected" in said(penstock("rules", "add", "fraud", "p", "PATTERN SEQ(order a", code=2).output)
    assert "nodes" in said(penstock("rules", "add", "fraud", "p", "{}", code=2).output)
    assert "cannot be read" in said(penstock("rules", "add", "fraud", "p", f"@{tmp_path / 'none'}", code=2).output)
    penstock("rules", "add", "fraud", "p", PATTERN)
    assert "drop, keep, drain" in said(penstock("rules", "remove", "fraud", "p", "--runs", "x", code=2).output)
