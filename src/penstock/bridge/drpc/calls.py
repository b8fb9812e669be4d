"""Calls of functions through the log: a request is on disk before anybody waits for its answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from uuid import uuid4

from penstock.errors import CallError, SetupError
from penstock.graph.composed.compose_drpc import REQUEST, answer_topic, request_topic
from penstock.log import Log, Record, TopicExists

HOUR = 3_600_000


@dataclass(frozen=True)
class CallLimits:
    """How much a server of calls takes.

    Attributes:
        queue: how many calls of a function may wait at a time.
        timeout: for how long a call waits for its answer, in seconds.
        args: how long the arguments of a call may be, in bytes.

    Raises:
        SetupError: one of them is not positive.
    """

    queue: int = 128
    timeout: float = 600.0
    args: int = 1 << 20

    def __post_init__(self) -> None:
        for name in ("queue", "timeout", "args"):
            if getattr(self, name) <= 0:
                raise SetupError(f"expected {name} above 0, got {getattr(self, name)}")


class Refused(CallError):
    """A call that was not taken: too many wait, its arguments are too long, or there is no such function."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Calls:
    """Puts requests into the log, and hands out the answers as they come. Safe to use from several threads.

    Args:
        path: the directory of the log.
        limits: how much is taken.
        create: whether a function that nobody has served yet may be called.
    """

    def __init__(self, path: str | Path, limits: CallLimits | None = None, *, create: bool = False) -> None:
        self.limits = limits or CallLimits()
        self.create = create
        self.log = Log(path)
        self._producer = self.log.producer(linger_ms=0.5)
        self._waiting: dict[str, dict[str, Future[str]]] = {}
        self._readers: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._closed = threading.Event()

    def start(self, function: str, args: str) -> tuple[str, Future[str]]:
        """Takes a call: it is on disk when this returns.

        Args:
            function: the name of the function.
            args: its arguments.

        Returns:
            The id of the request, and the answer to come.

        Raises:
            Refused: there is no room, no such function, or the arguments are too long.
        """
        if (size := _size(args)) is None:
            raise Refused(400, "expected arguments as text, got half of a character (a lone surrogate)")
        if size > self.limits.args:
            raise Refused(413, f"expected arguments of at most {self.limits.args} bytes, got {size}")
        request, answer = uuid4().hex, Future[str]()
        with self._lock:
            waiting = self._of(function)
            if len(waiting) >= self.limits.queue:
                raise Refused(429, f"{self.limits.queue} calls of {function!r} wait already; try again")
            waiting[request] = answer
        value = json.dumps({REQUEST: request, "args": args}).encode()
        try:
            self._producer.send(request_topic(function), value, key=request.encode()).result()
        except BaseException:
            self.forget(function, request)
            raise
        return request, answer

    def call(self, function: str, args: str, timeout: float | None = None) -> str:
        """Calls a function and waits for its answer.

        Args:
            function: the name of the function.
            args: its arguments.
            timeout: how long to wait, in seconds; else as the limits say.

        Returns:
            The answer.

        Raises:
            CallError: the call failed, was not taken, or took too long.
        """
        request, answer = self.start(function, args)
        span = self.limits.timeout if timeout is None else timeout
        try:
            return answer.result(span)
        except Late:
            raise Refused(504, late(function, span)) from None
        finally:
            self.forget(function, request)

    def forget(self, function: str, request: str) -> None:
        """Nobody waits for a request any more."""
        with self._lock:
            self._waiting.get(function, {}).pop(request, None)

    def _of(self, function: str) -> dict[str, Future[str]]:
        """The calls of a function that wait; the first one begins to read its answers."""
        if function not in self._waiting:
            self._check(function)
            self._waiting[function] = {}
            consumer = self.log.consumer(None, [answer_topic(function)], from_="latest")
            reader = threading.Thread(
                target=self._read, args=(function, consumer), daemon=True, name=f"drpc-{function}"
            )
            self._readers.append(reader)
            reader.start()
        return self._waiting[function]

    def _check(self, function: str) -> None:
        """Refuses a function that no flow serves; else makes its topics, which keep requests and answers for an hour."""
        requests, answers = request_topic(function), answer_topic(function)
        if not self.create and requests not in self.log.topics():
            raise Refused(
                404,
                f"no flow serves a function {function!r}; start one, or make its topic: penstock topics create {requests}",
            )
        for topic in (requests, answers):
            with suppress(TopicExists):
                self.log.create_topic(topic, retention_ms=HOUR)

    def _read(self, function: str, consumer: object) -> None:
        try:
            with consumer as found:  # type: ignore[attr-defined]  # a Consumer
                while not self._closed.is_set():
                    for record in found.poll(timeout=0.5):
                        self._answer(function, record)
        except Exception as error:
            self._give_up(function, error)

    def _give_up(self, function: str, error: Exception) -> None:
        """Nobody reads the answers of a function any more: who waits gets an error, and the next call begins to read them again."""
        with self._lock:
            waiting = self._waiting.pop(function, {})
        _fail(waiting.values(), CallError(f"the answers of {function!r} cannot be read: {error}"))

    def _answer(self, function: str, record: Record) -> None:
        """Hands an answer to who waits for it. Anybody may write to the topic: what is no answer is passed over."""
        try:
            found = json.loads(record.value or b"")
            request, result, error = str(found[REQUEST]), found["result"], found["error"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return
        with self._lock:
            answer = self._waiting.get(function, {}).pop(request, None)
        if answer is None or not answer.set_running_or_notify_cancel():  # who waited may give up at this very moment
            return
        if error is None:
            answer.set_result(str(result))
        else:
            answer.set_exception(CallError(f"function {function!r} failed: {error}"))

    def close(self) -> None:
        """Ends: who still waits gets an error."""
        self._closed.set()
        with self._lock:
            left = [answer for waiting in self._waiting.values() for answer in waiting.values()]
            self._waiting = {function: {} for function in self._waiting}
        _fail(left, CallError("the server of calls was stopped; the request stays in the log"))
        for reader in self._readers:
            reader.join(2.0)
        self.log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _fail(answers: Iterable[Future[str]], error: CallError) -> None:
    """Tells all who still wait."""
    for answer in answers:
        if answer.set_running_or_notify_cancel():
            answer.set_exception(error)


def _size(text: str) -> int | None:
    """How many bytes a text has; None where it is none that can be written."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return None


def late(function: str, seconds: float) -> str:
    """What is said of a call that took too long."""
    return f"function {function!r} has not answered in {seconds:g} s; its flow may be stopped, or busy"
