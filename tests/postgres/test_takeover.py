"""A driver that is paused, replaced and woken neither loses nor doubles a row in PostgreSQL. No JVM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.connectors.takeover import check_refusing, check_takeover


@pytest.mark.parametrize("point", ["staged@2", "before sink commit@2", "after sink commit@2", "sink written@2"])
def test_a_driver_that_was_replaced_writes_nothing(url: str, db: Any, point: str) -> None:
    db.execute("create table out (id bigint)")
    cut = 7 if point == "staged@2" else 10
    check_takeover("postgres", url, point, cut, lambda: [row[0] for row in db.execute("select id from out").fetchall()])


@pytest.mark.parametrize("point", ["staged@2", "after sink commit@2", "sink written@2", "dead letters written@2"])
def test_refused_rows_are_dead_letters_once_whoever_takes_over(url: str, db: Any, tmp_path: Path, point: str) -> None:
    db.execute("create table out (id bigint not null unique, n bigint)")
    check_refusing(
        "postgres", url, tmp_path, point, lambda: [row[0] for row in db.execute("select id from out").fetchall()]
    )
