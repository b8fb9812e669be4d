"""Programs as components: the protocol, pystorm's components unchanged, and programs that die, hang, babble and flood."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import time
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.errors import FlowError, PenstockError
from penstock.graph.logic.topology.collector import Collector, SpoutCollector
from penstock.graph.logic.topology.components import kept_attributes
from penstock.graph.logic.topology.task_context import ComponentLayout, TaskContext, TopologyLayout
from penstock.graph.logic.topology.tuples import pack_roots, tuple_class
from penstock.graph.multilang.codecs import JsonCodec, ProtocolError, plain_value
from penstock.graph.multilang.fields import closed, opened
from penstock.graph.multilang.pool import ShellPool
from penstock.testing import complete_topology, run_local
from tests.waiting import wait_until

PROGRAMS = Path(__file__).parent / "programs"
LINES = ["a b a", "b c"]


def pystorm(name: str, *more: str) -> list[str]:
    return [sys.executable, str(PROGRAMS / "words.py"), name, *more]


def odd(kind: str) -> list[str]:
    return [sys.executable, str(PROGRAMS / "odd.py"), kind]


class Played(ps.Bolt):
    outputs = "word string, task int"

    def prepare(self, context: Any) -> None:
        self._task = context.task

    def process(self, tup: Any) -> Any:
        yield tup.word, self._task


def topology(bolt: ps.ShellBolt, rows: list[str] | None = None) -> ps.Topology:
    top = ps.Topology("shell")
    top.spout("words", ps.items(rows if rows is not None else [f"w{i}" for i in range(10)], "word string"))
    top.bolt("own", bolt).shuffle("words")
    top.sink("out", ps.console(), from_="own")
    return top


def got(bolt: ps.ShellBolt, rows: list[str] | None = None) -> list[Any]:
    return [opened(row[0]) for row in run_local(topology(bolt, rows))["out"]]


class Alone:
    """A shell bolt without a host: what it emits and acks is at hand."""

    def __init__(self, bolt: ps.ShellBolt, rooted: bool = False) -> None:
        layout = TopologyLayout(
            "t",
            (
                ComponentLayout("own", 1, (("default", ("word",)),), (("words", "default", "shuffle"),)),
                ComponentLayout("words", 1, (("default", ("word",)),)),
            ),
        )
        self.bolt = deepcopy(bolt)
        self.collector = self.bolt._collector = Collector(["default"], rooted=rooted)
        self.bolt._context = TaskContext("own", layout=layout)
        self.bolt.prepare(self.bolt._context)
        self.tuples = tuple_class(("word",), "words", "default", rooted)
        self.rooted = rooted

    def give(self, *words: str) -> None:
        for word in words:
            tup: Any = tuple.__new__(self.tuples, (word,))
            if self.rooted:
                tup._edge, tup._roots = hash(word), pack_roots([abs(hash(word))])
                self.collector.open.taken[tup._edge] = tup._roots
            self.bolt.process(tup)
        self.bolt.end_batch(1)

    @property
    def emitted(self) -> list[Any]:
        return [record[0] for record in self.collector.records["default"]]

    @property
    def pid(self) -> int:
        assert self.bolt._shell is not None
        return self.bolt._shell.pid


def test_components_of_pystorm_run_unchanged() -> None:
    top = ps.Topology("words")
    top.spout("lines", ps.items(LINES, "line string"))
    top.bolt("split", ps.ShellBolt(pystorm("Split"), ["word"]), parallelism=2).shuffle("lines")
    top.bolt("count", ps.ShellBolt(pystorm("Count"), ["word", "n bigint"])).fields("split", "word")
    top.sink("out", ps.console(), from_="count")
    assert sorted(run_local(top)["out"]) == [("a", 1), ("a", 2), ("b", 1), ("b", 2), ("c", 1)]


def test_a_spout_of_pystorm_runs_unchanged() -> None:
    top = ps.Topology("numbers")
    top.spout("numbers", ps.ShellSpout(pystorm("Numbers"), ["n bigint", "about"], reliable=False), limit=3)
    top.sink("out", ps.console(), from_="numbers")
    rows = run_local(top)["out"]
    assert [(n, opened(about)) for n, about in rows] == [(n, {"text": f"number {n}"}) for n in (1, 2, 3)]


def test_the_context_has_all_the_keys_of_storm() -> None:
    top = topology(
        ps.ShellBolt(pystorm("Context"), ["context", "conf", "comp", "task", "stream"], config={"own.key": [1]}), ["a"]
    )
    [row] = run_local(top)["out"]
    context, conf, comp, task, stream = map(opened, row)
    assert set(context) == {
        "task->component", "taskid", "componentid", "stream->target->grouping", "streams", "stream->outputfields",
        "source->stream->grouping", "source->stream->fields",
    }  # fmt: skip
    assert context["task->component"] == {"1": "own", "2": "words"}
    assert (context["taskid"], context["componentid"], context["streams"]) == (1, "own", ["default"])
    assert context["source->stream->grouping"] == {"words": {"default": {"type": "SHUFFLE"}}}
    assert context["source->stream->fields"] == {"words": {"default": ["word"]}}
    assert (conf["own.key"], conf["topology.name"]) == ([1], "shell")
    assert (comp, task, stream) == ("words", 2, "default")


def test_a_program_that_asks_gets_the_ids_of_the_tasks() -> None:
    top = ps.Topology("asks")
    top.spout("words", ps.items(["x", "y"], "word string"))
    top.bolt("asks", ps.ShellBolt(pystorm("Asks"), {"default": "word string", "said": "text string"})).shuffle("words")
    top.bolt("play", Played(), parallelism=3).all("asks")
    top.sink("out", ps.console(), from_="asks", stream="said")
    assert [row.text for row in run_local(top)["out"]] == ["x went to [2, 3, 4]", "y went to [2, 3, 4]"]


def test_a_direct_emit_goes_to_the_task_it_names() -> None:
    top = ps.Topology("direct")
    top.spout("words", ps.items(["x", "y"], "word string"))
    top.bolt("deal", ps.ShellBolt(odd("direct"), {"jobs": "word string"}, direct=["jobs"])).shuffle("words")
    top.bolt("play", Played(), parallelism=3).direct("deal", stream="jobs")
    top.sink("out", ps.console(), from_="play")
    assert run_local(top)["out"] == [("x", 2), ("y", 2)]


def test_environment_directory_and_settings_reach_the_program(tmp_path: Path) -> None:
    bolt = ps.ShellBolt(odd("env"), ["seen"], env={"COLOUR": "blue"}, cwd=str(tmp_path), config={"own.key": 7})
    assert got(bolt, ["a"]) == [["blue", str(tmp_path), 7]]


def test_no_shell_reads_the_command() -> None:
    alone = Alone(ps.ShellBolt([*odd("plain"), "; touch hacked", "$(id)"], ["word"]))
    alone.give("a")
    assert alone.emitted == ["a"]
    alone.bolt.close()


@pytest.mark.parametrize("kind", ["dies", "hangs"])
def test_a_program_that_ends_or_hangs_is_started_again_and_loses_nothing(kind: str, tmp_path: Path) -> None:
    bolt = ps.ShellBolt(odd(kind), ["word"], env={"MARKS": str(tmp_path)}, timeout="1500ms", backoff="1ms")
    assert sorted(set(got(bolt))) == [f"w{i}" for i in range(10)]


def test_a_program_that_gets_on_between_its_failures_is_started_as_often_as_it_takes() -> None:
    """It dies at every seventh tuple: 16 times over 100 tuples, never twice without having acked one."""
    words = [f"w{i}" for i in range(100)]
    assert set(got(ps.ShellBolt(odd("weak"), ["word"], restarts=1, backoff="1ms"), words)) == set(words)


def test_a_program_with_typed_messages_names_no_task_by_0_and_one_anchor_as_a_text() -> None:
    """As Storm reads them: a text is a list of one, and no task has the id 0."""
    alone = Alone(ps.ShellBolt(odd("typed"), ["word"]), rooted=True)
    alone.give(*(f"w{i}" for i in range(12)))
    assert alone.emitted == [f"w{i}" for i in range(12)]
    assert alone.collector.roots["default"] == [pack_roots([abs(hash(f"w{i}"))]) for i in range(12)]
    alone.bolt.close()


def test_what_a_program_has_started_ends_with_it(tmp_path: Path) -> None:
    child = tmp_path / "child.py"
    child.write_text(
        f"import os, time\nopen({str(tmp_path / 'new')!r}, 'w').write(str(os.getpid()))\n"
        f"os.rename({str(tmp_path / 'new')!r}, {str(tmp_path / 'pid')!r})\ntime.sleep(600)\n"
    )
    command = ["sh", "-c", f"{sys.executable} {child}; true"]
    with pytest.raises(PenstockError, match="gave no sign of life"):
        got(ps.ShellBolt(command, ["word"], restarts=0, timeout="2s"), ["a"])
    wait_until((tmp_path / "pid").exists)
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: _is_gone(pid))


def _is_gone(pid: int) -> bool:
    """Whether a process has ended; where nobody asks for its end it stays as a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


