"""A driver that is paused, replaced and woken neither loses nor doubles a row in PostgreSQL. No JVM."""

from __future__ import annotations

from typing import Any

import pytest

from tests.connectors.takeover import check_takeover


@pytest.mark.parametrize("point", ["staged@2", "before sink commit@2", "after sink commit@2", "sink written@2"])
def test_a_driver_that_was_replaced_writes_nothing(url: str, db: Any, point: str) -> None:
    db.execute("create table out (id bigint)")
    cut = 7 if point == "staged@2" else 10
    check_takeover("postgres", url, point, cut, lambda: [row[0] for row in db.execute("select id from out").fetchall()])
