"""A flow that becomes another one while it runs: when it is asked for, and how the run goes on. No JVM."""

from __future__ import annotations

import threading

import penstock as ps
from penstock.errors import FlowError
from penstock.graph.graph import Graph
from penstock.graph.run import RunSpec
from penstock.jobs.launch import Revision, resumed
from tests.waiting import wait_until


def graph() -> Graph:
    flow = ps.Flow("f")
    flow.source("rows", ps.items([1], "n int")).sink("out", ps.console())
    return flow.graph


def test_a_run_ends_when_its_flow_has_become_another_one() -> None:
    ended, made, answers = threading.Event(), graph(), [None, FlowError("not yet"), None]

    def revise() -> Graph | None:
        if not answers:
            return made
        found = answers.pop(0)
        if found is not None:
            raise found
        return None

    revision = Revision(revise, ended.set, pause=0.01)
    wait_until(ended.is_set)
    assert revision.stop() is made


def test_a_run_that_ends_first_asks_no_more() -> None:
    ended = threading.Event()
    revision = Revision(lambda: None, ended.set, pause=0.01)
    assert revision.stop() is None
    assert not ended.is_set()


def test_a_run_goes_on_for_what_is_left() -> None:
    spec = RunSpec(duration=10.0, batches=5, records=100, fresh=True, drop_state=("a",))
    left = resumed(spec, 4.0, 2, 30)
    assert (left.duration, left.batches, left.records, left.fresh, left.drop_state) == (6.0, 3, 70, False, ())
    assert resumed(RunSpec(), 4.0, 2, 30) == RunSpec()
    assert resumed(spec, 40.0, 9, 300).batches == 1