FORGETFUL = """
import json, os, sys
def read():
    return json.loads("".join(iter(sys.stdin.readline, "end\\n")))
def send(message):
    print(json.dumps(message), "end", sep="\\n", flush=True)
setup = read()
open(os.path.join(setup["pidDir"], str(os.getpid())), "w").close()
send({"pid": os.getpid()})
said = open(sys.argv[1], "a", buffering=1)
while True:
    got = read()
    said.write(json.dumps(got) + "\\n")
    send({"command": "sync"})
    if got["command"] in ("next", "ack"):
        os._exit(0)
"""


def test_acks_and_fails_reach_the_spout_that_is_started_in_the_place_of_one_that_ended(tmp_path: Path) -> None:
    """The program ends after its answer, so the next command finds nobody: the one that is started then gets it."""
    (tmp_path / "own.py").write_text(FORGETFUL)
    spout = deepcopy(ps.ShellSpout([sys.executable, str(tmp_path / "own.py"), str(tmp_path / "said")], backoff="1ms"))
    spout._collector = SpoutCollector([], (), True)
    spout._context = TaskContext("own")
    spout.open(spout._context)
    spout.next_tuple()
    spout.fail("a")
    spout.ack("b")
    spout.fail("c")
    spout.close()
    said = [json.loads(line) for line in (tmp_path / "said").read_text().splitlines()]
    assert [(each["command"], each.get("id")) for each in said] == [
        ("next", None),
        ("fail", "a"),
        ("ack", "b"),
        ("fail", "c"),
    ]


