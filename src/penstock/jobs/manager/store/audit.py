"""The audit: who changed what, as a chain of entries that nobody can edit, drop or reorder unseen without the key of the server's home.

Each entry carries a code (HMAC-SHA256) of itself and of the code before; a head, sealed with the same key, says where the chain begins and ends. The oldest entries go when
there are too many: the head then says where they ended, how many they were, and whether they were whole. The key is a file of the directory of the jobs, not of the database.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from penstock.errors import OptionError, SetupError
from penstock.jobs.manager.store.database import Connection, Database
from penstock.storage import LocalStorage

KEY, BEGUN = "audit.key", "audit.begun"
"""The files of the home: the key, and that the chain has begun; entries without codes are taken in before, never after."""
MOST = 100_000
"""How many entries are kept."""
STEP = 1_000
"""How many go at a time."""
MOST_FAULTS = 20
_ROWS = "select id, time, actor, action, object, detail, mac from audit order by id"
_INSERT = "insert into audit (id, time, actor, action, object, detail, mac) values (?, ?, ?, ?, ?, ?, ?)"
_NOTED = re.compile(r"(\d{1,18}):([0-9a-f]{64})")


@dataclass(frozen=True)
class AuditEntry:
    """A change that somebody made."""

    time: float
    actor: str
    action: str
    object: str
    detail: str = ""


@dataclass(frozen=True)
class AuditHead:
    """Where the chain begins, after what was cut, and where it ends."""

    cut_id: int = 0
    cut_mac: str = ""
    cut_time: float = 0.0
    cut: int = 0
    """How many entries were cut."""
    last_id: int = 0
    last_mac: str = ""
    kept: int = 0
    fault: str = ""
    """What was found wrong first, when an entry was added or cut: it stays."""

    @property
    def name(self) -> str:
        """The newest entry and its code, for whoever wants to keep them elsewhere."""
        return f"{self.last_id}:{self.last_mac}" if self.last_id else ""


@dataclass(frozen=True)
class AuditVerification:
    """Whether the audit is what was written."""

    is_whole: bool
    entries: int
    cut: int
    """How many entries are too old to be kept."""
    head: str
    """The newest entry and its code; noted elsewhere, it also shows that nobody put back an older audit."""
    faults: list[str]


@dataclass(frozen=True)
class AuditTrail:
    """The audit of a home of jobs. Entries are added one at a time, whoever of two managers does it: changes wait for one another."""

    root: Path
    most: int = MOST

    @cached_property
    def _key(self) -> bytes:
        """The key, which the first one who needs it makes."""
        home = LocalStorage(self.root)
        home.put_if_absent(KEY, secrets.token_hex(32).encode())
        try:
            key = bytes.fromhex(home.read(KEY).decode())
        except ValueError:
            key = b""
        if len(key) != 32:
            raise SetupError(f"{self.root / KEY} is damaged: expected 64 hexadecimal digits; put back a copy of it")
        return key

    def begin(self, database: Database) -> None:
        """Takes the entries of a version that had no codes into the chain, once."""
        if (self.root / BEGUN).exists():
            return
        with database.writes() as found:
            head = AuditHead()
            for row in found.execute(_ROWS).fetchall():
                mac = self._mac(row[:6], head.last_mac)
                found.execute("update audit set mac = ? where id = ?", (bytes.fromhex(mac), row[0]))
                head = replace(head, last_id=row[0], last_mac=mac, kept=head.kept + 1)
            self._put(found, head)
        LocalStorage(self.root).put_if_absent(BEGUN, b"")

    def note(self, found: Connection, entry: AuditEntry) -> None:
        """Adds an entry, within the transaction of the change that it is about."""
        head = self._checked_head(found)
        values = (head.last_id + 1, entry.time, entry.actor, entry.action, entry.object, entry.detail)
        mac = self._mac(values, head.last_mac)
        found.execute(_INSERT, (*values, bytes.fromhex(mac)))
        head = replace(head, last_id=values[0], last_mac=mac, kept=head.kept + 1)
        self._put(found, self._cut(found, head) if head.kept >= self.most + STEP else head)

    def verify(self, database: Database, noted: str = "") -> AuditVerification:
        """Looks at every entry.

        Args:
            database: Where the audit is.
            noted: A head that an earlier look returned and that was kept elsewhere.

        Returns:
            What was found.

        Raises:
            OptionError: `noted` is no head, or older than what is kept.
        """
        with database.reads() as found:
            head, fault = self._head(found)
            rows = found.execute(_ROWS).fetchall()
        faults = [each for each in (fault, head.fault) if each]
        faults += self._faults(rows, head.cut_id, head.cut_mac)
        if not fault and _newest(rows, head) != (head.last_id, head.last_mac):
            faults.append(f"the audit ends with entry {_newest(rows, head)[0]}, expected entry {head.last_id}")
        faults += _not_as_noted(noted, rows, head) if noted else []
        return AuditVerification(not faults, len(rows), head.cut, head.name, faults[:MOST_FAULTS])

    def _head(self, found: Connection) -> tuple[AuditHead, str]:
        """The head, and what is wrong with it; where it is lost, one without an end."""
        rows = found.execute("select head, seal from audit_head").fetchall()
        if len(rows) == 1 and rows[0][1] == self._seal(rows[0][0]):
            return AuditHead(**json.loads(rows[0][0])), ""
        return AuditHead(), "the head of the audit was changed, or is not of this home" if rows else self._missing()

    def _missing(self) -> str:
        return "the head of the audit is gone" if (self.root / BEGUN).exists() else ""

    def _checked_head(self, found: Connection) -> AuditHead:
        """The head that the next entry follows. What does not fit is noted in it for ever, and the audit goes on."""
        head, fault = self._head(found)
        rows = found.execute(_ROWS + " desc limit 1").fetchall()
        newest = _newest(rows, head)
        if newest == (head.last_id, head.last_mac) and not fault:
            return head
        (many,) = found.execute("select count(*) from audit").fetchone()
        why = fault or f"the audit ended with entry {newest[0]}, expected entry {head.last_id}"
        noted = (
            f"{why}; found at {time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime())} UTC"
            if why and many + head.last_id
            else fault
        )
        return replace(head, last_id=newest[0], last_mac=newest[1], kept=many, fault=head.fault or noted)

    def _cut(self, found: Connection, head: AuditHead) -> AuditHead:
        """Lets the oldest entries go, and says in the head where they ended; those that are not whole are named there."""
        rows = found.execute(_ROWS + " limit ?", (STEP,)).fetchall()
        fault = next(self._faults(rows, head.cut_id, head.cut_mac), "")
        last = rows[-1]
        found.execute("delete from audit where id <= ?", (last[0],))
        return replace(
            head,
            cut_id=last[0],
            cut_mac=_hex(last[6]),
            cut_time=_number(last[1]),
            cut=head.cut + len(rows),
            kept=head.kept - len(rows),
            fault=head.fault or (fault and f"{fault}; found when it was cut"),
        )

    def _put(self, found: Connection, head: AuditHead) -> None:
        text = json.dumps(asdict(head))
        found.execute("delete from audit_head")
        found.execute("insert into audit_head (head, seal) values (?, ?)", (text, self._seal(text)))

    def _faults(self, rows: Iterable[Sequence[Any]], before: int, mac: str) -> Iterator[str]:
        """What is wrong with entries that follow the one of this number and code."""
        for row in rows:
            if _hex(row[6]) != self._mac(row[:6], mac):
                is_gap = row[0] != before + 1
                yield (
                    f"entries {before + 1} to {row[0] - 1} are gone"
                    if is_gap
                    else f"entry {row[0]} was changed, or is not where it was"
                )
            before, mac = row[0], _hex(row[6])

    def _mac(self, values: Sequence[object], before: str) -> str:
        return self._code("entry", [*values, before]).hex()

    def _seal(self, head: object) -> bytes:
        return self._code("head", [head])

    def _code(self, what: str, values: Sequence[object]) -> bytes:
        text = json.dumps([what, *values], default=repr)
        return hmac.new(self._key, text.encode(), hashlib.sha256).digest()


def _newest(rows: Sequence[Sequence[Any]], head: AuditHead) -> tuple[int, str]:
    """The last of some entries and its code; where there are none, the end of what was cut."""
    return (rows[-1][0], _hex(rows[-1][6])) if rows else (head.cut_id, head.cut_mac)


def _not_as_noted(noted: str, rows: Sequence[Sequence[Any]], head: AuditHead) -> list[str]:
    given = _NOTED.fullmatch(noted)
    if given is None:
        raise OptionError(f"expected a head as `penstock audit verify` prints it, NUMBER:CODE, got {noted!r}")
    number, macs = int(given[1]), {row[0]: _hex(row[6]) for row in rows} | {head.cut_id: head.cut_mac}
    if number < head.cut_id:
        raise OptionError(
            f"entry {number} is too old to be kept: expected the head of a look after entry {head.cut_id}"
        )
    return (
        []
        if macs.get(number) == given[2]
        else [f"entry {number} is not the one that was noted: an older audit was put back"]
    )


def _hex(mac: object) -> str:
    """A code as text; empty for what is none."""
    return mac.hex() if isinstance(mac, bytes) else ""


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
