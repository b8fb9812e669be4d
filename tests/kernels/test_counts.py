"""What the steps of a pass count, as fields."""

from __future__ import annotations

import pickle

import penstock as ps
from penstock.kernels.counts import PassCounts, StepCounts
from penstock.kernels.errors.guard import DeadLetter
from penstock.testing.driver import Driver


def test_counts_of_several_tasks_add_up_by_step_and_field() -> None:
    one = PassCounts({"a": StepCounts(3, 2, 1, 1, 1, 1)})
    other = PassCounts({"a": StepCounts(1, 1, 1, 1, 1, 1), "b": StepCounts(emitted=5)})
    both = pickle.loads(pickle.dumps(one + other))
    assert both.steps == {"a": StepCounts(4, 3, 2, 2, 2, 2, passes=2, heaviest=3), "b": StepCounts(emitted=5)}
    assert one.steps["a"] == StepCounts(3, 2, 1, 1, 1, 1)


def test_a_letter_of_a_task_that_ran_twice_counts_once() -> None:
    dead_letter = DeadLetter("a", "cause", "", "1", "", number="partition 0 of a, dead letter 0")
    other = DeadLetter("a", "cause", "", "2", "", number="partition 1 of a, dead letter 0")
    assert (PassCounts(dead_letters=[dead_letter]) + PassCounts(dead_letters=[dead_letter, other])).dead_letters == [
        dead_letter,
        other,
    ]


def test_a_step_that_takes_records_and_emits_none_is_among_those_that_emit() -> None:
    counts = PassCounts({"none": StepCounts(taken=2), "idle": StepCounts()})
    assert (counts.taken(), counts.emitted()) == ({"none": 2}, {"none": 0})


def test_a_step_named_like_a_counter_of_another_is_no_trouble() -> None:
    flow = ps.Flow("names", on_error="skip")
    numbers = flow.source("n", ps.items([], "n bigint"))
    good = numbers.map("half", lambda r: {"n": 10 // r.n}).filter("half.skipped", lambda r: r.n > 2)
    good.filter("half.late", lambda r: True).sink("out", ps.console())
    driver = Driver(flow)
    driver.push("n", *({"n": n} for n in (0, 1, 2, 5)))
    driver.barrier()
    counts = driver.run.pipeline.counts()
    assert counts.skipped() == {"half": 1}
    assert counts.taken() == {"half": 4, "half.skipped": 3, "half.late": 2}
    assert not counts.late()
