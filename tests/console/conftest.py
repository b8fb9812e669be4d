"""A server with jobs that run without a JVM, and one browser for all tests of the console."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from penstock.client import Client
from penstock.demo.feed import PostFeed
from penstock.demo.job import NAME, job_file
from penstock.jobs.manager.access.tokens import Role
from penstock.jobs.manager.bundle import pack
from penstock.jobs.manager.manager import Manager
from penstock.log import Log
from penstock.server.serve import Listening, serving
from tests.console.browser import Watched, opened_browser
from tests.jobs.manager.conftest import ending
from tests.waiting import wait_until

DRIVER = (sys.executable, str(Path(__file__).with_name("driver.py")))
CANARY = "<img src=x onerror=alert(1)><script>window.pwned=1</script>"
"""A text that would run if it were ever read as markup."""
FAILING = f"""
import penstock as ps

def burst(row):
    print({CANARY!r}, flush=True)
    if row.second > 0.2:
        raise ValueError({CANARY!r})
    return row.author

flow = ps.Flow("hostile")
posts = flow.source("posts", ps.items([], "author string, text string, second double"))
posts.where("long", "text <> '{CANARY}'").map("burst", burst, schema="author string").sink("out", ps.console())
"""
LETTERS = f"""
import penstock as ps

def picky(row):
    if row.author.endswith("77"):
        raise ValueError({CANARY!r})
    return row.author

flow = ps.Flow("letters", on_error="dead_letter")
posts = flow.source("posts", ps.items([], "author string, text string, second double"))
posts.map("picky", picky, schema="author string").sink("out", ps.console())
"""


RULES = """
import penstock as ps

do = ps.action
flow = ps.Flow("rules")
posts = flow.source("posts", ps.items([], "author string, text string, second double"))
changes = flow.source("changes", ps.rule_topic("post-rules", path=LOG))
found = posts.rules("watch", [ps.rule("long", "length(text) > 20", do.emit("cases", "author"))], changes=changes)
found.cases.sink("out", ps.console())
"""
TOPOLOGY = """
import penstock as ps

class Lines(ps.Spout):
    outputs = "line string"
    reliable = True

    def next_tuple(self):
        return ps.END

class Split(ps.BasicBolt):
    outputs = "word string"

    def process(self, tup):
        for word in tup.line.split():
            yield (word,)

class Count(ps.BasicBolt):
    outputs = "word string, many bigint"

    def process(self, tup):
        yield tup.word, 1

flow = ps.Topology("words")
flow.spout("lines", Lines())
flow.bolt("split", Split(), parallelism=2).shuffle("lines")
flow.bolt("count", Count(), parallelism=2).fields("split", "word")
flow.sink("out", ps.console(), from_="count")
"""


@dataclass(frozen=True)
class Console:
    """A server with jobs, and a way to open its pages as somebody."""

    url: str
    manager: Manager

    def client(self, role: Role = "admin", owner: str = "ada") -> Client:
        return Client(self.url, self.manager.tokens.make(owner, role)[0])


def submit(client: Client, folder: Path, name: str, text: str) -> None:
    """Submits a file of a flow as a job."""
    file = folder / f"{name.replace('-', '_')}.py"
    file.write_text(text)
    client.submit(name, client.bundle(pack([(file.name, file)])), file.name)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Goes with its module: as long as it is there a loop of asyncio runs in this thread, and other tests could run none."""
    with opened_browser() as found:
        yield found


Opens = Callable[..., Watched]


@pytest.fixture
def opens(console: Console, browser: Browser) -> Iterator[Opens]:
    """Opens a page as a role, signed in by a link."""
    contexts = []

    def open_as(role: Role = "admin", owner: str = "ada", **options: Any) -> Watched:
        context = browser.new_context(**{"viewport": {"width": 1360, "height": 860}, **options})
        contexts.append(context)
        watched = Watched(context.new_page())
        watched.go(console.client(role, owner).sign_in_link())
        return watched

    yield open_as
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    folder = tmp_path_factory.mktemp("console")
    manager = Manager(folder / "data", DRIVER)
    feed = PostFeed(folder / "log", 500, limit=1_000)
    with serving(manager, Listening(port=0)) as url, ending(manager), feed:
        found = Console(url, manager)
        fill(found, folder)
        yield found


def fill(console: Console, folder: Path) -> None:
    """A job that runs, one that fails, one with dead letters, one with rules, a topology, and one that is paused; an alert that fires, and a pool."""
    client = console.client()
    submit(client, folder, NAME, job_file(folder, time.time()))
    submit(client, folder, "hostile", FAILING)
    submit(client, folder, "letters", LETTERS)
    submit(client, folder, "rules", RULES.replace("LOG", repr(str(folder / "log"))))
    submit(client, folder, "words", TOPOLOGY)
    with Log(folder / "log") as log, log.producer() as producer:
        producer.send("posts", json.dumps({"author": CANARY, CANARY: 1}).encode(), CANARY.encode()).result()
        producer.send("posts", CANARY.encode()).result()
    submit(client, folder, "resting", job_file(folder, time.time()))
    client.act("resting", "pause")
    wait_until(lambda: bool(client.job(NAME)["throughput"]))
    wait_until(lambda: bool(client.job("words")["throughput"] and client.job("rules")["throughput"]))
    wait_until(lambda: client.job("hostile")["has_failed"])
    wait_until(lambda: len(client.dead_letters("letters")) > 3)
    client.set_alert("lagging", {"measure": "lag", "above": 1, "severity": "critical"})
    client.set_pool("small", {"cores": 4, "owner_cores": 2})
    client.act("letters", "pause")  # its dead letters stay as they are
    wait_until(lambda: client.job("letters")["phase"] == "paused")