def test_tuples_with_roots_are_failed_when_their_program_is_killed() -> None:
    """So that their spout replays them: none is forgotten, and none is acked that was not."""
    alone = Alone(ps.ShellBolt(odd("keeps"), ["word"], linger="1ms", backoff="1ms"), rooted=True)
    alone.give("a", "b")
    assert len(alone.bolt.held) == 2
    os.kill(alone.pid, signal.SIGKILL)
    alone.give("c")
    assert alone.collector.open.report.failed >= {abs(hash("a")), abs(hash("b"))}
    assert not [t for t in alone.bolt.held.values() if t[0] in "ab"]
    alone.bolt.close()


def test_acks_reach_the_messages_of_their_tuples() -> None:
    alone = Alone(ps.ShellBolt(odd("plain"), ["word"]), rooted=True)
    alone.give("a", "b")
    assert not alone.collector.open.taken
    assert not alone.bolt.held
    assert alone.collector.roots["default"] == [pack_roots([abs(hash(w))]) for w in "ab"]
    assert alone.bolt._metrics["seen"].value() == 4
    assert alone.collector.errors == ["only a word"] * 2
    alone.bolt.close()


def test_tuples_of_a_process_that_is_no_more_are_failed_after_a_restart() -> None:
    alone = Alone(ps.ShellBolt(odd("keeps"), ["word"], linger="1ms"), rooted=True)
    alone.give("a")
    held, by = alone.bolt.held, alone.bolt.held_by
    alone.bolt.close()
    again = Alone(ps.ShellBolt(odd("keeps"), ["word"]), rooted=True)
    again.bolt.held, again.bolt.held_by = dict(held), by
    again.collector.open.held = {t._edge: t._roots for t in held.values()}
    again.bolt.restored()
    assert again.collector.open.report.failed == {abs(hash("a"))}
    assert not again.bolt.held


