"""What is looked at in a job: checked before it is asked for, renewed while somebody looks, and gone afterwards."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import ExpressionError, OptionError, PenstockError, UnknownName
from penstock.jobs.manager.insight import watching
from penstock.jobs.manager.insight.looking import PROFILING, look_at_streams
from penstock.jobs.manager.insight.watching import check_stream, renew, renew_kind, seen, seen_kind
from penstock.jobs.manager.processes.directory import SAMPLES, WATCH, JobDirectory
from penstock.kernels.counts import PassCounts
from penstock.live.sampling import SAMPLER

PLAN: dict[str, Any] = {"steps": [{"name": "in", "outputs": [{"port": "out", "schema": "n bigint, t string"}]}]}


@pytest.fixture
def directory(tmp_path: Path) -> JobDirectory:
    made = JobDirectory(tmp_path / "job")
    made.make()
    return made


def test_streams_that_are_none_and_conditions_that_do_not_fit_are_refused() -> None:
    check_stream(PLAN, "in", "out", "n > 3 and t like '%x'")
    with pytest.raises(UnknownName, match="there is no stream 'late' of a step 'in'"):
        check_stream(PLAN, "in", "late", "")
    with pytest.raises(OptionError, match="expected a condition"):
        check_stream(PLAN, "in", "out", "n + 1")
    for where in ("__import__('os')", "m > 1", "n >", "lambda: 1", "t.__class__ = 1", "eval('1') = 1"):
        with pytest.raises(PenstockError) as caught:
            check_stream(PLAN, "in", "out", where)
        assert isinstance(caught.value, ExpressionError | PenstockError)


def test_a_wish_is_renewed_and_only_so_many_are_taken(directory: JobDirectory) -> None:
    for step in "abcd":
        renew(directory, step, "out", "")
    renew(directory, "a", "out", "")
    with pytest.raises(OptionError, match="at most 4 streams"):
        renew(directory, "e", "out", "")
    wishes: Any = directory.watch()["wishes"]
    assert [wish["step"] for wish in wishes] == ["b", "c", "d", "a"]


def test_a_wish_that_nobody_renews_ends(directory: JobDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "HOLDS", -1.0)
    renew(directory, "in", "out", "")
    look_at_streams(directory)
    assert not SAMPLER.wanted()


def test_the_driver_shows_what_is_looked_at(directory: JobDirectory) -> None:
    look_at_streams(directory)
    assert not SAMPLER.wanted()
    renew(directory, "in", "out", "n > 1")
    look_at_streams(directory)
    ((port, where),) = SAMPLER.wanted().streams
    assert (port.step, port.name, where) == ("in", "out", "n > 1")
    SAMPLER.show(7, PassCounts(samples={("in", "out", "n > 1"): [{"n": 2}]}))
    assert seen(directory, "in", "out", "n > 1") == {"batch": 7, "rows": [{"n": 2}]}
    assert seen(directory, "in", "out", "") == {"batch": None, "rows": []}
    directory.write_watch([])
    look_at_streams(directory)
    assert SAMPLER.wishes == ()


def test_messages_are_traced_and_time_is_profiled_while_somebody_looks(
    directory: JobDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    renew(directory, "in", "out", "")
    renew_kind(directory, "trace")
    renew_kind(directory, "profile")
    look_at_streams(directory)
    looks = SAMPLER.wanted()
    assert (len(looks.streams), looks.traces, looks.profiles) == (1, True, True)
    assert PROFILING.sampler is not None
    SAMPLER.show(3, PassCounts(traces={5: []}, stacks={"main;work": 7}))
    assert seen_kind(directory, "trace") == {
        "batch": 3,
        "traces": [{"root": "0000000000000005", "state": "done", "tuples": []}],
    }
    PROFILING.sampler.look(-1)
    monkeypatch.setattr(watching, "HOLDS", -1.0)
    renew_kind(directory, "trace")
    renew_kind(directory, "profile")
    renew(directory, "in", "out", "")
    look_at_streams(directory)
    assert not SAMPLER.wanted()
    found = seen_kind(directory, "profile")
    assert found["workers"] == {"main;work": 7}
    assert any("test_messages_are_traced" in stack for stack in found["driver"])


@pytest.mark.parametrize("odd", ["text", -1, [1], [None], [{}], [{"step": 1}], {"step": {}}, None])
def test_what_a_driver_may_have_written_there_is_left_out(directory: JobDirectory, odd: object) -> None:
    mine = {"step": "split", "port": "out", "where": "", "until": time.time() + 60}
    listed = [*odd, mine] if isinstance(odd, list) else odd
    directory.write_watch([])
    directory.write_shown(WATCH, {"wishes": listed, "trace": odd})
    renew(directory, "count", "out", "")
    renew_kind(directory, "profile")
    wishes = directory.watch()["wishes"]
    assert isinstance(wishes, list)
    assert [wish["step"] for wish in wishes] == (["split", "count"] if isinstance(odd, list) else ["count"])
    directory.write_shown(
        SAMPLES, {"batch": 7, "samples": [*odd, {**mine, "rows": [1]}] if isinstance(odd, list) else odd}
    )
    expected = {"batch": 7, "rows": [1]} if isinstance(odd, list) else {"batch": None, "rows": []}
    assert seen(directory, "split", "out", "") == expected
