"""A driver killed around its commits in PostgreSQL: nothing lost, nothing doubled, no batch seen in part."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from tests.postgres.killed import Killed, watching, whole

if TYPE_CHECKING:
    from tests.postgres.conftest import Database

WINDOWS = (
    "offsets written@0",
    "staged@0",
    "state staged@1",
    "manifest published@1",
    "before sink commit@2",
    "after sink commit@2",
    "sink written@3",
    "sinks written@3",
    "commit logged@3",
)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(900)
def test_killed_at_named_places(url: str, db: Database, tmp_path: Path) -> None:
    """What `penstock verify postgres` tries in every run of the tests, over files; and nothing is left aside."""
    db.execute("create table rows (id bigint, word text)")
    killed = Killed(tmp_path, url, 'servers.write_postgres(url, "rows")')
    with psycopg.connect(url, autocommit=True) as reader:

        def count() -> int:
            found = reader.execute("select count(*) from rows").fetchone()
            return int(found[0]) if found else 0

        with watching(count) as seen:
            for window in WINDOWS:
                assert killed.run(window) == -signal.SIGKILL, window
            assert killed.run() == 0
    assert [r[0] for r in db.execute("select id from rows order by id")] == killed.expected
    whole(seen)
    assert db.execute("select count(*) from pg_class where relname like 'stage%' and relkind = 'r'").fetchone() == (0,)
