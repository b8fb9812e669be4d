"""Checkpoints, logs and the cache are for their user alone: by their modes, and as another user finds it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli.sql.shell import _made_private
from penstock.graph.schema import schema_of
from penstock.jobs.manager.bundle import pack
from penstock.jobs.manager.job import Job
from penstock.jobs.manager.manager import Manager
from penstock.jobs.manager.processes.course import Course
from penstock.jobs.manager.processes.directory import SUPERVISOR
from penstock.kernels.errors.dead_letters import dead_letter_rows
from penstock.kernels.errors.guard import DeadLetter
from penstock.kernels.errors.payload import payload_of
from penstock.live.dead_letters.store import DeadLetterStore
from penstock.log import Log
from penstock.server.serve import _admin_token
from penstock.spark.checkpoint.changes import FlowLayout
from penstock.spark.checkpoint.directory import Checkpoint
from penstock.spark.checkpoint.restart import Restart
from penstock.spark.checkpoint.savepoint import directory_of, take
from penstock.spark.jvm import gateway
from penstock.spark.jvm.hardening import LOCAL_SECURITY
from penstock.spark.jvm.session import _settings
from penstock.storage.private import make_private
from tests.command_line import make_app
from tests.spark.checkpoints import WANTED, batch, begin

NOBODY = 65534


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory that everybody may enter, under the usual umask."""
    before = os.umask(0o022)
    made = Path(tempfile.mkdtemp(prefix="penstock-shared-"))
    made.chmod(0o755)
    yield made
    os.umask(before)
    shutil.rmtree(made)


def checkpoint(shared: Path) -> Path:
    folder = begin(make_private(shared / ".penstock" / "shop"), WANTED)
    batch(folder, 0, {"a": 1})
    take(folder, directory_of("saved", folder))
    return shared / ".penstock"


def opened(shared: Path) -> Path:
    made = Checkpoint(Restart(shared / "mine" / "shop", FlowLayout("shop")))
    made.open()
    made.close()
    return shared / "mine"


def log(shared: Path) -> Path:
    with Log(shared / "log") as made:
        made.create_topic("words")
        with made.producer() as producer:
            producer.send("words", b"secret").result()
    return shared / "log"


def exported(shared: Path) -> Path:
    """Dead letters and state that were exported, also over a file that stands open."""
    folder = shared / "exported"
    folder.mkdir(mode=0o755)
    kept = begin(make_private(shared / ".kept"), WANTED)
    batch(kept, 0, {"a": 1})
    rows = dead_letter_rows(
        [DeadLetter("out", "why", "why", "Row(n=1)", payload_of((1,), schema_of("n bigint")))], "f", "l", 0, 0
    )
    DeadLetterStore(kept / "dead-letters").stage(rows, 0).commit()
    (folder / "dead.jsonl").write_text("what stood there before")
    given = [["dlq", "export", str(kept), "-o", str(folder / "dead.jsonl")]]
    given += [
        ["state", "export", str(kept), "--step", "count", "--output", str(folder / f"state.{kind}")]
        for kind in ("json", "csv", "parquet")
    ]
    for command in given:
        done = CliRunner().invoke(make_app(), command)
        assert done.exit_code == 0, done.output
    return folder


def cache(shared: Path) -> Path:
    os.environ["PENSTOCK_CACHE"] = str(shared / "cache")
    try:
        gateway._new_log()
    finally:
        del os.environ["PENSTOCK_CACHE"]
    return shared / "cache"


def jobs(shared: Path) -> Path:
    """The home of a manager: its database, tokens and bundles, and a job with logs and a checkpoint."""
    (shared / "flow.py").write_text("password = 'secret'")
    manager = Manager(shared / "jobs")
    with manager.opened():
        _admin_token(manager)
        manager.tokens.make("ada", "operator")
        bundle = manager.bundles.put(pack([("flow.py", shared / "flow.py")]))
        manager.bundles.unpacked(bundle)
        directory = manager.directory("count")
        directory.make()
        directory.write_wanted(Job("count", "ada", bundle, "flow.py"))
        directory.write_course(Course())
        directory.write_progress({"rows": 1})
        directory.log.write_text("what the driver says")
        with directory.lock(SUPERVISOR) or nullcontext():
            pass
    (shared / "flow.py").unlink()
    return shared / "jobs"


