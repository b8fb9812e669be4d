"""Connections to PostgreSQL: made the same way in the driver and in tasks, with the password kept out of every text."""

from __future__ import annotations

import atexit
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from penstock.connectors.address import ServerAddress
from penstock.errors import RunError
from penstock.graph.endpoints.sniff_postgres import driver

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

_SETTINGS = (
    "set timezone = 'UTC'; set datestyle = 'ISO, YMD'; set bytea_output = 'hex'; set intervalstyle = 'iso_8601'; "
    "set tcp_keepalives_idle = 30; set tcp_keepalives_interval = 10; set tcp_keepalives_count = 3"
)
_KEPT: dict[Address, Connection] = {}
_LOCK = threading.Lock()


class Address(ServerAddress):
    """Where a PostgreSQL is."""

    def connect(self, who: str) -> Connection:
        """A new connection, each statement a transaction of its own."""
        made: Connection = driver().connect(
            self.url,
            password=self.password,
            autocommit=True,
            connect_timeout=10,
            application_name=f"penstock {who}"[:60],
            keepalives_idle=30,
        )
        made.execute(_SETTINGS)
        return made

    def kept(self, who: str) -> Connection:
        """The connection this process keeps to the server, alive: a worker serves many tasks, and each needs one."""
        with _LOCK:
            found = _KEPT.get(self)
            if found is not None and not _alive(found):
                found.close()
                found = None
            if found is None:
                found = _KEPT[self] = self.connect(who)
            return found

    def clean(self, text: object) -> str:
        """A text without the password, should a server or a driver ever put it in one."""
        return str(text).replace(self.password, "***") if self.password else str(text)


@atexit.register
def _close_kept() -> None:
    """Leaves the servers when the process ends; nobody waits for what goes wrong then."""
    for connection in _KEPT.values():
        with suppress(Exception):
            connection.close()


def _alive(connection: Connection) -> bool:
    if connection.closed:
        return False
    try:
        connection.execute("select 1")
    except driver().Error:
        return False
    return True


def row_errors() -> tuple[type[psycopg.Error], ...]:
    """What the server raises for the values of a row: by its types and constraints, a trigger, a view's condition, or its limits for rows and indexes."""
    known, errors = driver(), driver().errors
    return (
        known.DataError,
        known.IntegrityError,
        errors.RaiseException,
        errors.AssertFailure,
        errors.TriggeredActionException,
        errors.WithCheckOptionViolation,
        errors.ProgramLimitExceeded,
    )


class Link:
    """The driver's own connection, opened again when it is lost."""

    def __init__(self, address: Address, who: str, patience: float = 30.0) -> None:
        self.address, self.who, self.patience = address, who, patience
        self._made: Connection | None = None

    @property
    def connection(self) -> Connection:
        """A connection that was alive when last used."""
        if self._made is None or self._made.closed:
            self._made = self.address.connect(self.who)
        return self._made

    @contextmanager
    def talking(self, doing: str) -> Iterator[Connection]:
        """The connection, with the server's errors as Penstock's."""
        try:
            yield self.connection
        except driver().Error as error:
            raise RunError(f"{self.who}: {doing} failed: {self.address.clean(error).strip()}") from None

    def until_answered(self, work: Any) -> Any:
        """Does some work which may be done twice; again, on a new connection, when the connection is lost meanwhile."""
        deadline = time.monotonic() + self.patience
        pause = 0.05
        while True:
            try:
                return work(self.connection)
            except driver().OperationalError as error:
                if not self._lost(error) or time.monotonic() > deadline:
                    raise
                self.close()
                time.sleep(pause)
                pause = min(2 * pause, 2.0)

    def _lost(self, error: psycopg.OperationalError) -> bool:
        """Whether the connection is gone, or was never made, rather than the server refusing the work."""
        return self._made is None or self._made.closed or error.sqlstate in ("57P01", "57P02", "57P03")

    def interrupt(self) -> bool:
        """Ends the connection under whoever waits for an answer; safe to call from another thread."""
        if self._made is None or self._made.closed:
            return False
        with suppress(OSError, driver().Error), socket.socket(fileno=os.dup(self._made.pgconn.socket)) as own:
            own.shutdown(socket.SHUT_RDWR)
        return True

    def close(self) -> None:
        """Lets go of the connection."""
        if self._made is not None:
            with suppress(driver().Error):
                self._made.close()
        self._made = None


def qualified(table: str) -> Any:
    """A table's name as SQL: `shop.orders`, or `orders` by the search path."""
    return driver().sql.Identifier(*table.split(".", 1))
