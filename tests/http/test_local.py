"""Records sent by HTTP without a JVM."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.errors import RunError
from penstock.testing import run_local
from tests.http.conftest import Desk


def counting(desk: Desk, per_request: int = 1) -> ps.Flow:
    flow = ps.Flow("local")
    words = flow.source("words", ps.items(["a", "b", "a"], "word string"))
    words.key_by("word").count("n").sink("out", ps.write_http(desk.url, per_request=per_request))
    return flow


def test_a_local_run_sends_its_rows(desk: Desk) -> None:
    run_local(counting(desk), write=True)
    assert sorted(desk.bodies, key=str) == [{"word": "a", "n": 2}, {"word": "b", "n": 1}]
    assert len(set(desk.keys)) == 2


def test_a_busy_server_is_asked_again_with_the_same_key(desk: Desk) -> None:
    desk.answers = [(503, {})]
    run_local(counting(desk, per_request=10), write=True)
    assert [sorted(row["word"] for row in body) for body in desk.bodies] == [["a", "b"]] * 2
    assert len(set(desk.keys)) == 1


def test_a_refusal_ends_the_run_and_names_the_sink(desk: Desk) -> None:
    desk.judge = lambda body: (400, {})
    with pytest.raises(RunError, match=r"sink 'out': http://127.0.0.1:.* answered 400"):
        run_local(counting(desk), write=True)


def test_rules_post_what_they_find(desk: Desk) -> None:
    """A batch that runs again sends the same keys, by which a server tells what it has."""
    flow = ps.Flow("rules")
    payments = flow.source("payments", ps.items([("a", 900), ("b", 3)], "card string, amount int"))
    rule = ps.rule("big", "amount > 500", ps.action.post("pager", "card", text="concat('paid ', amount)"))
    payments.rules("fraud", [rule], posts={"pager": ps.write_http(desk.url)})
    run_local(flow, write=True)
    run_local(flow, write=True)
    assert desk.bodies == [{"card": "a", "text": "paid 900"}] * 2
    assert len(set(desk.keys)) == 1
