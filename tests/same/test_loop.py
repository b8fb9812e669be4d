"""Loops by a feedback edge."""

from __future__ import annotations

import pytest

import penstock as ps
from tests.same.conftest import Case


def test_a_loop_goes_round_until_it_is_quiet(same: Case) -> None:
    flow = ps.Flow("collatz")
    numbers = flow.source("numbers", ps.items([], "start bigint, n bigint, steps bigint"))
    again = flow.feedback("again", "start bigint, n bigint, steps bigint")
    both = numbers.union("both", again)
    step = both.where("going", "n > 1").map(
        "step", lambda r: (r.start, r.n // 2 if r.n % 2 == 0 else 3 * r.n + 1, r.steps + 1)
    )
    flow.feed(again, step)
    both.where("done", "n = 1").select("result", "start", "steps").sink("out", ps.console())
    same.check(flow, {"numbers": [(3, 3, 0), (1, 1, 0), (4, 4, 0)]}, {"out": [(3, 7), (1, 0), (4, 2)]})


class Hops(ps.Process):
    """State in a loop: how often a token passed."""

    seen = ps.value(int, default=0)

    def on_event(self, row: object) -> list[tuple[object, int]]:
        self.seen += 1
        return [(self.key, self.seen)]


@pytest.mark.live
def test_a_loop_with_state(same: Case) -> None:
    flow = ps.Flow("hops")
    tokens = flow.source("tokens", ps.items([], "token string, hops bigint"))
    back = flow.feedback("back", "token string, hops bigint")
    hops = tokens.union("all", back).key_by("token").process("hop", Hops, "token string, hops bigint")
    flow.feed(back, hops.where("more", "hops < 4"))
    hops.where("end", "hops = 4").sink("out", ps.console())
    same.check(flow, {"tokens": [("x", 0), ("y", 0)]}, {"out": [("x", 4), ("y", 4)]})
