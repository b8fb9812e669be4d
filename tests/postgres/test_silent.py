"""A server that does not answer: what waits for it can be broken off, and the next connection is a new one."""

from __future__ import annotations

import threading
import time

import psycopg
import pytest

from penstock.connectors.postgres.wire import Address, Link
from penstock.graph.endpoints.servers import write_postgres


def test_a_statement_without_an_answer_is_broken_off(url: str) -> None:
    link = Link(Address.of(dict(write_postgres(url, "t").options)), "sink 'out'", patience=0.0)
    assert not link.interrupt(), "there is no connection yet"
    threading.Timer(0.5, link.interrupt).start()
    began = time.monotonic()
    with pytest.raises(psycopg.OperationalError):
        link.until_answered(lambda connection: connection.execute("select pg_sleep(60)"))
    assert time.monotonic() - began < 10
    link.close()
    assert link.until_answered(lambda connection: connection.execute("select 7").fetchone()) == (7,)
    link.close()