def test_a_program_that_always_fails_ends_the_run_with_what_it_said() -> None:
    with pytest.raises(PenstockError, match=r"(?s)failed 3 times in a row.*exit code 1.*out of luck"):
        got(ps.ShellBolt(odd("always-dies"), ["word"], restarts=2, backoff="1ms"))


POISON = """
import json, os, sys
def read():
    return json.loads("".join(iter(sys.stdin.readline, "end\\n")))
def send(message):
    print(json.dumps(message), "end", sep="\\n", flush=True)
setup = read()
open(os.path.join(setup["pidDir"], str(os.getpid())), "w").close()
send({"pid": os.getpid()})
many = 0
while True:
    got = read()
    many += 1
    if got.get("command") == "next" and many == 2:
        send({"command": "emit", "tuple": [1], "need_task_ids": False})
    if got.get("tuple") == ["bad"] or many == 4 and "command" in got:
        sys.exit("cannot digest it")
    if got.get("tuple"):
        send({"command": "ack", "id": got["id"]})
    else:
        send({"command": "sync"})
"""


class Given(ps.Spout):
    outputs = "word string"

    def next_tuple(self) -> Any:
        raise AssertionError("a mock is in its place")


def test_a_bolt_that_fails_in_every_batch_ends_the_run(tmp_path: Path) -> None:
    """It acks other tuples in between, and answers each heartbeat; the message that ends it is replayed for ever."""
    (tmp_path / "own.py").write_text(POISON)
    top = ps.Topology("poison")
    top.spout("words", Given())
    top.bolt("own", ps.ShellBolt([sys.executable, str(tmp_path / "own.py")], restarts=1, backoff="1ms")).shuffle(
        "words"
    )
    with pytest.raises(PenstockError, match=r"(?s)failed in 11 batches in a row; the last time: .*cannot digest it"):
        complete_topology(top, {"words": ["fine", "bad", "good"]})


def test_failures_in_batches_that_do_not_follow_each_other_do_not_end_the_run(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(POISON)
    alone = Alone(ps.ShellBolt([sys.executable, str(tmp_path / "own.py")], backoff="1ms", restarts=1), rooted=True)
    for many in range(1, 9):
        alone.give("fine", "bad")
        assert alone.bolt.failed_batches == many
    alone.give("good")
    assert alone.bolt.failed_batches == 0
    alone.bolt.failed_batches = 10
    with pytest.raises(PenstockError, match="failed in 11 batches in a row"):
        alone.give("bad")


def test_a_bolt_that_fails_in_every_batch_says_so_in_its_state() -> None:
    """A host that has an instance for one batch only goes on counting."""
    bolt = deepcopy(ps.ShellBolt(["a"]))
    bolt.failed_batches = 2
    assert kept_attributes(bolt, ps.ShellBolt(["a"])) == {"failed_batches": 2}


def test_a_spout_that_fails_after_a_few_answers_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(POISON)
    top = ps.Topology("spout")
    spout = ps.ShellSpout([sys.executable, str(tmp_path / "own.py")], "n bigint", backoff="1ms", reliable=False)
    top.spout("numbers", spout, limit=100)
    top.sink("out", ps.console(), from_="numbers")
    with pytest.raises(PenstockError, match=r"(?s)failed 4 times in a row; the last time: .*cannot digest it"):
        run_local(top)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (odd("silent"), "(?s)ended with exit code 3; it said:.*I cannot start"),
        (odd("liar"), r"expected \{'pid': number\} as the first message"),
        (odd("babbles"), "expected one JSON value and a line 'end', got 'not json'"),
        (["no-such-program"], "'no-such-program' cannot be started: No such file"),
    ],
)
def test_a_program_that_does_not_keep_to_the_protocol_is_named(command: list[str], message: str) -> None:
    with pytest.raises(PenstockError, match=message):
        got(ps.ShellBolt(command, ["word"], restarts=0))


def test_an_emit_that_fits_no_stream_is_an_error() -> None:
    other = topology(ps.ShellBolt(odd("plain"), {"other": ["word"]}))
    other._declared.pop("out")
    with pytest.raises(PenstockError, match=r"emits to a stream 'default'.*'other'"):
        run_local(other)
    with pytest.raises(PenstockError, match=r"expected 2 values \(word, n\), got 1"):
        got(ps.ShellBolt(odd("plain"), ["word", "n"]))


