"""`penstock groups`: lag, members, and moving a group."""

from __future__ import annotations

import pytest

from penstock.log import Log, TopicPartition
from tests.cli.log_commands import Commands, said


@pytest.fixture
def billing(penstock: Commands) -> Commands:
    """A group that has read some of a topic with two partitions, of ten records each, a second apart."""
    penstock("topics", "create", "orders", "--partitions", 2)
    for partition in (0, 1):
        times = [1_000_000 + 1000 * n for n in range(10)]
        penstock.fill("orders", [f"{partition}.{n}" for n in range(10)], partition=partition, timestamps=times)
    with Log(penstock.path) as log:
        log.groups.commit("billing", {TopicPartition("orders", 0): 4, TopicPartition("orders", 1): 10})
    return penstock


def committed(penstock: Commands, group: str = "billing") -> list[int]:
    return [o["committed"] for o in penstock.json("groups", "describe", group)["offsets"]]


def test_groups_are_listed_with_their_lag(billing: Commands) -> None:
    assert billing.json("groups", "list") == [{"group": "billing", "topics": ["orders"], "members": 0, "lag": 6}]
    assert [line.split() for line in billing.lines("groups", "list")] == [
        ["GROUP", "TOPICS", "MEMBERS", "LAG"],
        ["billing", "orders", "0", "6"],
    ]


def test_a_group_is_described_partition_by_partition_with_its_members(billing: Commands) -> None:
    with Log(billing.path) as log, log.consumer("billing", "orders") as consumer:
        consumer.poll()
        found = billing.json("groups", "describe", "billing")
        member = found["members"][0]
        assert [(o["committed"], o["end"], o["lag"], o["member"]) for o in found["offsets"]] == [
            (4, 10, 6, member),
            (10, 10, 0, member),
        ]
        first, header, row, _ = billing.lines("groups", "describe", "billing")
        assert first == "billing: 1 live member, lag 6"
        assert header.split() == ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "MEMBER"]
        assert row.split() == ["orders", "0", "4", "10", "6", member]


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["--to-beginning"], [0, 0]),
        (["--to-end"], [10, 10]),
        (["--to-offset", "7"], [7, 7]),
        (["--to-time", "1003000"], [3, 3]),
        (["--to-time", "1970-01-01T00:16:42.500"], [3, 3]),
        (["--to-time", "1h"], [10, 10]),
        (["--shift-by", "-2"], [2, 8]),
        (["--shift-by", "5"], [9, 10]),
        (["--to-offset", "1", "--partition", "1"], [4, 1]),
    ],
)
def test_a_group_is_moved_with_execute_and_only_shown_the_move_without(
    billing: Commands, arguments: list[str], expected: list[int]
) -> None:
    done = billing("groups", "reset-offsets", "billing", "orders", *arguments)
    assert "nothing was changed; --execute does it" in done.stderr
    assert committed(billing) == [4, 10]
    moved = billing.json("groups", "reset-offsets", "billing", "orders", *arguments, "--execute")
    assert moved["executed"] is True
    assert {o["partition"]: (o["committed"], o["new"], o["lag"]) for o in moved["offsets"]} == {
        p: ((4, 10)[p], at, 10 - at) for p, at in enumerate(expected) if len(arguments) < 4 or p == 1
    }
    assert committed(billing) == expected


def test_a_group_that_does_not_read_yet_can_be_put_in_its_place(billing: Commands) -> None:
    billing("groups", "reset-offsets", "fresh", "orders", "--to-offset", 9, "--execute")
    assert sorted(billing.lines("consume", "orders", "--group", "fresh", "--no-follow")) == ["0.9", "1.9"]


@pytest.mark.parametrize(
    "arguments, code, says",
    [
        (["reset-offsets", "billing", "orders"], 2, "give one of --to-beginning"),
        (["reset-offsets", "billing", "orders", "--to-end", "--to-offset", "1"], 2, "give one of"),
        (["reset-offsets", "billing", "orders", "--to-time", "tomorrow"], 2, "'tomorrow' is not a time; write 2026-"),
        (["reset-offsets", "billing", "orders", "--to-offset", "11"], 1, "partition 0 holds offsets 0 to 10"),
        (["reset-offsets", "billing", "orders", "--to-end", "--partition", "2"], 1, "partitions 0 to 1, not 2"),
        (["reset-offsets", "fresh", "orders", "--shift-by", "1"], 1, "has committed nothing in orders-0"),
        (["reset-offsets", "a/b", "orders", "--to-end"], 2, "a group name has"),
        (["describe", "biling"], 1, "no group 'biling'; did you mean 'billing'?"),
        (["delete", "biling"], 1, "no group 'biling'; did you mean 'billing'?"),
    ],
)
def test_what_cannot_be_done_is_said(billing: Commands, arguments: list[str], code: int, says: str) -> None:
    assert says in said(billing("groups", *arguments, code=code).stderr)
    assert committed(billing) == [4, 10]


def test_a_group_with_a_live_member_is_neither_moved_nor_deleted(billing: Commands) -> None:
    with Log(billing.path) as log, log.consumer("billing", "orders"):
        move = ["groups", "reset-offsets", "billing", "orders", "--to-end", "--execute"]
        assert "has live members" in billing(*move, code=1).stderr
        assert "has live members" in billing("groups", "delete", "billing", code=1).stderr
        assert "has live members" in billing("consume", "orders", "--group", "billing", "--offset", "0", code=1).stderr
    assert committed(billing) == [4, 10]
    assert billing.lines("groups", "delete", "billing") == ["deleted billing"]
    assert billing.json("groups", "list") == []


def test_a_group_that_retention_has_overtaken_is_told_how_to_go_on(penstock: Commands) -> None:
    penstock("topics", "create", "old", "--retention", "1h")
    penstock.fill("old", ["gone"], timestamps=1)
    assert penstock.lines("consume", "old", "--group", "g", "--no-follow", "--offset", "0:0") == ["gone"]
    penstock("groups", "reset-offsets", "g", "old", "--to-beginning", "--execute")
    penstock("topics", "clean")
    says = penstock("consume", "old", "--group", "g", "--no-follow", code=1).stderr
    assert "holds offsets 1 to 1 (not included), not 0" in says
    assert "penstock groups reset-offsets" in says
