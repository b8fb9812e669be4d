"""A program that speaks the multilang protocol: started without a shell, written to and read from at once.

Writing never waits for a program that itself waits to be read: one loop does whichever of the two the pipes allow.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import select
import signal
import subprocess
import time
import uuid
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from penstock.graph.logic.topology.task_context import TaskContext
from penstock.graph.multilang.codecs import ProtocolError, codec_of
from penstock.graph.multilang.handshake import handshake
from penstock.temporary import LockedDirectory

LOG = logging.getLogger("penstock.shell")
PIPE = 1 << 20
"""Bytes of a pipe, where the system allows it: fewer turns for the same tuples."""
FULL = 4 << 20
"""Bytes that may wait to be written before a task waits with them."""
_GRACE = 2.0
_TAIL = 4000


class ShellFailed(Exception):
    """A program that ended, hung, or said what the protocol does not have."""


@dataclass(frozen=True)
class ShellSpec:
    """How a program is started and watched.

    Attributes:
        command: the program and its arguments.
        env: variables beside those of this process.
        cwd: the directory that it runs in; else that of this process.
        timeout: after how many seconds without a sign of life it counts as hung.
        restarts: how often it is started again in a row.
        backoff: the pause before the first restart, in seconds; it doubles.
        serializer: json or msgpack.
        config: settings that the program gets beside those of the topology.
    """

    command: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    cwd: str = ""
    timeout: float = 30.0
    restarts: int = 3
    backoff: float = 0.1
    serializer: str = "json"
    config: tuple[tuple[str, Any], ...] = field(default=(), compare=False)


class ShellProcess:
    """A running program. `send` queues a message, `turn` writes and reads, `received` holds what was read."""

    def __init__(self, spec: ShellSpec, context: TaskContext) -> None:
        self.spec, self.name = spec, f"{context.component}[{context.task}]"
        self.token = uuid.uuid4().hex
        self.owner = os.getpid()
        self.codec = codec_of(spec.serializer)
        self.received: deque[Any] = deque()
        self.holds = False
        """Whether it was seen to keep tuples open after it had read all of them."""
        self._count = 0
        self._waiting = bytearray()
        self._said = b""
        self._pids = LockedDirectory.make("shell")
        self._process = self._started()
        self.sign = time.monotonic()
        self.send(handshake(context, str(self._pids.path), dict(spec.config)))
        self._shake_hands()

    def _started(self) -> subprocess.Popen[bytes]:
        spec = self.spec
        try:
            made = subprocess.Popen(
                list(spec.command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                cwd=spec.cwd or None, env={**os.environ, **dict(spec.env)}, bufsize=0, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            self._pids.close()
            raise ShellFailed(f"{spec.command[0]!r} cannot be started: {error.strerror or error}") from None
        self._poll = select.poll()
        for stream in (made.stdin, made.stdout, made.stderr):
            assert stream is not None
            os.set_blocking(stream.fileno(), False)
            with contextlib.suppress(OSError):
                fcntl.fcntl(stream.fileno(), fcntl.F_SETPIPE_SZ, PIPE)
        assert made.stdin is not None
        assert made.stdout is not None
        assert made.stderr is not None
        self._in, self._out, self._err = made.stdin.fileno(), made.stdout.fileno(), made.stderr.fileno()
        self._poll.register(self._out, select.POLLIN)
        self._poll.register(self._err, select.POLLIN)
        return made

    def _shake_hands(self) -> None:
        while not self.received:
            self.turn(1.0)
        answer = self.received.popleft()
        if not isinstance(answer, dict) or "pid" not in answer:
            self.stop()
            raise ShellFailed(f"{self.name}: expected {{'pid': number}} as the first message, got {answer!r}")

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it runs, as a child of this process."""
        return self.owner == os.getpid() and self._process.poll() is None

    @property
    def backlog(self) -> int:
        """Bytes that wait to be written."""
        return len(self._waiting)

    def next_id(self) -> str:
        """An id for a tuple, as text."""
        self._count += 1
        return str(self._count)

    def send(self, message: object) -> None:
        """Queues a message; a turn writes it."""
        self._waiting += self.codec.encoded(message)

    def turn(self, wait: float) -> None:
        """Writes what waits and reads what came; waits for either to be possible, at most so many seconds.

        Raises:
            ShellFailed: the program has ended, has given no sign of life for too long, or does not keep to the protocol.
        """
        if self._waiting:
            self._poll.register(self._in, select.POLLOUT)
        ready = self._poll.poll(wait * 1000)
        if self._waiting:
            self._poll.unregister(self._in)
        for number, _ in ready:
            self._write() if number == self._in else self._read(number)
        if ready:
            self.sign = time.monotonic()
        elif time.monotonic() - self.sign > self.spec.timeout:
            self._hung()

    def _hung(self) -> None:
        self.kill()
        raise ShellFailed(f"{self.name} gave no sign of life for {self.spec.timeout:g} s{self._tail()}")

    def _write(self) -> None:
        try:
            del self._waiting[: os.write(self._in, memoryview(self._waiting)[:PIPE])]
        except BlockingIOError:
            return
        except OSError:
            self._waiting.clear()  # it reads no more; that it has ended is seen when its output ends

    def _read(self, number: int) -> None:
        try:
            data = os.read(number, PIPE)
        except BlockingIOError:
            return
        if number == self._err:
            self._note(data)
        elif not data:
            self._ended()
        else:
            self._take(data)

    def _take(self, data: bytes) -> None:
        try:
            self.received.extend(self.codec.feed(data))
        except ProtocolError as error:
            self.kill()
            raise ShellFailed(f"{self.name}: {error}{self._tail()}") from None

    def _note(self, data: bytes) -> None:
        """What it writes to its standard error goes to the log; the end of it explains a crash."""
        if not data:
            self._poll.unregister(self._err)
            return
        self._said = (self._said + data)[-_TAIL:]
        LOG.info("%s: %s", self.name, data.decode(errors="replace").rstrip())

    def _ended(self) -> None:
        code = self._finished(_GRACE)
        self._drain_errors()
        self.kill()
        raise ShellFailed(f"{self.name} ended with exit code {code}{self._tail()}")

    def _finished(self, seconds: float) -> int | None:
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def _drain_errors(self) -> None:
        with contextlib.suppress(OSError):
            self._said = (self._said + os.read(self._err, PIPE))[-_TAIL:]

    def _tail(self) -> str:
        text = self._said.decode(errors="replace").strip()
        return f"; it said:\n{text}" if text else ""

    def stop(self) -> None:
        """Closes its input, upon which it should end; kills it when it does not."""
        if self.owner == os.getpid() and self._process.poll() is None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            self._finished(0.2)
        self.kill()

    def kill(self) -> None:
        """Ends it at once, with all programs that it has started, and lets go of all that it had."""
        if self.owner == os.getpid():
            if self._process.returncode is None:  # else its number may be that of another by now
                with contextlib.suppress(OSError):
                    os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._pids.close()

    def __del__(self) -> None:
        """A task that was given up leaves no process behind."""
        if "_process" in vars(self):
            self.kill()
