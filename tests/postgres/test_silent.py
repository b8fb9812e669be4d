"""A server that does not answer: what waits for it can be broken off, and the next connection is a new one."""

from __future__ import annotations

import threading
import time

import psycopg
import pytest

from penstock.connectors.postgres.wire import Address, Link
from penstock.graph.endpoints.servers import write_postgres
from tests.waiting import wait_until


def break_off(url: str, link: Link) -> None:
    """Breaks a statement off once the server is at it."""
    at_it = "select from pg_stat_activity where query = 'select pg_sleep(60)' and state = 'active'"
    with psycopg.connect(url, autocommit=True) as watch:
        wait_until(lambda: watch.execute(at_it).fetchone() is not None)
    link.interrupt()


def test_a_statement_without_an_answer_is_broken_off(url: str) -> None:
    link = Link(Address.of(dict(write_postgres(url, "t").options)), "sink 'out'", patience=0.0)
    assert not link.interrupt(), "there is no connection yet"
    breaker = threading.Thread(target=break_off, args=(url, link))
    breaker.start()
    began = time.monotonic()
    with pytest.raises(psycopg.OperationalError):
        link.until_answered(lambda connection: connection.execute("select pg_sleep(60)"))
    assert time.monotonic() - began < 50
    breaker.join()
    link.close()
    assert link.until_answered(lambda connection: connection.execute("select 7").fetchone()) == (7,)
    link.close()
