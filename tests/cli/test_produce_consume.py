"""`penstock produce` and `penstock consume`: what goes in comes out, also with several processes and when some are killed."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import threading
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import pytest

from penstock.cli.log.input_lines import lines
from penstock.log import Log
from penstock.log.storage import files
from tests.cli.log_commands import COMMAND, Commands, said
from tests.waiting import wait_until


@pytest.fixture
def orders(penstock: Commands) -> Commands:
    """A log with a topic of two partitions."""
    penstock("topics", "create", "orders", "--partitions", 2)
    return penstock


def put(penstock: Commands, tmp_path: Path, content: str | bytes, *options: object, code: int = 0) -> str:
    """Produce from a file; what was said."""
    (tmp_path / "input").write_bytes(content if isinstance(content, bytes) else content.encode())
    return said(penstock("produce", "orders", tmp_path / "input", *options, code=code).stderr)


def everything(penstock: Commands) -> list[dict[str, object]]:
    """All records, in order within a partition."""
    found = [json.loads(line) for line in penstock.lines("consume", "orders", "--no-follow", "--format", "json")]
    return sorted(found, key=lambda r: (r["partition"], r["offset"]))


def collect(stream: IO[str]) -> list[str]:
    """The lines of a process, as they come."""
    found: list[str] = []
    threading.Thread(
        target=lambda: found.extend(line.rstrip("\n") for line in iter(stream.readline, "")), daemon=True
    ).start()
    return found


# --- produce


def test_each_line_is_a_record_and_the_count_comes_with_the_last_offsets(penstock: Commands) -> None:
    penstock("topics", "create", "orders")
    first = penstock.run("produce", "orders", given="one\r\n\ntwo\nlast without an end")
    assert (first.returncode, first.stdout) == (0, "")
    assert first.stderr == "orders: 4 records on disk, last offsets 0:3\n"
    assert [r["value"] for r in everything(penstock)] == ["one", "", "two", "last without an end"]


def test_a_key_stands_before_the_separator_and_chooses_the_partition(orders: Commands, tmp_path: Path) -> None:
    says = put(orders, tmp_path, "anna\ta\tb\ndora\tc\nanna\td\n", "--key-separator", "\\t")
    assert says == "orders: 3 records on disk, last offsets 0:0 1:1"
    assert [(r["partition"], r["key"], r["value"]) for r in everything(orders)] == [
        (0, "dora", "c"),
        (1, "anna", "a\tb"),
        (1, "anna", "d"),
    ]


def test_a_field_of_a_json_value_is_the_key_and_headers_go_along(orders: Commands, tmp_path: Path) -> None:
    text = '{"user": {"id": 7}, "n": 1.10}\n\n {"user": {"id": "x"}} \n'
    put(orders, tmp_path, text, "--format", "json", "--key", "user.id", "--header", "source=web", "--header", "a=b=c")
    found = sorted(everything(orders), key=lambda r: str(r["key"]))
    assert [(r["key"], r["value"]) for r in found] == [
        ("7", {"user": {"id": 7}, "n": 1.1}),
        ("x", {"user": {"id": "x"}}),
    ]
    assert found[0]["headers"] == [["source", "web"], ["a", "b=c"]]
    raw = orders.lines("consume", "orders", "--no-follow", "--where", "user.id = 7")
    assert raw == ['{"user": {"id": 7}, "n": 1.10}']


def test_raw_input_is_one_record_as_it_is(orders: Commands, tmp_path: Path) -> None:
    content = bytes(range(256)) * 9000
    assert put(orders, tmp_path, content, "--format", "raw").startswith("orders: 1 record on disk")
    with Log(orders.path) as log:
        assert [r.value for p in (0, 1) for r in log.read("orders", p, 0)] == [content]
    assert "value_base64" in everything(orders)[0]


def test_a_marker_stands_for_no_value_and_deletes_a_key(penstock: Commands, tmp_path: Path) -> None:
    penstock("topics", "create", "orders", "--compact")
    put(penstock, tmp_path, "a:1\nb:2\na:NULL\n", "--key-separator", ":", "--null-marker", "NULL")
    penstock("topics", "clean")
    shown = penstock.lines("consume", "orders", "--no-follow", "--format", "key-value", "--key-separator", "=")
    assert shown == ["b=2", "a=null"]
    assert "every record needs a key" in put(penstock, tmp_path, "x\n", code=1)


def test_a_batch_is_appended_as_one_and_a_bad_line_keeps_out_all_of_its_batch(orders: Commands, tmp_path: Path) -> None:
    writes: list[files.Call] = []
    files.watch(lambda call: writes.append(call) if call.op == "write" and call.path.endswith(".log") else None)
    try:
        says = put(orders, tmp_path, "1\n2\n3\n4\nx\n5\n", "--format", "json", "--batch", "2", code=1)
    finally:
        files.watch(None)
    assert len(writes) == 2
    assert (
        says
        == "orders: 4 records on disk, last offsets 0:1 1:1 error: line 5 is not JSON: Expecting value: line 1 column 1 (char 0) in 'x'"
    )
    assert put(orders, tmp_path, "5\n6\n7\nx\n", "--format", "json", "--batch", "2", code=1).startswith(
        "orders: 2 records"
    )
    assert sorted(str(r["value"]) for r in everything(orders)) == list("123456")


def test_what_came_before_a_bad_line_is_kept_and_counted(orders: Commands, tmp_path: Path) -> None:
    says = put(orders, tmp_path, "a:1\n\nb:2\n", "--key-separator", ":", code=1)
    assert says.startswith("orders: 1 record on disk")
    assert "error: line 2 has no key: ':' must stand in ''" in says
    says = put(orders, tmp_path, '{"id": 1}\n{"ident": 2, "b": 3}\n', "--format", "json", "--key", "id", code=1)
    assert "line 2 has no field 'id' for the key; it has 'ident', 'b'" in says
    assert [r["key"] for r in everything(orders)].count("1") == 1


@pytest.mark.parametrize(
    "options, says",
    [
        (["--format", "xml"], "--format is one of text, json, raw, got 'xml'"),
        (["--key", "id"], "give --format json with it"),
        (["--key", "id", "--format", "json", "--key-separator", ":"], "exclude each other"),
        (["--format", "raw", "--key-separator", ":"], "do not go with it"),
        (["--header", "web"], "--header takes NAME=VALUE, such as source=web, got 'web'"),
    ],
)
def test_wrong_usage_of_produce_ends_with_2(orders: Commands, tmp_path: Path, options: list[str], says: str) -> None:
    assert says in put(orders, tmp_path, "x\n", *options, code=2)
    assert everything(orders) == []


def test_a_file_that_is_not_there_is_named(orders: Commands) -> None:
    assert "there is no file gone.txt" in said(orders("produce", "orders", "gone.txt", code=2).stderr)


def test_lines_are_whole_wherever_the_input_is_cut() -> None:
    text = b"one\ntwo\r\n\nlonger line\nend"
    for size in range(1, len(text) + 1):
        parts = (text[at : at + size] for at in range(0, len(text), size))
        assert [line for group in lines(parts) for line in group] == [b"one", b"two", b"", b"longer line", b"end"]


def test_what_was_typed_is_on_disk_before_the_input_ends_and_ctrl_c_drops_only_half_a_line(orders: Commands) -> None:
    with orders.started("produce", "orders") as producer:
        assert producer.stdin is not None
        producer.stdin.write("one\ntwo\nhalf a li")
        producer.stdin.flush()
        wait_until(lambda: len(everything(orders)) == 2)
        producer.send_signal(signal.SIGINT)
        assert producer.wait(300) == 130
        assert producer.stderr is not None
        says = producer.stderr.read()
    assert says.startswith("orders: 2 records on disk, last offsets ")
    assert says.endswith("stopped before the end\n")
    assert [r["value"] for r in everything(orders)] == ["one", "two"]


# --- consume


@pytest.fixture
def ten(penstock: Commands) -> Commands:
    """Ten JSON records in partition 0 and three in partition 1, a second apart, with keys and headers."""
    penstock("topics", "create", "orders", "--partitions", 2)
    for partition, many in ((0, 10), (1, 3)):
        values = [json.dumps({"p": partition, "n": n, "kind": "ab"[n % 2]}) for n in range(many)]
        times, keys = [1_000_000 + 1000 * n for n in range(many)], [b"k%d" % n for n in range(many)]
        headers = [[("source", b"web")] if n else [] for n in range(many)]
        penstock.fill("orders", values, partition=partition, timestamps=times, keys=keys, headers=headers)
    return penstock


def offsets_by_partition(penstock: Commands, *options: object) -> dict[int, list[int]]:
    """The offsets that are shown, by partition."""
    out: dict[int, list[int]] = {}
    for line in penstock.lines("consume", "orders", "--format", "json", "--no-follow", *options):
        record = json.loads(line)
        out.setdefault(record["partition"], []).append(record["offset"])
    return out


@pytest.mark.parametrize(
    "options, expected",
    [
        ([], {0: range(10), 1: range(3)}),
        (["--from-beginning"], {0: range(10), 1: range(3)}),
        (["--partition", 1], {1: range(3)}),
        (["--offset", 2], {0: range(2, 10), 1: range(2, 3)}),
        (["--offset", "0:7"], {0: range(7, 10)}),
        (["--offset", "0:7", "--offset", "1:earliest"], {0: range(7, 10), 1: range(3)}),
        (["--offset", -2], {0: range(8, 10), 1: range(1, 3)}),
        (["--offset", 5, "--partition", 0], {0: range(5, 10)}),
        (["--offset", "latest"], {}),
        (["--from-time", "1002000"], {0: range(2, 10), 1: range(2, 3)}),
        (["--from-time", "1970-01-01T00:16:48+00:00"], {0: range(8, 10)}),
        (["--from-time", "1h"], {}),
        (["--where", "n >= 2 and kind = 'a'"], {0: range(2, 10, 2), 1: range(2, 3)}),
        (["--where", "$key = 'k9' or $headers.source is null"], {0: (0, 9), 1: (0,)}),
        (["--max", 4, "--partition", 0], {0: range(4)}),
    ],
)
def test_it_begins_where_it_is_told_and_shows_what_is_wanted(
    ten: Commands, options: list[object], expected: dict[int, range]
) -> None:
    assert offsets_by_partition(ten, *options) == {partition: list(offsets) for partition, offsets in expected.items()}


def test_lines_read_as_those_of_kafkas_console_consumer(ten: Commands) -> None:
    shown = ["--print-timestamp", "--print-partition", "--print-offset", "--print-headers", "--format", "key-value"]
    found = ten.lines("consume", "orders", "--no-follow", "--partition", 1, "--max", 2, *shown)
    assert found == [
        'CreateTime:1000000\tPartition:1\tOffset:0\tNO_HEADERS\tk0\t{"p": 1, "n": 0, "kind": "a"}',
        'CreateTime:1001000\tPartition:1\tOffset:1\tsource:web\tk1\t{"p": 1, "n": 1, "kind": "b"}',
    ]


def test_json_lines_hold_any_value(orders: Commands) -> None:
    values: list[bytes | None] = [
        b'{"a":\n 1}',
        b"text",
        b"NaN",
        b"\xff",
        None,
        b'"quoted"',
        b"",
        "\ufeff1".encode(),
        b"1e999",
    ]
    with Log(orders.path) as log, log.producer() as producer:
        producer.send_many("orders", values, keys=[b"\xfe"] * len(values), partition=0)
    found = orders.lines("consume", "orders", "--no-follow", "--format", "json")
    read = [json.loads(line, parse_float=str) for line in found]
    assert [r.get("value", r.get("value_base64")) for r in read] == [
        {"a": 1}, "text", "NaN", "/w==", None, "quoted", "", "\ufeff1", "1e999",
    ]  # fmt: skip
    assert {r["key_base64"] for r in read} == {"/g=="}


@pytest.mark.parametrize(
    "options, code, says",
    [
        (["--where", "amount >"], 2, "predicate 'amount >': a number, 'text', true, false or null must come"),
        (["--format", "xml"], 2, "--format is one of value, key-value, json, got 'xml'"),
        (["--offset", "x:1"], 2, "--offset is OFFSET or PARTITION:OFFSET"),
        (["--offset", "first"], 2, "--offset is OFFSET or PARTITION:OFFSET"),
        (["--offset", "0", "--from-beginning"], 2, "exclude each other"),
        (["--from-time", "noon"], 2, "'noon' is not a time"),
        (["--group", "g", "--partition", "0"], 2, "exclude each other"),
        (["--group", "a/b"], 2, "a group name has"),
        (["--offset", "99"], 1, "partition 0 holds offsets 0 to 10 (not included), not 99"),
        (["--offset", "7:1"], 1, "has partitions 0 to 1, not 7"),
        (["--partition", "2"], 1, "has partitions 0 to 1, not 2"),
    ],
)
def test_what_consume_cannot_do_is_said(ten: Commands, options: list[str], code: int, says: str) -> None:
    assert says in said(ten("consume", "orders", *options, code=code).stderr)


def test_a_group_goes_on_where_it_was(ten: Commands) -> None:
    first = ten.lines("consume", "orders", "--group", "g", "--max", 5)
    assert ten.json("groups", "describe", "g")["lag"] == 8
    rest = ten.lines("consume", "orders", "--group", "g", "--no-follow", "--from-beginning")
    assert (len(first), len(rest), len({*first, *rest})) == (5, 8, 13)
    assert ten.lines("consume", "orders", "--group", "g", "--no-follow") == []


def test_what_a_predicate_leaves_out_counts_as_read_by_the_group(ten: Commands) -> None:
    assert len(ten.lines("consume", "orders", "--group", "g", "--no-follow", "--where", "n = 1")) == 2
    assert ten.json("groups", "describe", "g")["lag"] == 0


def test_a_group_can_be_begun_elsewhere(ten: Commands) -> None:
    ten("consume", "orders", "--group", "g", "--no-follow")
    assert offsets_by_partition(ten, "--group", "g", "--offset", "0:8") == {0: [8, 9]}
    assert offsets_by_partition(ten, "--group", "g", "--from-time", "1002000") == {0: list(range(2, 10)), 1: [2]}


def test_the_commands_of_the_guide_say_what_stands_there(
    penstock: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [("anna", 30), ("dora", 250), ("anna", 120)]
    Path("orders.jsonl").write_text("".join(json.dumps({"user": u, "total": t}) + "\n" for u, t in rows))
    text = (Path(__file__).parents[2] / "docs/guide/log.md").read_text()
    shown = "".join(re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    tried = re.findall(r"^\$ penstock (.*)\n((?:[^$].*\n)*)", shown, re.MULTILINE)
    assert len(tried) == 6
    for command, expected in tried:
        arguments, _, file = command.partition(" > billed")
        done = penstock(*shlex.split(arguments))
        assert (done.stderr if file else done.output) == expected, command


# --- processes


def test_following_shows_new_records_until_ctrl_c_which_commits_and_ends_with_0(ten: Commands) -> None:
    with ten.started("consume", "orders", "--group", "g", "--where", "n >= 2") as consumer:
        assert consumer.stdout is not None
        seen = collect(consumer.stdout)
        wait_until(lambda: len(seen) == 9)
        ten.fill("orders", ['{"n": 1}', '{"n": 100}'], partition=1)
        wait_until(lambda: len(seen) == 10)
        consumer.send_signal(signal.SIGINT)
        assert consumer.wait(300) == 0
        assert consumer.stderr is not None
        assert consumer.stderr.read() == "orders: 10 records\n"
    assert seen[-1] == '{"n": 100}'
    assert ten.json("groups", "describe", "g")["lag"] == 0


def test_without_a_word_only_new_records_are_followed_and_sigterm_ends_it(ten: Commands) -> None:
    with ten.started("consume", "orders") as consumer:
        assert consumer.stdout is not None
        seen = collect(consumer.stdout)

        def shown() -> bool:
            ten.fill("orders", ["new"], partition=0)
            return len(seen) > 3

        wait_until(shown)
        consumer.send_signal(signal.SIGTERM)
        assert consumer.wait(300) == 0
    assert set(seen) == {"new"}


def test_several_writers_and_a_reader_at_once_lose_nothing(orders: Commands) -> None:
    many, writers = 3000, 3
    with ExitStack() as stack:
        reader = stack.enter_context(orders.started("consume", "orders", "--from-beginning", "--max", many * writers))
        assert reader.stdout is not None
        seen = collect(reader.stdout)
        running = [
            stack.enter_context(orders.started("produce", "orders", "--key-separator", ":")) for _ in range(writers)
        ]
        feeds = [
            threading.Thread(target=p.communicate, args=("".join(f"{n % 7}:{w} {n}\n" for n in range(many)),))
            for w, p in enumerate(running)
        ]
        for feed in feeds:
            feed.start()
        for feed in feeds:
            feed.join(300)
        assert [p.returncode for p in running] == [0] * writers
        assert reader.wait(300) == 0
        wait_until(lambda: len(seen) == many * writers)
    read = [(int(w), int(n)) for w, n in (line.split() for line in seen)]
    assert Counter(w for w, _ in read) == dict.fromkeys(range(writers), many)
    for key in range(7):
        for writer in range(writers):
            mine = [n for w, n in read if w == writer and n % 7 == key]
            assert mine == list(range(key, many, 7))


def test_a_killed_consumer_is_followed_by_one_that_goes_on_from_its_groups_offset(orders: Commands) -> None:
    orders.fill("orders", [str(n) for n in range(2000)], partition=0)
    with orders.started("consume", "orders", "--group", "g") as first:
        assert first.stdout is not None
        seen = collect(first.stdout)
        wait_until(lambda: "g" in [g["group"] for g in orders.json("groups", "list")])
        wait_until(lambda: 2000 in [o["committed"] for o in orders.json("groups", "describe", "g")["offsets"]])
        orders.fill("orders", [str(n) for n in range(2000, 2100)], partition=0)
        wait_until(lambda: "2099" in seen)
        first.kill()
        first.wait(300)
    at = orders.json("groups", "describe", "g")
    assert at["members"] == []
    committed = at["offsets"][0]["committed"]
    assert 2000 <= committed <= 2100
    again = orders.run("consume", "orders", "--group", "g", "--no-follow").stdout.split()
    assert again == [str(n) for n in range(committed, 2100)]
    assert {*seen, *again} == {str(n) for n in range(2100)}


def test_two_members_share_a_topic_and_hand_over_without_a_record_lost_or_doubled(orders: Commands) -> None:
    def owners() -> set[str]:
        return {o["member"] for o in orders.json("groups", "describe", "g")["offsets"]}

    for partition in (0, 1):
        orders.fill("orders", [f"{partition} {n}" for n in range(100)], partition=partition)
    with (
        orders.started("consume", "orders", "--group", "g") as one,
        orders.started("consume", "orders", "--group", "g") as two,
    ):
        assert one.stdout is not None
        assert two.stdout is not None
        seen = [collect(one.stdout), collect(two.stdout)]
        wait_until(lambda: bool(orders.json("groups", "list")) and len(owners()) == 2 and None not in owners())
        for partition in (0, 1):
            orders.fill("orders", [f"{partition} {n}" for n in range(100, 200)], partition=partition)
        wait_until(lambda: sum(map(len, seen)) >= 400)
        one.send_signal(signal.SIGINT)
        assert one.wait(300) == 0
        wait_until(lambda: len(owners()) == 1 and None not in owners())
        orders.fill("orders", ["0 200"], partition=0)
        orders.fill("orders", ["1 200"], partition=1)
        wait_until(lambda: {"0 200", "1 200"} <= set(seen[1]))
        two.send_signal(signal.SIGINT)
        assert two.wait(300) == 0
    assert all(any(100 <= int(line.split()[1]) < 200 for line in mine) for mine in seen)
    assert sorted(seen[0] + seen[1]) == sorted(f"{p} {n}" for p in (0, 1) for n in range(201))


@pytest.mark.parametrize("follow", ["--follow", "--no-follow"])
def test_a_closed_pipe_ends_it_in_silence(orders: Commands, follow: str) -> None:
    orders.fill("orders", [f"{n:0100d}" for n in range(20_000)], partition=0)
    command = [*COMMAND, "consume", "orders", "--from-beginning", "--group", "g", follow]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=orders.environment) as consumer:
        assert consumer.stdout is not None
        assert consumer.stderr is not None
        assert consumer.stdout.readline() == b"%0100d\n" % 0
        consumer.stdout.close()
        assert consumer.wait(300) == 0
        assert consumer.stderr.read() == b""
    assert orders.json("groups", "describe", "g")["lag"] > 0


def test_a_closed_pipe_ends_it_also_when_nothing_more_comes(orders: Commands) -> None:
    orders.fill("orders", ["only"], partition=0)
    with orders.started("consume", "orders", "--from-beginning") as consumer:
        assert consumer.stdout is not None
        assert consumer.stderr is not None
        assert consumer.stdout.readline() == "only\n"
        consumer.stdout.close()
        assert consumer.wait(300) == 0
        assert consumer.stderr.read() == ""
