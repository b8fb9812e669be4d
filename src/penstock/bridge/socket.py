"""The socket bridge: each line that comes over TCP is a record, acknowledged with a line when it is on disk."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from penstock.bridge.guard import Guard
from penstock.bridge.intake import Closing
from penstock.bridge.limits import Limits
from penstock.bridge.records import BadInput, Keys, Submission
from penstock.bridge.server import Reader, Server, Writer, complain
from penstock.log import Log

_GREETING = 4 << 10
"""The longest first line where a token must be in it: nobody is listened to for longer before."""


class Lines:
    r"""Cuts what comes into lines. `seconds` is how long the one at hand has been waited for, `size` how much of it is here, and `held` how
    much of it the bridge has counted.

    >>> lines = Lines(most=10)
    >>> lines.add(b"a\r\nb"), lines.add(b"c\n"), lines.size
    ([b'a'], [b'bc'], 0)
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._rest = bytearray()
        self.seconds = 0.0
        self.held = 0
        self.too_long = False

    @property
    def size(self) -> int:
        """How many bytes of a line are here that has not ended."""
        return len(self._rest)

    def add(self, data: bytes) -> list[bytes]:
        """The lines that are complete now; none after one that is too long. Costs what is added, however long the line is already."""
        begun = bool(self._rest)
        *whole, rest = data.split(b"\n")
        if whole:
            whole[0] = bytes(self._rest) + whole[0]
            self._rest = bytearray()
        self._rest += rest
        if whole or not begun:
            self.seconds = 0.0
        return self._checked(whole)

    def _checked(self, whole: list[bytes]) -> list[bytes]:
        found: list[bytes] = []
        for line in whole:
            if len(line) > self.most:
                self.too_long = True
                return found
            found.append(line.removesuffix(b"\r"))
        self.too_long = self.size > self.most
        return found


def _too_long_to_greet(lines: Lines) -> str:
    return f"the first line must be: auth TOKEN, and has at most {_GREETING} bytes" if lines.size > _GREETING else ""


class SocketBridge(Server):
    """Takes lines over TCP; `acks` off is for programs that only send."""

    stream_limit = 4 << 10

    def __init__(
        self,
        log: Log,
        topic: str,
        *,
        keys: Keys | None = None,
        guard: Guard | None = None,
        acks: bool = True,
        limits: Limits | None = None,
    ) -> None:
        super().__init__(log, topic, limits)
        self.keys, self.guard, self.acks = keys or Keys(), guard or Guard(), acks
        self.refused = 0
        self._unfinished = 0

    def refusal(self) -> bytes:
        """The answer to a connection too many."""
        return b"error too many connections; try again\n" if self.acks else b""

    async def talk(self, reader: Reader, writer: Writer) -> None:
        """Store lines as they come. What cannot be stored yet is not read, so the sender has to wait."""
        lines = Lines(self.limits.body)
        try:
            await self._talk(reader, writer, lines)
        finally:
            self._hold(-lines.held)

    async def _talk(self, reader: Reader, writer: Writer, lines: Lines) -> None:
        greeted = not self.guard.asks
        while not self.stopping:
            await self.intake.room.free()
            data = await self._data(reader, writer, lines)
            if not data:
                break
            found = lines.add(data)
            if not greeted and found:
                await self._greet(found.pop(0), writer)
                greeted = True
            if greeted and found and not await self._store(found, writer):
                return
            if problem := self._problem(lines) if greeted else _too_long_to_greet(lines):
                await self._refuse(writer, problem)
                return
        if lines.size:
            await self._refuse(writer, "the last line had no end and was not stored")

    def _problem(self, lines: Lines) -> str:
        """Why a line that has not ended is not waited for any longer; empty when it is."""
        if lines.too_long:
            return f"a line has at most {lines.most} bytes"
        self._hold(lines.size - lines.held)
        lines.held = lines.size
        if lines.size and self._unfinished > self.limits.held // 2:
            return "too many lines have begun and not ended; send this one again"
        return ""

    def _hold(self, size: int) -> None:
        """Counts bytes of lines that have not ended; those of all connections together are bounded."""
        self._unfinished += size
        self.intake.room.take(0, size) if size >= 0 else self.intake.room.give(0, -size)

    async def _data(self, reader: Reader, writer: Writer, lines: Lines) -> bytes:
        """What comes next; a line that has begun must end soon."""
        piece = self.bound(writer)
        if not lines.size:
            return await self.more(reader, writer, piece)
        began = time.monotonic()
        async with asyncio.timeout(max(self.limits.body_seconds(lines.size) - lines.seconds, 0.0)):
            data = await reader.read(piece)
        lines.seconds += time.monotonic() - began
        return data

    async def _greet(self, line: bytes, writer: Writer) -> None:
        word, _, token = line.partition(b" ")
        if word != b"auth" or not self.guard.knows(token.decode(errors="replace").strip()):
            await self._refuse(writer, "the first line must be: auth TOKEN")
            raise ConnectionError
        if self.acks:
            await self.send(writer, b"ok\n")

    async def _store(self, lines: list[bytes], writer: Writer) -> bool:
        """Store lines, then acknowledge each; False when the log cannot take them, which ends the connection."""
        answers: dict[int, str] = {}
        rows, keys, values = list[int](), list[bytes | None](), list[bytes]()
        for number, line in enumerate(lines):
            try:
                key, value = self.keys.pair(line)
            except BadInput as error:
                answers[number] = f"error {error}"
                continue
            rows.append(number)
            keys.append(key)
            values.append(value)
        went = not rows or await self._put(Submission(values, keys if self.keys.wanted else None), rows, answers)
        self.refused += sum(text.startswith("error") for text in answers.values())
        if self.acks:
            said = "".join(f"{' '.join(answers[n].split())}\n" for n in range(len(lines)) if n in answers)
            await self.send(writer, said.encode(errors="replace"))
        return went

    async def _put(self, given: Submission, rows: list[int], answers: dict[int, str]) -> bool:
        try:
            for stored in await self.intake.put(given):
                for at, row in enumerate(stored.rows):
                    answers[rows[row]] = f"ok {stored.partition} {stored.offset + at}"
        except (Closing, BadInput) as error:
            text = str(error) or "the bridge is stopping"
        except Exception as error:
            complain(f"{self.topic} cannot be written: {error}")
            text = "the log cannot be written now"
        else:
            return True
        answers.update(dict.fromkeys(rows, f"error {text}"))
        return False

    async def _refuse(self, writer: Writer, text: str) -> None:
        self.refused += 1
        with suppress(OSError, TimeoutError):
            await self.send(writer, f"error {text}\n".encode() if self.acks else b"")
