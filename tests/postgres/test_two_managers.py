"""Two servers of jobs with one PostgreSQL: one leads, and the other takes over when it is killed, stopped, or cut off."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.client import Client, ServerError
from penstock.errors import PenstockError
from penstock.jobs.manager.bundle import pack
from penstock.jobs.manager.job import Job
from penstock.jobs.manager.manager import Manager
from penstock.jobs.manager.processes.directory import DRIVER, JobDirectory
from penstock.jobs.manager.processes.environment import DATABASE
from penstock.jobs.manager.store.postgres_database import PostgresDatabase
from penstock.testing.servers import postgres_server
from tests.jobs.manager.conftest import supervisors_of
from tests.jobs.manager.store.test_audit import EDITS
from tests.waiting import wait_until

TREE = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Peer:
    """One of two servers."""

    process: subprocess.Popen[bytes]
    log: Path
    root: Path

    @property
    def url(self) -> str:
        found = re.search(r"API at (http\S+)/api/v1", self.log.read_text())
        return found[1] if found else ""

    @property
    def role(self) -> str:
        with urllib.request.urlopen(f"{self.url}/api/v1/health", timeout=300) as answer:
            return str(json.load(answer)["role"])

    def client(self) -> Client:
        return Client(self.url, (self.root / "admin.token").read_text())

    def submit(self, name: str) -> None:
        file = self.root.parent / "count.py"
        file.write_text("x = 1\n")
        client = self.client()
        client.submit(name, client.bundle(pack([("count.py", file)])), "count.py", {})

    def sees(self, name: str, phase: str) -> None:
        wait_until(lambda: self.client().job(name)["phase"] == phase)


def started(root: Path, url: str, name: str, within: Sequence[str] = (), host: str = "") -> Peer:
    """A server; `within` is the command that starts a command where it is to run."""
    log = root.parent / f"{name}.log"
    own = {**os.environ, DATABASE: url, "PYTHONPATH": str(TREE)}
    with log.open("wb") as output:
        serves = [sys.executable, "-m", "tests.jobs.manager.serving", str(root)]
        command = [*within, *serves, *([host] if host else [])]
        process = subprocess.Popen(command, stdout=output, stderr=output, env=own, cwd=TREE)
    peer = Peer(process, log, root)

    def answers() -> bool:
        assert process.poll() is None, log.read_text()
        try:
            return bool(peer.url) and bool(peer.role)
        except OSError:
            return False

    wait_until(answers)
    return peer


@contextmanager
def peers(root: Path, url: str) -> Iterator[tuple[Peer, Peer]]:
    """The one that leads and the other; nothing of them is left."""
    with ExitStack() as stack:
        stack.callback(_end_jobs, root)
        made = []
        for name in ("first", "second"):
            made.append(started(root, url, name))
            stack.callback(made[-1].process.wait, 300)
            stack.callback(made[-1].process.kill)
        assert [peer.role for peer in made] == ["leader", "standby"]
        yield made[0], made[1]


def _end_jobs(root: Path) -> None:
    for pid in supervisors_of(Manager(root)):
        os.kill(pid, signal.SIGKILL)


def starts(root: Path, name: str) -> list[str]:
    file = root / "jobs" / name / "starts.txt"
    return file.read_text().split() if file.exists() else []


def changed(peer: Peer) -> list[object]:
    """The answers to changes of several kinds, each with a key that is always the same."""
    client = peer.client()
    return [
        client.make_token("ada", "viewer", idempotency_key="token"),
        client.put_pool("small", cores=1, idempotency_key="pool"),
        client.put_alert("behind", "lag", 5.0, idempotency_key="alert"),
        client.make_link(idempotency_key="link"),
    ]


def test_the_other_takes_over_from_a_leader_that_is_killed_and_jobs_run_on(tmp_path: Path, url: str) -> None:
    root = tmp_path / "data"
    with peers(root, url) as (first, second):
        first.submit("count")
        second.sees("count", "running")
        second.submit("other")
        first.sees("other", "running")
        made = changed(first)
        first.process.kill()
        first.process.wait()
        wait_until(lambda: second.role == "leader")
        assert changed(second) == made
        assert len(second.client().tokens()) == 2  # that of the machine's user, and one more
        assert json.loads((root / "server.json").read_text())["url"] == second.url
        second.client().act("other", "pause")
        second.sees("other", "paused")
        second.sees("count", "running")
        assert starts(root, "count") == starts(root, "other") == ["start"]
        again = started(root, url, "again")
        try:
            assert again.role == "standby"
            second.process.send_signal(signal.SIGTERM)
            second.process.wait(300)
            wait_until(lambda: again.role == "leader")
            again.client().act("other", "resume")
            again.sees("other", "running")
        finally:
            again.process.kill()
            again.process.wait()


def sent_again_and_again(
    peer: Peer, who: int, answered: dict[str, str], open_: list[str], stop: threading.Event
) -> None:
    """Tokens, each with a key of its own, until there is no answer."""
    client = peer.client()
    for n in itertools.takewhile(lambda _: not stop.is_set(), itertools.count()):
        key = f"{who}-{n}"
        try:
            answered[key] = str(client.make_token(f"o{key}", "viewer", idempotency_key=key)["id"])
        except (PenstockError, OSError):
            open_.append(key)
            return


def test_a_leader_that_is_killed_in_the_middle_of_changes_loses_none_and_the_other_makes_none_twice(
    tmp_path: Path, url: str
) -> None:
    with peers(tmp_path / "data", url) as (first, second), ThreadPoolExecutor(6) as pool:
        answered, open_, stop = dict[str, str](), list[str](), threading.Event()
        try:
            senders = [pool.submit(sent_again_and_again, first, n, answered, open_, stop) for n in range(6)]
            wait_until(lambda: len(answered) >= 20)
        finally:
            first.process.kill()
            first.process.wait()
            stop.set()
        for sender in senders:
            sender.result()
        wait_until(lambda: second.role == "leader")
        client = second.client()
        for key in open_:
            with suppress(ServerError):  # it was made, and the answer is lost with the leader
                client.make_token(f"o{key}", "viewer", idempotency_key=key)
        for key, token in answered.items():
            assert client.make_token(f"o{key}", "viewer", idempotency_key=key)["id"] == token
        found = Counter(token["owner"] for token in client.list_tokens(limit=1_000)["tokens"])
        assert {f"o{key}" for key in (*answered, *open_)} <= found.keys()
        assert set(found.values()) == {1}
        entries = [entry["object"] for entry in client.list_audit(limit=1_000)["entries"] if entry["action"] == "token"]
        assert len(entries) == len({*entries}) == found.total()
        assert client.verify_audit()["is_whole"]


def test_a_leader_that_is_stopped_and_goes_on_after_the_takeover_does_nothing(tmp_path: Path, url: str) -> None:
    root = tmp_path / "data"
    with peers(root, url) as (first, second):
        first.submit("count")
        second.sees("count", "running")
        os.kill(first.process.pid, signal.SIGSTOP)
        try:
            wait_until(lambda: second.role == "leader")
            second.client().act("count", "stop")
            second.sees("count", "stopped")
            wait_until(lambda: not JobDirectory(root / "jobs" / "count").is_held(DRIVER))
        finally:
            os.kill(first.process.pid, signal.SIGCONT)
        wait_until(lambda: first.role == "standby")
        first.sees("count", "stopped")
        first.client().act("count", "resume")
        second.sees("count", "running")
        assert starts(root, "count") == ["start", "start"]
        assert second.role == "leader"


def test_jobs_run_on_while_the_database_is_away_and_somebody_leads_when_it_is_back(tmp_path: Path) -> None:
    root = tmp_path / "data"
    with postgres_server() as server, peers(root, server.url) as (first, second):
        first.submit("count")
        second.sees("count", "running")
        server.kill()
        with pytest.raises(PenstockError, match="the database of jobs does not answer"):
            first.client().act("count", "stop")
        wait_until(lambda: (first.role, second.role) == ("standby", "standby"))
        (supervisor,) = supervisors_of(Manager(root))
        os.kill(int(Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text()), signal.SIGKILL)
        wait_until(lambda: starts(root, "count") == ["start", "start"])
        server.start()
        wait_until(lambda: sorted([first.role, second.role]) == ["leader", "standby"])
        second.sees("count", "running")
        second.client().act("count", "stop")
        first.sees("count", "stopped")


def test_changes_through_both_lose_nothing_and_wait_for_each_other(tmp_path: Path, url: str) -> None:
    managers = [Manager(tmp_path / "data", shared=PostgresDatabase.of(url, is_seen=False)) for _ in range(2)]
    with managers[0].opened(), managers[1].opened():
        assert [m.leads for m in managers] == [True, False]
        file = tmp_path / "count.py"
        file.write_text("x = 1\n")
        bundle = managers[0].bundles.put(pack([("count.py", file)]))
        managers[1].submit(Job("count", "ada", bundle, "count.py", wish="stopped"), "ada")
        with ThreadPoolExecutor(8) as pool:
            done = [pool.submit(managers[n % 2].rescale, "count", n + 1, "ada") for n in range(40)]
            for each in done:
                each.result()
        found = managers[0].records.get("count")
        assert (found.generation, found.revision) == (41, 40)
        assert len(managers[1].records.audit(100)) == 41
        assert managers[1].records.verify_audit(managers[0].records.verify_audit().head).is_whole, "one chain, by both"
        for column, value in EDITS.items():
            at = 99 if column == "id" else 20
            with managers[0].database.writes() as changed:
                (before,) = changed.execute(f"select {column} from audit where id = 20").fetchone()
                changed.execute(f"update audit set {column} = ? where id = 20", (value,))
            assert "20" in managers[1].records.verify_audit().faults[0], column
            with managers[0].database.writes() as changed:
                changed.execute(f"update audit set {column} = ? where id = ?", (before, at))
        assert managers[1].records.verify_audit().is_whole
        managers[0].reconcile()
        wait_until(lambda: not managers[0].state("count").is_supervised)
        managers[1].remove("count", "ada")
        managers[0].reconcile()
        assert managers[1].records.removals() == []
        for process in managers[0].supervisors.values():
            process.wait(300)
