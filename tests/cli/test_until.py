"""What ends a run, as it is written on the command line and in `ps.run`."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
import typer

from penstock.cli.flows.run import _options_by_name, ending
from penstock.errors import FlowError
from penstock.graph.times import to_micros
from penstock.jobs.launch import LaunchOptions


def test_each_condition_finds_its_place() -> None:
    made = ending(LaunchOptions(), 3, 100, "2024-05-01T12:00", "10s", drain=True)
    noon = to_micros(datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC))
    until = made.until
    assert (until.batches, until.records, until.time, until.idle, made.drain) == (3, 100, noon, 10.0, True)


def test_a_moment_may_name_its_zone() -> None:
    made = ending(LaunchOptions(), None, None, "2024-05-01T12:00+02:00", "", drain=False)
    assert made.until.time == to_micros(datetime.datetime(2024, 5, 1, 10, tzinfo=datetime.UTC))


def test_what_is_no_moment_is_refused() -> None:
    with pytest.raises(typer.BadParameter, match="got 'noon'"):
        ending(LaunchOptions(), None, None, "noon", "", drain=False)


def test_bounded_data_has_an_end_of_its_own() -> None:
    with pytest.raises(typer.BadParameter, match="--batch ends with its data"):
        ending(LaunchOptions("batch"), 3, None, "", "", drain=False)


def test_by_name_a_function_may_end_a_run() -> None:
    def full(report: Any) -> bool:
        return bool(report.rows_in > 10)

    made = _options_by_name({"until": full, "until_idle": "2s", "drain": True})
    assert made.until.test is full
    assert made.until.idle == 2.0
    assert made.drain


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(FlowError, match="function of a batch's report"):
        _options_by_name({"until": "soon"})