def test_a_flood_in_both_directions_does_not_block() -> None:
    """Fifty megabytes come out while tuples go in: neither side waits for the other."""
    alone = Alone(ps.ShellBolt(odd("loud"), ["word"], timeout="60s"))
    alone.give(*["y" * 10_000] * 300)
    assert len(alone.emitted) == 300 * 51
    alone.bolt.close()


def test_one_process_serves_many_batches() -> None:
    alone = Alone(ps.ShellBolt(odd("plain"), ["word"]))
    alone.give("a")
    first = alone.pid
    alone.give("b")
    assert alone.pid == first
    alone.bolt.close()
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


def test_a_worker_keeps_the_process_of_a_task_for_the_next_batch() -> None:
    pool = ShellPool()
    pool.keeps = True
    alone = Alone(ps.ShellBolt(odd("plain"), ["word"]))
    alone.give("a")
    shell, key = alone.bolt._shell, alone.bolt._key
    assert shell is not None
    alone.bolt._shell = None
    pool.put(key, alone.bolt, shell)
    assert pool.take(key) is shell
    pool.put(key, alone.bolt, shell)
    pool.close()
    assert not shell.is_alive
    assert pool.take(key) is None


def test_what_the_command_must_be() -> None:
    with pytest.raises(FlowError, match="expected the program and its arguments as a list"):
        ps.ShellBolt("python split.py", ["word"])
    with pytest.raises(FlowError, match="expected a serializer, json or msgpack"):
        ps.ShellBolt(["x"], ["word"], serializer="xml")


def test_messages_may_come_in_any_pieces() -> None:
    text = b'{"a":\n 1}\nend\n[2]\nend\n"x"\r\nend\r\n'
    for size in (1, 3, 7, 100):
        codec = JsonCodec()
        assert [m for i in range(0, len(text), size) for m in codec.feed(text[i : i + size])] == [{"a": 1}, [2], "x"]
    with pytest.raises(ProtocolError, match="expected one JSON value"):
        JsonCodec().feed(b"1,2\nend\n")


def test_numbers_that_json_does_not_have_are_null() -> None:
    """Python writes NaN, which no other language reads."""
    message = {"tuple": [math.nan, [math.inf, 1.5], {"a": -math.inf, "b": (math.nan, "x")}]}
    assert JsonCodec().encoded(message) == b'{"tuple":[null,[null,1.5],{"a":null,"b":[null,"x"]}]}\nend\n'


def test_values_that_json_does_not_have() -> None:
    import datetime
    import decimal

    assert plain_value(datetime.datetime(2026, 1, 2)) == "2026-01-02T00:00:00"
    assert plain_value(b"ab") == "YWI="
    assert plain_value(decimal.Decimal("1.50")) == "1.50"


def test_a_long_message_costs_what_it_is_long_and_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    codec, began = JsonCodec(), time.process_time()
    for _ in range(40_000):
        assert codec.feed(b"[" + b"1," * 500) == []
    assert time.process_time() - began < 5
    monkeypatch.setattr("penstock.graph.multilang.codecs.LARGEST", 1_000)
    with pytest.raises(ProtocolError, match="after at most 1,000 bytes"):
        JsonCodec().feed(b" " * 1_001)


def test_a_message_that_is_nested_too_deep_is_no_message() -> None:
    with pytest.raises(ProtocolError, match="expected one JSON value"):
        JsonCodec().feed(b"[" * 100_000 + b"\nend\n")


@pytest.mark.parametrize("text", ["\ud83d", "a\udc00b", "\U0001f600", "é"])
def test_half_a_character_travels_as_bytes_can_have_it(text: str) -> None:
    """A program in JavaScript that cuts a text apart sends such halves; Java has them too, UTF-8 does not."""
    assert opened(closed(text).encode().decode()) == text


@pytest.mark.parametrize("text", ["\x01", "\x01{nonsense", "\x01" + "[" * 100_000])
def test_a_text_from_outside_that_begins_with_the_sign_is_a_text(text: str) -> None:
    assert opened(text) == text
