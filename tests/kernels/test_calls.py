"""`map_async`: order, bounds, retries, timeouts and ends, on a loop whose clock jumps, so that no test waits."""

from __future__ import annotations

import asyncio
import itertools
import selectors
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import penstock as ps
from penstock.compiler.compile import compile_graph
from penstock.errors import FlowError, NotYet, StepError
from penstock.graph.nodes import MapAsync
from penstock.graph.schema import schema_of
from penstock.kernels.base import Context
from penstock.kernels.build import kernel_of
from penstock.kernels.calls import kernel as calls_kernel
from penstock.kernels.calls.attempts import LONGEST_PAUSE, Attempts
from penstock.kernels.calls.kernel import MapAsyncKernel
from penstock.kernels.calls.reuse import MOST, LoopPool
from penstock.kernels.pipeline import Pipeline
from penstock.kernels.records.chunk import Chunk
from penstock.testing import run_local
from tests.waiting import wait_until

SCHEMA = schema_of("n bigint")


class _Jumping(selectors.DefaultSelector):
    """Waits for nothing: where only time would help, time is moved."""

    jumped = 0.0

    def select(self, timeout: float | None = None) -> Any:
        found = super().select(0 if timeout else timeout)
        if not found and timeout:
            self.jumped += timeout
        return found


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer when nothing else is to be done."""

    def __init__(self) -> None:
        self.jumping = _Jumping()
        super().__init__(self.jumping)

    def time(self) -> float:
        """The time of the loop, with all jumps."""
        return super().time() + self.jumping.jumped


@pytest.fixture
def jumping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MapAsyncKernel, "loop_class", JumpingLoop)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    until = time.monotonic() + 5
    while (left := [t for t in threading.enumerate() if t.name == "penstock-calls"]) and time.monotonic() < until:
        time.sleep(0.01)
    assert not left


def flow_of(function: Any, schema: str = "n bigint", **settings: Any) -> Any:
    flow = ps.Flow("f")
    flow.source("in", ps.items([], "n bigint")).map_async("call", function, schema, **settings).sink(
        "out", ps.console()
    )
    flow.dead_letters("dead", ps.console())
    return flow


def answer(function: Any, records: Any = range(10), **settings: Any) -> Any:
    """What comes out, and the causes of dead letters."""
    results = run_local(flow_of(function, **settings), {"in": list(records)})
    return [r.n for r in results["out"]], [r.cause for r in results["dead"]]


class Gate:
    """What functions of tests meet at; a class travels by its name."""

    release, block = threading.Event(), threading.Event()
    meeting = threading.Barrier(4, timeout=300)


async def slow_first(row: Any) -> int:
    await asyncio.sleep(5 if row.n % 10 == 0 else 1)
    return int(row.n)


def test_the_order_is_kept_however_long_calls_take(jumping: None) -> None:
    assert answer(slow_first, range(500), concurrency=7)[0] == list(range(500))


def test_without_order_records_come_as_calls_finish(jumping: None) -> None:
    got, _ = answer(slow_first, range(50), concurrency=50, ordered=False)
    assert sorted(got) == list(range(50))
    assert got[-5:] == [0, 10, 20, 30, 40]


@pytest.mark.parametrize("concurrency", [1, 3, 40])
def test_so_many_calls_are_under_way_and_no_more(jumping: None, concurrency: int) -> None:
    under_way, most = 0, 0

    async def call(row: Any) -> int:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(1)
        under_way -= 1
        return int(row.n)

    made = MapAsyncKernel(bound(call, concurrency=concurrency))
    assert [row.n for row in through(made, [range(100), range(100, 200)])] == list(range(200))
    assert most == concurrency


def bound(function: Any, **settings: Any) -> Any:
    return flow_of(function, **settings).graph.node("call")


def through(kernel: Any, chunks: list[Any]) -> list[Any]:
    """What a kernel emits for chunks of numbers, when time has moved."""
    pipeline = Pipeline([kernel], [ps.Flow("x").source("y", ps.items([], "n bigint")).port])
    kernel.guard = None
    made: list[Any] = []
    kernel.open(Context())
    try:
        for chunk in chunks:
            made += [row for _, out in kernel.take(Chunk.of(SCHEMA, list(chunk))) for row in out.rows()]
        made += [row for _, out in kernel.advance(kernel.times) for row in out.rows()]
        kernel.close()
    finally:
        pipeline.abandon()
    return made


def test_calls_go_on_between_two_chunks() -> None:
    """A call of the first chunk may answer only when one of the second has been made: no barrier stands between chunks."""
    second = threading.Event()

    async def call(row: Any) -> int:
        if row.n == 1:
            second.set()
        while not second.is_set():
            await asyncio.sleep(0.001)
        return int(row.n)

    assert [r.n for r in through(MapAsyncKernel(bound(call, concurrency=2, timeout="20s")), [[0], [1]])] == [0, 1]


def test_a_call_that_fails_is_made_again_with_pauses_that_grow(jumping: None) -> None:
    times: list[float] = []

    async def call(row: Any) -> int:
        times.append(asyncio.get_running_loop().time())
        if len(times) < 4:
            raise ConnectionError("refused")
        return int(row.n)

    assert answer(call, [1], retries=3, backoff="10s") == ([1], [])
    pauses = [b - a for a, b in itertools.pairwise(times)]
    assert all(least <= pause <= 2.01 * least for pause, least in zip(pauses, (5, 10, 20), strict=True)), pauses


def test_pauses_have_a_random_half_and_a_longest() -> None:
    rolls = iter([0.0, 1.0, 0.5, 1.0])
    made = Attempts(len, "len", False, 99, 1.0, 2.0, 1, roll=lambda: next(rolls))  # type: ignore[arg-type]
    assert [made.pause_before(1), made.pause_before(1), made.pause_before(2)] == [1.0, 2.0, 3.0]
    assert made.pause_before(90) == LONGEST_PAUSE


def test_a_record_whose_calls_all_fail_is_a_dead_letter_with_its_cause(jumping: None) -> None:
    async def call(row: Any) -> int:
        if row.n == 3:
            raise ConnectionError("refused")
        return int(row.n)

    got, causes = answer(call, retries=2)
    assert got == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    (cause,) = causes
    assert cause.startswith("CallFailed: ")
    assert cause.endswith("call failed after 3 attempts: ConnectionError: refused")


def test_a_call_without_an_answer_ends_with_its_timeout(jumping: None) -> None:
    async def call(row: Any) -> int:
        await asyncio.sleep(3600 if row.n == 3 else 1)
        return int(row.n)

    got, (cause,) = answer(call, timeout="5s", retries=1)
    assert got == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert cause.endswith("failed after 2 attempts: NoAnswer: no answer within 5s")


def test_a_call_that_ignores_that_it_is_cancelled_holds_nothing_up(jumping: None) -> None:
    async def call(row: Any) -> int:
        for _ in range(50):
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                continue
        return int(row.n)

    got, causes = answer(call, range(4), timeout="5s", concurrency=2)
    assert got == []
    assert len(causes) == 4


def test_threads_that_hang_are_bounded_and_hold_nothing_up() -> None:
    started = []

    def call(row: Any) -> int:
        started.append(row.n)
        Gate.release.wait(300)
        return int(row.n)

    got, causes = answer(call, range(8), timeout="200ms", concurrency=2)
    Gate.release.set()
    assert got == []
    assert len(causes) == 8
    assert len(started) == 4, "two under way and two left behind"
    assert "4 calls hang although their timeout has passed" in causes[-1]


def test_a_plain_function_gets_a_thread_of_its_own() -> None:
    def call(row: Any) -> int:
        Gate.meeting.wait()
        return int(row.n)

    assert answer(call, range(8), concurrency=4)[0] == list(range(8))


def test_a_function_that_blocks_the_loop_is_named() -> None:
    async def call(row: Any) -> int:
        Gate.block.wait(300)
        return int(row.n)

    with pytest.raises(StepError, match="blocks the event loop: nothing moved for 200ms") as raised:
        answer(call, [1], timeout="200ms", on_error="fail")
    Gate.block.set()
    assert "Gate.block.wait(300)" in str(raised.value)


@pytest.mark.parametrize("odd", [StopIteration(), KeyboardInterrupt(), SystemExit(1), asyncio.CancelledError()])
@pytest.mark.parametrize("threaded", [False, True])
def test_whatever_a_function_raises_is_a_dead_letter(odd: BaseException, threaded: bool) -> None:
    def plain(row: Any) -> int:
        if row.n == 1:
            raise odd
        return int(row.n)

    async def call(row: Any) -> int:
        return plain(row)

    got, causes = answer(plain if threaded else call, range(3))
    assert got == [0, 2]
    assert len(causes) == 1


async def forgot(row: Any) -> Any:
    return None if row.n == 1 else int(row.n)


async def nothing_is_a_result(row: Any) -> int | None:
    return None if row.n == 1 else int(row.n)


def test_none_is_an_error_as_in_map() -> None:
    got, (cause,) = answer(forgot, range(3))
    assert got == [0, 2]
    assert "the function returned None" in cause
    assert answer(nothing_is_a_result, range(3)) == ([0, None, 2], [])


async def misfit(row: Any) -> Any:
    return "text" if row.n % 3 == 1 else int(row.n)


@pytest.mark.parametrize("ordered", [True, False])
def test_a_result_that_does_not_fit_is_a_dead_letter_and_the_rest_arrives(ordered: bool) -> None:
    got, causes = answer(misfit, range(9), ordered=ordered)
    assert sorted(got) == [0, 2, 3, 5, 6, 8]
    assert len(causes) == 3


def test_policies_of_a_step_and_of_its_flow_are_followed() -> None:
    async def call(row: Any) -> int:
        raise ValueError("no")

    with pytest.raises(StepError, match="failed after 1 attempt: ValueError: no"):
        answer(call, on_error="fail")
    assert answer(call, on_error="skip") == ([], [])
    assert bound(call).error_action == "dead_letter"
    assert bound(call, on_error=ps.retry(4, "1s", then="skip")).tries == 5
    assert bound(call, retries=2, on_error=ps.retry(4, "1s")).tries == 3
    flow = ps.Flow("f", on_error="skip")
    flow.source("in", ps.items([1], "n bigint")).map_async("call", call).sink("out", ps.console())
    assert flow.graph.node("call").error_action == "skip"


class Client(ps.AsyncFunction):
    """Shared by all calls; says what happened to it."""

    events: list[str] = []

    async def on_open(self) -> None:
        self.events.append("open")
        self.factor = 10

    async def on_event(self, row: Any) -> int:
        return int(row.n) * self.factor

    async def on_close(self) -> None:
        self.events.append("close")


class Plain(ps.AsyncFunction):
    """The same with methods that need not wait."""

    def on_open(self) -> None:  # type: ignore[override]
        self.factor = 10

    def on_event(self, row: Any) -> int:  # type: ignore[override]
        return int(row.n) * self.factor


def test_a_class_opens_once_and_closes_at_the_end() -> None:
    Client.events.clear()
    assert answer(Client, range(300))[0] == [n * 10 for n in range(300)]
    assert Client.events == ["open", "close"]
    assert answer(Client(), [])[0] == []
    assert Client.events == ["open", "close"], "without a record nothing is opened"
    assert answer(Plain, range(3))[0] == [0, 10, 20]


def test_an_error_in_on_open_is_said() -> None:
    class Broken(ps.AsyncFunction):
        async def on_open(self) -> None:
            raise ConnectionError("no server")

        async def on_event(self, row: Any) -> int:
            return 1

    with pytest.raises(StepError, match="no server") as raised:
        answer(Broken)
    assert "it was on_open that failed" in str(raised.value)


def test_a_worker_process_opens_once_for_all_its_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = LoopPool()
    monkeypatch.setattr(calls_kernel, "POOL", pool)
    Client.events.clear()
    node = bound(Client)
    for _ in range(3):
        kernel = kernel_of(node, flow_of(Client).graph)
        kernel.open(Context(reuses=True))
        list(kernel.take(Chunk.of(SCHEMA, [1, 2])))
        list(kernel.advance(kernel.times))
        kernel.close()
    assert Client.events == ["open"]
    left = pool.take(node)
    assert left is not None
    left.stop()
    assert Client.events == ["open", "close"]


def test_a_process_keeps_so_many_loops_and_closes_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, nodes = LoopPool(), [bound(Client) for _ in range(MOST + 2)]
    monkeypatch.setattr(calls_kernel, "POOL", pool)
    for node in nodes:
        kernel = MapAsyncKernel(node)
        kernel.open(Context(reuses=True))
        kernel._started()
        kernel.close()
    kept = [pool.take(node) for node in nodes]
    assert [loop is not None for loop in kept] == [False] * 2 + [True] * MOST
    for loop in kept:
        if loop is not None:
            loop.stop()


def test_a_pass_that_ends_early_cancels_what_is_under_way() -> None:
    started, cancelled = [], []

    async def call(row: Any) -> int:
        started.append(row.n)
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.append(row.n)
            raise
        return 1

    kernel = MapAsyncKernel(bound(call, concurrency=8))
    kernel.open(Context())
    list(kernel.take(Chunk.of(SCHEMA, [1, 2, 3])))
    wait_until(lambda: len(started) == 3)
    kernel.abandon()
    assert sorted(cancelled) == [1, 2, 3]


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "concurrency": (
        lambda s: s.map_async("x", slow_first, concurrency=0),
        "concurrency is a number from 1 to 10,000, got 0",
    ),
    "retries": (lambda s: s.map_async("x", slow_first, retries=-1), "retries is a number from 0 to 100, got -1"),
    "timeout": (lambda s: s.map_async("x", slow_first, timeout=0), "the timeout of a call must be above zero"),
    "arguments": (lambda s: s.map_async("x", lambda a, b: a), "calls its function with 1 argument"),
    "class": (lambda s: s.map_async("x", ps.AsyncFunction), "must define on_event"),
    "table": (
        lambda s: s.key_by("n").count("c").map_async("x", slow_first, "n bigint"),
        "map_async reads records, and 'c' emits a table whose rows change",
    ),
}


@pytest.mark.parametrize("which", REFUSED)
def test_what_cannot_be_called_is_refused(which: str) -> None:
    make, text = REFUSED[which]
    with pytest.raises((FlowError, NotYet), match=text):
        make(ps.Flow("f").source("in", ps.items([], "n bigint")))


def test_the_event_time_and_the_settings_are_as_in_map() -> None:
    flow = ps.Flow("f")
    source = flow.source("in", ps.items([], "n bigint, at timestamp"), event_time="at")
    kept = source.map_async("kept", slow_first, concurrency=5, ordered=False, timeout="5s", retries=2, backoff="1s")
    assert kept.event_time_of == source.event_time_of
    assert kept.map_async("lost", slow_first, "n bigint").event_time_of is None
    kept.sink("out", ps.console())
    node = flow.graph.node("kept")
    assert isinstance(node, MapAsync)
    label = f"{slow_first.__module__}:slow_first"
    calls = {"concurrency": 5, "order": "as they finish", "timeout": "5s", "retries": 2, "backoff": "1s"}
    assert node.settings() == {"function": label, **calls}


def test_calls_are_one_pass_with_the_python_steps_around_them() -> None:
    flow = ps.Flow("f")
    numbers = flow.source("in", ps.items([], "n bigint"))
    called = numbers.map("before", lambda r: r).map_async("call", slow_first, "n bigint")
    called.filter("after", lambda r: True).sink("out", ps.console())
    stages = [[node.name for node in stage.nodes] for stage in compile_graph(flow.graph, live=True).stages]
    assert stages == [["in"], ["before", "call", "after"], ["out"]]