def jobs_in_theirs(shared: Path) -> Path:
    """The same in a directory that is there, which others may enter."""
    (shared / "jobs").mkdir(mode=0o755)
    return jobs(shared)


def history(shared: Path) -> Path:
    """What was typed into the shell, also where an older version left it open."""
    (shared / "home").mkdir(mode=0o755)
    old, new = shared / "home" / "old", shared / "home" / "new"
    old.write_text("CREATE TABLE t WITH ('password' = 'secret')")
    assert _made_private(old)
    assert _made_private(new)
    return shared / "home"


KINDS = [checkpoint, opened, log, cache, jobs]


@pytest.mark.parametrize("make", KINDS)
def test_only_the_user_may_enter(shared: Path, make: object) -> None:
    made = make(shared)  # type: ignore[operator]
    assert oct(made.stat().st_mode & 0o777) == "0o700"
    files = [p for p in made.rglob("*") if p.is_file()]
    assert files
    open_doors = [p for p in made.rglob("*") if p.is_dir() and p.stat().st_mode & 0o077 and p.parent == made]
    assert open_doors == []


@pytest.mark.parametrize("make", [log, cache, exported])
def test_the_files_are_the_users_too(shared: Path, make: object) -> None:
    made = make(shared)  # type: ignore[operator]
    assert {oct(p.stat().st_mode & 0o077) for p in made.rglob("*") if p.is_file()} == {"0o0"}


def test_state_files_are_the_users(shared: Path) -> None:
    made = checkpoint(shared)
    kept = [p for p in made.rglob("*") if p.is_file() and p.name != "lock"]
    assert {oct(p.stat().st_mode & 0o077) for p in kept} == {"0o0"}


READ = """
import os, sys
os.setgid(65534); os.setuid(65534)
found = []
for path in sys.argv[1:]:
    try:
        open(path, 'rb').read(1)
        found.append(path)
    except PermissionError:
        pass
print(len(found))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("make", [*KINDS, jobs_in_theirs, history, exported])
def test_another_user_can_read_nothing(shared: Path, make: object) -> None:
    made = make(shared)  # type: ignore[operator]
    public = shared / "public"
    public.write_text("for all")
    files = [str(p) for p in made.rglob("*") if p.is_file()]
    out = subprocess.run(
        [sys.executable, "-S", "-c", READ, str(public), *files], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "1", "the public file, and no other"


def test_a_directory_that_is_there_is_left_as_it_is(shared: Path) -> None:
    (shared / "theirs").mkdir(mode=0o755)
    make_private(shared / "theirs" / "mine")
    assert oct((shared / "theirs").stat().st_mode & 0o777) == "0o755"
    assert oct((shared / "theirs" / "mine").stat().st_mode & 0o777) == "0o700"


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*,4]"])
def test_sparks_ports_want_a_secret_on_a_local_master(master: str) -> None:
    made = _settings(master, {})
    assert {k: made[k] for k in LOCAL_SECURITY} == LOCAL_SECURITY
    assert made["spark.driver.bindAddress"] == "127.0.0.1"
    assert not any("secret" in k for k in made), "it would stand in the list of processes"


@pytest.mark.parametrize("master", ["local-cluster[2,1,1024]", "spark://host:7077", "yarn"])
def test_elsewhere_the_user_decides(master: str) -> None:
    assert not LOCAL_SECURITY.keys() & _settings(master, {}).keys()
    assert _settings("local[2]", {"spark.authenticate": "false"})["spark.authenticate"] == "false"
