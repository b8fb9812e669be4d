"""The audit is a chain: whatever is edited, dropped, moved or put back in the database is found, also after the oldest entries went."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.errors import OptionError, SetupError
from penstock.jobs.manager.alerts.center import AlertCenter
from penstock.jobs.manager.alerts.rule import AlertRule
from penstock.jobs.manager.manager import Manager
from penstock.jobs.manager.pools import Pool
from penstock.jobs.manager.store.audit import BEGUN, KEY, STEP, AuditTrail
from penstock.jobs.manager.store.database import _FIRST, SqliteDatabase, statements
from penstock.jobs.manager.store.records import JobRecords

MANY = 6


@pytest.fixture
def records(tmp_path: Path) -> JobRecords:
    made = opened(tmp_path)
    for n in range(MANY):
        made.note(f"who{n}", f"action{n}", f"object{n}", f"detail{n}")
    return made


def opened(home: Path, most: int = 100_000) -> JobRecords:
    """As a manager opens it."""
    database = SqliteDatabase(home / "manager.db")
    database.make()
    made = JobRecords(database, AuditTrail(home, most))
    made.trail.begin(database)
    return made


def change(records: JobRecords, sql: str, *values: object) -> None:
    with records.database.writes() as found:
        assert found.execute(sql, values).rowcount > 0


def test_what_was_written_is_whole_and_its_head_is_the_newest_entry(records: JobRecords) -> None:
    found = records.verify_audit()
    assert (found.is_whole, found.entries, found.cut, found.faults) == (True, MANY, 0, [])
    assert found.head.startswith(f"{MANY}:")
    records.note("who", "more", "object")
    assert records.verify_audit(found.head).is_whole
    assert (records.trail.root / KEY).stat().st_mode & 0o777 == 0o600


EDITS: dict[str, object] = {
    "id": 99,
    "time": 1.5,
    "actor": "mallory",
    "action": "look",
    "object": "other",
    "detail": "nothing",
    "mac": b"\0" * 32,
}


@pytest.mark.parametrize("at", [1, 3, MANY])
@pytest.mark.parametrize("column", EDITS)
def test_a_single_edit_of_any_column_is_found(records: JobRecords, column: str, at: int) -> None:
    change(records, f"update audit set {column} = ? where id = ?", EDITS[column], at)
    found = records.verify_audit()
    assert not found.is_whole
    assert str(at) in found.faults[0]


def test_the_columns_are_those_that_are_edited_here(records: JobRecords) -> None:
    with records.database.reads() as found:
        columns = [row[1] for row in found.execute("pragma table_info(audit)")]
        heads = [row[1] for row in found.execute("pragma table_info(audit_head)")]
    assert (sorted(columns), heads) == (sorted(EDITS), ["head", "seal"])


def test_bits_of_an_entry_and_of_its_code_count(records: JobRecords) -> None:
    with records.database.reads() as found:
        (detail, mac) = found.execute("select detail, mac from audit where id = 2").fetchone()
    for column, content in (("detail", detail.encode()), ("mac", mac)):
        for bit in range(0, len(content) * 8, 7 if column == "detail" else 31):
            flipped = bytearray(content)
            flipped[bit // 8] ^= 1 << bit % 8
            value: object = bytes(flipped)
            if column == "detail":
                with suppress(UnicodeDecodeError):
                    value = bytes(flipped).decode()
            change(records, f"update audit set {column} = ? where id = 2", value)
            assert not records.verify_audit().is_whole, (column, bit)
        change(records, f"update audit set {column} = ? where id = 2", detail if column == "detail" else mac)
    assert records.verify_audit().is_whole


@pytest.mark.parametrize("at", range(1, MANY + 1))
def test_an_entry_that_is_dropped_is_named(records: JobRecords, at: int) -> None:
    change(records, "delete from audit where id = ?", at)
    (fault,) = records.verify_audit().faults
    expected = f"the audit ends with entry {at - 1}, expected entry {at}"
    assert fault == (expected if at == MANY else f"entries {at} to {at} are gone")


def test_entries_that_changed_places_are_found(records: JobRecords) -> None:
    for before, after in ((2, 100), (3, 2), (100, 3)):
        change(records, "update audit set id = ? where id = ?", after, before)
    assert [f.split()[1] for f in records.verify_audit().faults] == ["2", "3", "4"]


def test_an_entry_that_nobody_signed_is_found(records: JobRecords) -> None:
    values = (MANY + 1, 1.0, "mallory", "look", "x", "", b"\1" * 32)
    change(
        records,
        "insert into audit (id, time, actor, action, object, detail, mac) values (?, ?, ?, ?, ?, ?, ?)",
        *values,
    )
    assert len(records.verify_audit().faults) == 2


def test_a_head_that_is_changed_gone_or_older_is_found_and_the_audit_goes_on(records: JobRecords) -> None:
    with records.database.reads() as found:
        head, seal = found.execute("select head, seal from audit_head").fetchone()
    records.note("ada", "pool", "a")
    for spoil in (
        ("update audit_head set head = replace(head, ?, '3')", str(MANY)),
        ("update audit_head set seal = ?", b"\0" * 32),
        ("delete from audit_head where 1 = ?", 1),
        ("update audit_head set head = ?", head),
    ):
        with records.database.writes() as kept:
            before = kept.execute("select head, seal from audit_head").fetchone()
        change(records, *spoil)
        assert not records.verify_audit().is_whole, spoil
        change(records, "delete from audit_head where ? = 1", 1) if "delete" not in spoil[0] else None
        change(records, "insert into audit_head values (?, ?)", *before)
        assert records.verify_audit().is_whole
    change(records, "update audit_head set head = ?", head)
    change(records, "update audit_head set seal = ?", seal)
    records.note("ada", "pool", "b")
    assert [entry.object for entry in records.audit(2)] == ["b", "a"], "a change is never refused for it"
    (fault,) = records.verify_audit().faults
    assert fault.startswith(f"the audit ended with entry {MANY + 1}, expected entry {MANY}; found at ")
    records.note("ada", "pool", "c")
    assert records.verify_audit().faults == [fault], "it stays"


def test_an_audit_that_is_emptied_with_its_head_is_found(records: JobRecords) -> None:
    change(records, "delete from audit")
    change(records, "delete from audit_head")
    assert records.verify_audit().faults == ["the head of the audit is gone"]
    records.note("mallory", "pool", "a")
    assert "the head of the audit is gone" in records.verify_audit().faults[0]


def test_an_older_audit_that_is_put_back_whole_is_found_by_the_head_that_was_noted(records: JobRecords) -> None:
    with records.database.reads() as found:
        before = found.execute("select head, seal from audit_head").fetchone()
    records.note("mallory", "pool", "a")
    noted = records.verify_audit().head
    change(records, "delete from audit where id > ?", MANY)
    change(records, "update audit_head set head = ?, seal = ?", *before)
    assert records.verify_audit().is_whole, "the database alone cannot tell"
    assert records.verify_audit(noted).faults == [
        f"entry {MANY + 1} is not the one that was noted: an older audit was put back"
    ]


def test_the_oldest_entries_go_and_the_rest_is_still_verified(tmp_path: Path) -> None:
    records = opened(tmp_path, 50)
    for n in range(STEP + 50):
        records.note("ada", "pool", str(n))
    noted = records.verify_audit()
    assert (noted.is_whole, noted.entries, noted.cut) == (True, 50, STEP)
    change(records, "update audit set actor = 'mallory' where id = ?", STEP + 1)
    assert records.verify_audit().faults == [f"entry {STEP + 1} was changed, or is not where it was"]
    with pytest.raises(OptionError, match=f"entry 5 is too old to be kept: .* after entry {STEP}"):
        records.verify_audit(f"5:{'0' * 64}")


def test_what_was_changed_before_it_was_cut_stays_told(tmp_path: Path) -> None:
    records = opened(tmp_path, 50)
    for n in range(10):
        records.note("ada", "pool", str(n))
    change(records, "update audit set actor = 'mallory' where id = 4")
    for n in range(STEP + 40):
        records.note("ada", "pool", str(n))
    assert records.verify_audit().faults == ["entry 4 was changed, or is not where it was; found when it was cut"]


def test_entries_of_an_older_version_are_taken_in_once_and_never_after(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "manager.db")
    insert = "insert into audit (time, actor, action, object, detail) values (1.0, ?, 'pool', 'x', '')"
    with database.writes() as found:
        for statement in statements([_FIRST]):
            found.execute(statement)
        found.execute(insert, ("ada",))
        found.execute("pragma user_version = 1")
    with Manager(tmp_path).opened() as manager:
        assert manager.records.verify_audit().entries == 1
        assert manager.records.verify_audit().is_whole
        manager.records.note("ada", "pool", "y")
    with database.writes() as found:
        found.execute(insert, ("mallory",))
    with Manager(tmp_path).opened() as manager:
        assert len(manager.records.verify_audit().faults) == 2


def test_a_manager_that_was_killed_while_it_took_them_in_does_it_again(records: JobRecords) -> None:
    (records.trail.root / BEGUN).unlink()
    assert opened(records.trail.root).verify_audit().is_whole


def test_another_key_verifies_nothing_and_a_damaged_one_is_told(records: JobRecords) -> None:
    home = records.trail.root
    (home / KEY).write_text("ab" * 32)
    other = replace(records, trail=AuditTrail(home))
    assert other.verify_audit().faults[0] == "the head of the audit was changed, or is not of this home"
    assert len(other.verify_audit().faults) == 1 + MANY
    (home / KEY).write_text("ab")
    with pytest.raises(SetupError, match=r"audit\.key is damaged: expected 64"):
        replace(records, trail=AuditTrail(home)).verify_audit()


@pytest.mark.parametrize("noted", ["x", "6", "6:ab", f"6:{'0' * 65}", f"-1:{'0' * 64}", f"6:{'g' * 64}"])
def test_what_is_no_head_is_refused(records: JobRecords, noted: str) -> None:
    with pytest.raises(OptionError, match="expected a head as"):
        records.verify_audit(noted)


def test_a_head_is_plain_json(records: JobRecords) -> None:
    with records.database.reads() as found:
        (text,) = found.execute("select head from audit_head").fetchone()
    assert json.loads(text)["kept"] == MANY


def test_a_change_that_cannot_stand_in_the_audit_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Manager(tmp_path / "data").opened() as manager:
        alerts = AlertCenter(manager)
        alerts.put(AlertRule("kept", "lag", 5.0), "ada")
        _, token = manager.tokens.make("bob", "viewer", actor="ada")
        before = [alerts.rules(), manager.tokens.all(), manager.records.pools()]
        changes: list[Callable[[], object]] = [
            lambda: alerts.put(AlertRule("new", "lag", 5.0), "ada"),
            lambda: alerts.silence("kept", 60.0, "ada"),
            lambda: alerts.remove("kept", "ada"),
            lambda: manager.tokens.make("eve", "admin", actor="ada"),
            lambda: manager.tokens.revoke(token.id, "ada"),
            lambda: manager.records.put_pool(Pool("new", 1), "ada"),
        ]
        with monkeypatch.context() as patched:
            patched.setattr(AuditTrail, "note", _full)
            for each in changes:
                with pytest.raises(SetupError, match="disk is full"):
                    each()
        assert [alerts.rules(), manager.tokens.all(), manager.records.pools()] == before
        for each in changes:
            each()
        assert len(manager.records.audit()) == 2 + len(changes)


def _full(*args: object) -> None:
    raise SetupError("the disk is full")
