"""`penstock topics`, and what all commands of the log share: where it is, and how errors read."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.log import Log
from tests.cli.log_commands import Commands, said

DAY = 86_400_000


def test_a_topic_is_created_with_its_settings_and_described(penstock: Commands) -> None:
    done = penstock("topics", "create", "orders", "--partitions", 3, "--retention", "7d", "--retention-bytes", "1.5GiB")
    assert done.stdout == "created orders: 3 partitions, kept 7d or 1.5 GiB, segments of 64 MiB\n"
    penstock.fill("orders", ["a", "b"], partition=1)
    found = penstock.json("topics", "describe", "orders")
    assert (found["topic"], found["retention_ms"], found["retention_bytes"]) == ("orders", 7 * DAY, 3 << 29)
    assert [(p["partition"], p["start"], p["end"]) for p in found["partitions"]] == [(0, 0, 0), (1, 0, 2), (2, 0, 0)]
    settings, header, *rows = penstock.lines("topics", "describe", "orders")
    assert settings.startswith("orders: 3 partitions, kept 7d")
    assert header.split() == ["PARTITION", "START", "END", "BYTES", "SEGMENTS"]
    assert rows[1].split()[:3] == ["1", "0", "2"]


def test_topics_are_listed_in_columns_and_as_json(penstock: Commands) -> None:
    penstock("topics", "create", "orders", "--partitions", 2)
    penstock("topics", "create", "prices", "--compact", "--segment-bytes", "1MB")
    penstock.fill("orders", ["x"] * 5, partition=0)
    header, *rows = penstock.lines("topics", "list")
    assert header.split() == ["TOPIC", "PARTITIONS", "OFFSETS", "BYTES", "CLEANUP", "RETENTION"]
    assert [row.split()[0] for row in rows] == ["orders", "prices"]
    found = penstock.json("topics", "list")
    assert [(t["topic"], t["partitions"], t["offsets"], t["cleanup"]) for t in found] == [
        ("orders", 2, 5, "delete"),
        ("prices", 1, 0, "compact"),
    ]


def test_a_log_without_topics_says_so_and_prints_no_rows(penstock: Commands) -> None:
    Log(penstock.path).close()
    done = penstock("topics", "list")
    assert (done.stdout, penstock.json("topics", "list")) == ("", [])
    assert "penstock topics create" in done.stderr


def test_a_topic_that_is_there_is_not_created_again(penstock: Commands) -> None:
    penstock("topics", "create", "orders")
    assert "'orders' is there already" in penstock("topics", "create", "orders", code=1).stderr
    penstock.fill("orders", ["kept"])
    penstock("topics", "create", "orders", "--partitions", 4, "--if-not-exists")
    assert penstock.json("topics", "list")[0]["offsets"] == 1


def test_a_topic_is_deleted_only_when_that_is_said(penstock: Commands) -> None:
    penstock("topics", "create", "orders")
    penstock.fill("orders", ["x"])
    assert "--yes is needed: orders holds 1 offset" in said(penstock("topics", "delete", "orders", code=2).stderr)
    assert penstock.lines("topics", "delete", "orders", "--yes") == ["deleted orders"]
    assert penstock.json("topics", "list") == []


def test_clean_compacts_and_applies_retention(penstock: Commands) -> None:
    penstock("topics", "create", "prices", "--compact")
    penstock("topics", "create", "old", "--retention", "1h")
    penstock.fill("prices", ["1", "2", "3"], keys=[b"a", b"a", b"b"])
    penstock.fill("old", ["x"], timestamps=1)
    assert penstock.lines("topics", "clean") == ["old: 1 segment removed", "prices: 1 record removed"]
    assert penstock.lines("consume", "prices", "--no-follow") == ["2", "3"]
    assert penstock.lines("consume", "old", "--no-follow") == []


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["create", "a/b"], "a topic name has 1 to 249 of"),
        (["create", "t", "--partitions", "0"], "partitions"),
        (["create", "t", "--partitions", "20000"], "partitions is a number from 1 to 10000"),
        (["create", "t", "--retention", "soon"], "such as 500ms, 20s, 5m, 1h or 1d, got 'soon'"),
        (["create", "t", "--retention-bytes", "5 apples"], "'5 apples' is not a size; write 1000000, 10MB or 64MiB"),
        (["create", "t", "--compact", "--retention", "7d"], "do not go with it"),
        (["create"], "Missing argument 'TOPIC'"),
    ],
)
def test_wrong_usage_ends_with_2(penstock: Commands, arguments: list[str], says: str) -> None:
    assert says in said(penstock("topics", *arguments, code=2).stderr)


@pytest.mark.parametrize(
    "arguments",
    [
        ["topics", "describe", "oders"],
        ["topics", "delete", "oders", "--yes"],
        ["topics", "clean", "oders"],
        ["produce", "oders", __file__],
        ["consume", "oders"],
        ["groups", "reset-offsets", "g", "oders", "--to-end"],
    ],
)
def test_an_unknown_topic_names_the_nearest(penstock: Commands, arguments: list[str]) -> None:
    penstock("topics", "create", "orders")
    assert "error: no topic 'oders'; did you mean 'orders'?" in penstock(*arguments, code=1).stderr


@pytest.mark.parametrize(
    "arguments", [["topics", "list"], ["consume", "t"], ["produce", "t", __file__], ["groups", "list"]]
)
def test_a_log_that_is_not_there_is_named_and_not_made(penstock: Commands, arguments: list[str]) -> None:
    done = penstock(*arguments, code=1)
    assert f"error: the log {penstock.path} is not there; `penstock topics create TOPIC` makes one" in done.stderr
    assert not penstock.path.exists()


def test_a_folder_with_something_else_is_no_place_for_a_log(penstock: Commands, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear log")
    assert "holds something else than a log" in penstock("topics", "create", "t", "--log", tmp_path, code=1).stderr
    assert "is no log" in penstock("topics", "list", "--log", tmp_path, code=1).stderr
    assert [p.name for p in tmp_path.iterdir()] == ["letter.txt"]


def test_the_option_is_stronger_than_the_environment(penstock: Commands, tmp_path: Path) -> None:
    penstock("topics", "create", "here")
    penstock("topics", "create", "there", "--log", tmp_path / "other")
    assert [t["topic"] for t in penstock.json("topics", "list")] == ["here"]
    assert [t["topic"] for t in penstock.json("topics", "list", "--log", tmp_path / "other")] == ["there"]


def test_without_a_word_the_log_is_below_the_working_folder(
    penstock: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    del penstock.environment["PENSTOCK_LOG"]
    penstock("topics", "create", "orders")
    assert (tmp_path / ".penstock/log/topics/orders").is_dir()


@pytest.mark.parametrize(
    "command", ["topics create", "topics list", "topics describe", "topics clean", "topics delete", "produce", "consume",
                "groups list", "groups describe", "groups reset-offsets", "groups delete"],
)  # fmt: skip
def test_the_help_has_examples(penstock: Commands, command: str) -> None:
    out = penstock(*command.split(), "--help").stdout
    assert f"penstock {command}" in out[out.index("Examples:") :]
    assert "PENSTOCK_LOG" in out


def damage(place: Path, topic: str) -> Path:
    """Turn a bit in the middle of the first record batch."""
    segment = next(place.glob(f"topics/{topic}/0/*.log"))
    raw = bytearray(segment.read_bytes())
    raw[100] ^= 1
    segment.write_bytes(raw)
    return segment


def test_damage_names_the_file_and_is_gone_past_only_when_that_is_said(penstock: Commands) -> None:
    penstock("topics", "create", "orders")
    penstock.fill("orders", ["a", "b"])
    penstock.fill("orders", ["c"])
    file = damage(penstock.path, "orders")
    done = penstock("consume", "orders", "--no-follow", code=1)
    assert done.stdout == ""
    assert (
        f"offsets 0 to 2 (not included) cannot be read: the body's checksum is wrong ({file}, bytes 0 to" in done.stderr
    )
    assert "--skip-damage" in done.stderr
    done = penstock("consume", "orders", "--no-follow", "--skip-damage")
    assert done.stdout == "c\n"
    assert "skipped: topic 'orders' partition 0: offsets 0 to 2 (not included)" in done.stderr
    assert any(line.startswith("damaged: topic 'orders'") for line in penstock.lines("topics", "describe", "orders"))
