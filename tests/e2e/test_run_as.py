"""A flow as a job of another user of the machine, on Spark, whose batches are traced."""

from __future__ import annotations

import json
import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from penstock.jobs.manager.access.accounts import Account, Accounts, acting_as
from penstock.jobs.manager.bundle import pack
from penstock.jobs.manager.job import Job
from penstock.jobs.manager.manager import Manager
from penstock.jobs.manager.savepoints import take_savepoint
from tests.jobs.manager.conftest import ending
from tests.jobs.test_tracing import attributes, collecting
from tests.waiting import wait_until

USER = "nobody"
PYTHON = Path(f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}")
"""One that all users of the machine reach, of the version that the packages are for."""
TREES = (str(Path(penstock.__file__).parents[1]), sysconfig.get_path("platlib"))
FLOW = """
import penstock as ps

class Count(ps.Process):
    n = ps.value(int, default=0)

    def on_event(self, row):
        import os
        self.n += 1
        yield self.key, self.n, os.getuid()

flow = ps.Flow("count", delivery="exactly_once")
lines = flow.source("in", ps.files({source!r})).key_by("value")
lines.process("count", Count, schema="value string, n bigint, uid bigint").sink("out", ps.write_files("out", "json"))
"""


def reaches_all() -> bool:
    """Whether the user can run Penstock: a tree in somebody's home is nobody else's."""
    if os.geteuid() != 0 or not PYTHON.exists():
        return False
    with acting_as(Account.named(USER)):
        return all(os.access(f"{tree}/.", os.X_OK, effective_ids=True) and _is_listed(tree) for tree in TREES)


def _is_listed(tree: str) -> bool:
    try:
        return any(Path(tree).iterdir())
    except OSError:
        return False


pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(
        not reaches_all(), reason="root alone starts processes of others, who must reach Python and Penstock"
    ),
]


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory that everybody may enter, as /var/lib is."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(TREES))
    before = os.umask(0o022)
    made = Path(tempfile.mkdtemp(prefix="penstock-run-as-"))
    made.chmod(0o755)
    (made / "in").mkdir()
    os.umask(0o027)
    yield made
    os.umask(before)
    shutil.rmtree(made)


def written(folder: Path) -> list[tuple[int, int]]:
    lines = [
        line for file in sorted((folder / "work" / "out").glob("*.json")) for line in file.read_text().splitlines()
    ]
    return sorted((row["n"], row["uid"]) for row in map(json.loads, lines))


def put(home: Path, number: int) -> None:
    """One more line, whole at once."""
    made = home / f"{number}.txt"
    made.write_text("a\n")
    made.chmod(0o644)
    made.rename(home / "in" / made.name)


def test_a_flow_runs_as_the_user_of_its_owner_sends_traces_and_goes_on_after_a_restart(home: Path) -> None:
    uid = Account.named(USER).uid
    command = (str(PYTHON), "-m", "penstock.jobs.manager.processes.driver")
    manager = Manager(home / "data", command, accounts=Accounts.of([f"ada={USER}"]))
    with collecting() as collector, manager.opened(), ending(manager):
        flow = home / "count.py"
        flow.write_text(FLOW.format(source=str(home / "in" / "*.txt")))
        bundle = manager.bundles.put(pack([("count.py", flow)]))
        put(home, 0)
        options: dict[str, object] = {"otel": collector.url, "master": "local[1]"}
        manager.submit(Job("count", "ada", bundle, "count.py", options), "ada")
        directory = manager.directory("count")

        def writes(number: int) -> None:
            def is_there() -> bool:
                state = manager.state("count")
                assert state.phase != "held", directory.log.read_text()[-4_000:]
                return len(written(directory.path)) >= number

            wait_until(is_there, 600)

        writes(1)
        driver = int(str(manager.state("count").progress["pid"]))
        assert Path(f"/proc/{driver}").stat().st_uid == uid
        manager.restart("count", "ada")
        put(home, 1)
        writes(2)
        assert written(directory.path) == [(1, uid), (2, uid)]
        with directory.acting():
            assert str(take_savepoint(directory, "by-the-server")["savepoint"]).endswith("by-the-server")
        wait_until(lambda: len(collector.named("batch")) >= 2)
    assert {attributes(span)["penstock.batch"] for span in collector.named("batch")} >= {0, 1}
    assert not [file for file in (directory.path / "checkpoint").rglob("*") if file.stat().st_uid != uid]
