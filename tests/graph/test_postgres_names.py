"""Names that PostgreSQL cannot hold as they are: refused where the flow is built, not by an error of the server or its client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import penstock as ps
from penstock.errors import FlowError

URL = "postgresql://localhost/shop"
PLACES: dict[str, Callable[[str], Any]] = {
    "table written": lambda name: ps.write_postgres(URL, name),
    "schema written": lambda name: ps.write_postgres(URL, f"{name}.rows"),
    "key written": lambda name: ps.write_postgres(URL, "rows", key=name),
    "workspace": lambda name: ps.write_postgres(URL, "rows", workspace=name),
    "table read": lambda name: ps.postgres(URL, name, by="id", schema="id bigint"),
    "column read": lambda name: ps.postgres(URL, "rows", by=name, schema="id bigint"),
    "publication": lambda name: ps.postgres_changes(URL, "rows", slot="s", publication=name, schema="id bigint"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a%b", "has a % in it"),
        ("x" * 64, "has 64 bytes, and PostgreSQL cuts names after 63"),
        ("ü" * 32, "has 64 bytes"),
        ("a\0b", "has a NUL in it"),
        ("a\ud800", "half of a character"),
    ],
)
def test_a_name_that_cannot_be_is_refused_with_what_is_wrong(place: str, name: str, said: str) -> None:
    with pytest.raises(FlowError, match=said):
        PLACES[place](name)


@pytest.mark.parametrize("place", [each for each in PLACES if each != "column read"])
def test_the_longest_names_are_taken(place: str) -> None:
    assert PLACES[place]("ü" * 31 + "x").kind


def test_a_slot_leaves_room_for_the_publication_that_is_named_after_it() -> None:
    made = ps.postgres_changes(URL, "rows", slot="s" * 54, schema="id bigint")
    assert made.options["slot"] == "s" * 54
    with pytest.raises(FlowError, match="has 64 bytes"):
        ps.postgres_changes(URL, "rows", slot="s" * 55, schema="id bigint")
    ps.postgres_changes(URL, "rows", slot="s" * 63, publication="own", schema="id bigint")
    with pytest.raises(FlowError, match="lower-case letters"):
        ps.postgres_changes(URL, "rows", slot="ü", schema="id bigint")


def test_a_table_needs_a_name() -> None:
    with pytest.raises(FlowError, match="the name of a table"):
        ps.write_postgres(URL, "")
