"""The course of a job, as a pure machine: random events against what must always hold."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from penstock.jobs.manager.job import Job
from penstock.jobs.manager.processes.course import LONGEST_WAIT, MOST_FAILURES, Course, ended, look

JOB = Job("count", "ada", "0" * 64, "count.py")
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.floats(0.0, 700.0)),
        st.tuples(st.just("exit"), st.sampled_from([0, 1, 2, -9])),
        st.tuples(st.just("wish"), st.sampled_from(["running", "paused", "stopped"])),
        st.tuples(st.just("restart"), st.none()),
        st.tuples(st.just("force"), st.none()),
    ),
    max_size=40,
)


@given(EVENTS)
def test_there_is_at_most_one_driver_and_what_is_wanted_comes_about(events: list[tuple[str, object]]) -> None:
    course, job, now, drivers = Course(), JOB, 0.0, 0
    for what, value in events:
        if what == "wait":
            now += float(value)  # type: ignore[arg-type]
        elif what == "exit" and drivers:
            drivers, course = 0, ended(course, int(value), now)  # type: ignore[call-overload]
        elif what == "wish":
            job = job.wished(value)  # type: ignore[arg-type]
        elif what == "restart":
            job = job.wished("running").renewed()
        elif what == "force":
            job = replace(job, is_forced=True)
        course, command = look(course, job, now)
        drivers += command == "start"
        assert drivers <= 1
        assert course.has_driver == (drivers == 1)
    job = job.wished("running").renewed()
    for _ in range(3):
        course, command = look(course, job, now)
        drivers += command == "start"
        if course.phase == "stopping":
            drivers, course = 0, ended(course, 0, now)
    assert (course.phase, drivers, course.generation) == ("running", 1, job.generation)


def test_a_crash_loop_is_held_and_waits_grow_until_then() -> None:
    course, now, waits = Course(), 0.0, []
    while course.phase != "held":
        course, command = look(course, JOB, now)
        if command == "start":
            course = ended(course, 1, now)
            waits.append(course.until - now)
        now += LONGEST_WAIT
    assert course.failures == MOST_FAILURES == len(waits)
    assert waits[:4] == [1.0, 2.0, 4.0, 8.0]
    assert "5 times in a row" in course.reason


def test_a_driver_that_worked_for_long_does_not_count_as_a_failure_in_a_row() -> None:
    course = Course("running", 1, failures=4, since=0.0)
    assert ended(course, 1, 601.0).phase == "waiting"
    assert ended(course, 1, 599.0).phase == "held"


def test_a_clock_that_was_set_back_does_not_make_a_job_wait_for_hours() -> None:
    course = Course("waiting", 1, failures=1, until=10_000.0)
    assert look(course, JOB, 5.0)[1] == "start"
