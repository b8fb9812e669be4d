"""Which of the managers of a database leads: the one that renews a lease in it. Each lead has a number, its epoch, which grows.

A manager may be stopped at any moment and go on when another one leads. It cannot know that in time, so nothing relies on it: files that it writes carry its epoch, and the
highest one counts; supervisors that it starts look for a higher epoch, and end; changes of the database are refused that carry an older one.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from penstock.errors import PenstockError
from penstock.jobs.manager.store.database import Database
from penstock.storage.private import FILE
from penstock.storage.swap import sync_directory

log = logging.getLogger("penstock")
HOLDS, RENEWED = 6.0, 1.5
"""For how many seconds a lease holds, and how often it is renewed or looked for."""
_EPOCH = "epoch-"


def clock() -> float:
    """Seconds that also pass while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def highest_epoch(root: Path) -> int:
    """The epoch of the last manager that began to lead."""
    return max(_declared(root), default=0)


def declare_epoch(root: Path, epoch: int) -> None:
    """Says in the directory of jobs that a manager leads, before it does anything; supervisors of managers before it do not start any more."""
    os.close(os.open(root / f"{_EPOCH}{epoch}", os.O_CREAT | os.O_WRONLY, FILE))
    sync_directory(root)
    for older in _declared(root):
        if older < epoch:
            (root / f"{_EPOCH}{older}").unlink(missing_ok=True)


def _declared(root: Path) -> list[int]:
    names = [entry.name.removeprefix(_EPOCH) for entry in root.iterdir() if entry.name.startswith(_EPOCH)]
    return [int(name) for name in names if name.isdecimal()]


def _name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


@dataclass
class Lease:
    """The lease of one manager. `listeners` are called when it begins to lead."""

    database: Database
    root: Path
    holder: str = field(default_factory=_name)
    epoch: int = 0
    listeners: list[Callable[[], None]] = field(default_factory=list)
    _until: float = 0.0
    _ending: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    @property
    def is_held(self) -> bool:
        """Whether this manager leads, as far as it can know."""
        return self.epoch > 0 and clock() < self._until

    def seize(self) -> None:
        """Begins to lead for good, where nobody else can: the directory is this process's."""
        self._begin(self._take("1 = 1"), float("inf"))

    def look(self) -> None:
        """Renews the lease, or takes one that nobody renews; raises SetupError when the database cannot be asked."""
        until = clock() + HOLDS
        if self.epoch and self._renew():
            self._until = until
            return
        self.lose()
        epoch = self._take(f"until < {self.database.now}")
        if epoch:
            self._begin(epoch, until)

    def lose(self, epoch: int | None = None) -> None:
        """Leads no more, as far as this manager is concerned; not if it was refused under an epoch of before, and leads under another one since."""
        if epoch is not None and epoch != self.epoch:
            return
        if self.epoch:
            log.warning("another manager of jobs leads")
        self.epoch, self._until = 0, 0.0

    def _renew(self) -> bool:
        with self.database.alone() as found:
            sql = f"update lead set until = {self.database.now} + ? where epoch = ? and holder = ?"  # noqa: S608 - words of ours
            return found.execute(sql, (HOLDS, self.epoch, self.holder)).rowcount == 1

    def _take(self, condition: str) -> int:
        """The new epoch, higher than any that the directory has seen; 0 if another manager has the lease."""
        with self.database.alone() as found:
            seen = highest_epoch(self.root)
            row = found.execute(
                f"update lead set epoch = (case when epoch < ? then ? else epoch end) + 1, holder = ?, until = {self.database.now} + ? "  # noqa: S608 - words of ours
                f"where {condition} returning epoch",
                (seen, seen, self.holder, HOLDS),
            ).fetchone()
        return 0 if row is None else int(row[0])

    def _begin(self, epoch: int, until: float) -> None:
        declare_epoch(self.root, epoch)
        self.epoch, self._until = epoch, until
        for listener in self.listeners:
            listener()

    def start(self) -> None:
        """Looks after the lease in a thread, from now on."""
        self._look()
        self._thread = threading.Thread(target=self._run, name="penstock-lease", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ending.wait(RENEWED):
            self._look()

    def _look(self) -> None:
        try:
            self.look()
        except (PenstockError, OSError) as error:
            log.warning("the lease of the manager of jobs is not renewed: %s", error)
        except Exception:  # whatever it is, the next look must come
            log.exception("the lease of the manager of jobs is not renewed")

    def release(self) -> None:
        """Gives the lease up, so that another manager need not wait for its end."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
        epoch, self.epoch, self._until = self.epoch, 0, 0.0
        if not epoch:
            return
        try:
            with self.database.alone() as found:
                found.execute("update lead set until = 0 where epoch = ? and holder = ?", (epoch, self.holder))
        except (PenstockError, OSError) as error:
            log.warning("the lease of the manager of jobs is not given up: %s", error)
