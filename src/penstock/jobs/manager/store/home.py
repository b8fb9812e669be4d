"""The home of jobs: a database and a directory that belong together.

Jobs live in the directory, what is wanted of them in the database. With a PostgreSQL each bears the name of the other, so that no manager takes the jobs of one directory for those of
another: two managers share a directory, on one machine or through a file system whose locks hold between machines.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path

from penstock.errors import SetupError
from penstock.jobs.manager.store.database import Connection, Database, SqliteDatabase
from penstock.jobs.manager.store.postgres_database import PostgresDatabase
from penstock.storage import LocalStorage

HOME = "home.json"
SQLITE = "manager.db"
_MOVED = {
    "jobs": ("name", "job"),
    "events": ("time", "job", "what", "detail"),
    "audit": ("id", "time", "actor", "action", "object", "detail", "mac"),
    "audit_head": ("head", "seal"),
    "tokens": ("id", "digest", "owner", "role", "created", "expires", "revoked", "used"),
    "pools": ("name", "cores", "memory", "owner_cores", "owner_memory"),
    "alerts": ("name", "rule"),
    "removals": ("name",),
}
"""What moves from SQLite to PostgreSQL; sessions of browsers do not."""


def check_unbound(root: Path) -> None:
    """Refuses to take a directory for one with a database of its own when its jobs are in a PostgreSQL."""
    known = _known(root)
    if known:
        raise SetupError(f"the jobs in {root} are kept in {known['database']}: give it with --database")


def bind(database: PostgresDatabase, root: Path) -> None:
    """Makes a database and a directory one home; jobs that the directory has in SQLite move. Raises SetupError when one of them has another home.

    The directory says first that it is to have this home, and at last that it has: whoever is killed in between can do it again.
    """
    known = _known(root) or {"id": uuid.uuid4().hex, "is_whole": ""}
    with database.changes() as found:
        row = found.execute("select id from home").fetchone()
        if row is None and not known["is_whole"]:
            _write(root, known["id"], database, "")
            found.execute("insert into home values (?)", (known["id"],))
            _move(root / SQLITE, found)
        elif row is None or row[0] != known["id"]:
            raise SetupError(
                f"{database.address.url} does not have the jobs of {root}; managers that share a database share the directory --data, too"
            )
    if not known["is_whole"]:
        _write(root, known["id"], database, "yes")


def _move(path: Path, into: Connection) -> None:
    """What a manager had in a file before."""
    if not path.exists():
        return
    before: Database = SqliteDatabase(path)
    before.make()
    with before.reads() as found:
        for table, columns in _MOVED.items():
            for row in found.execute(f"select {', '.join(columns)} from {table} order by rowid").fetchall():  # noqa: S608 - names of ours
                _insert(into, table, columns, row)


def _insert(into: Connection, table: str, columns: Sequence[str], row: Sequence[object]) -> None:
    marks = ", ".join("?" for _ in columns)
    into.execute(f"insert into {table} ({', '.join(columns)}) values ({marks})", row)  # noqa: S608 - names of ours


def _known(root: Path) -> dict[str, str]:
    try:
        found: dict[str, str] = json.loads((root / HOME).read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise SetupError(f"{root / HOME} cannot be read ({error}); it says which database has the jobs") from None
    return found


def _write(root: Path, id: str, database: PostgresDatabase, is_whole: str) -> None:
    text = json.dumps({"id": id, "database": database.address.url, "is_whole": is_whole})
    LocalStorage(root).write(HOME, text.encode())
