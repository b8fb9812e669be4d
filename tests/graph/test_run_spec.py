"""The options of a run: declared once, read from everywhere, checked, and the same after a round trip through JSON."""

from __future__ import annotations

import datetime
import json
import re
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from penstock.errors import OptionError
from penstock.graph.run import RunSpec, run_options
from penstock.graph.times import to_micros
from penstock.location import Location

NOON = to_micros(datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC))

GIVEN: dict[str, object] = {
    "mode": "once",
    "duration": "1m30s",
    "batches": 3,
    "records": 100,
    "until_time": "2024-05-01T12:00",
    "until_idle": "10s",
    "drain": True,
    "interval": "500ms",
    "batch_seconds": 1.5,
    "max_rows": 7,
    "checkpoint": "a/b",
    "standby": False,
    "lease": "20s",
    "fresh": True,
    "savepoint": "before",
    "drop_state": ["counts", "a step"],
    "rename_state": ["counts=totals"],
    "keep_versions": 5,
    "parallelism": 4,
    "key_groups": 256,
    "place": ["together=a,b"],
    "master": "local[2]",
    "conf": {"spark.x": 1, "spark.y": True},
    "packages": "a:b:1,c:d:2",
    "py_files": ["x.zip"],
    "archives": "environment.tar.gz",
    "properties_file": "spark.conf",
    "json_logs": True,
    "log_level": "info",
    "metrics_port": 0,
    "metrics_host": "::1",
    "otel": "http://127.0.0.1:4318",
    "by_value": ["mine"],
    "dead_letters": "letters",
    "stalled_after": "1m",
    "kill_stalled_after": "5m",
}


def test_every_option_is_tried_here() -> None:
    assert set(run_options()) - set(GIVEN) == set()


def test_each_value_is_read_as_people_write_it() -> None:
    made = RunSpec.of(**GIVEN)
    assert (made.duration, made.interval, made.until_idle, made.until_time) == (90.0, 0.5, 10.0, NOON)
    assert (made.checkpoint, made.packages, made.drop_state) == (Path("a/b"), ("a:b:1", "c:d:2"), ("counts", "a step"))
    assert made.conf == {"spark.x": "1", "spark.y": "true"}


@pytest.mark.parametrize("spec", [RunSpec(), RunSpec.of(**GIVEN), RunSpec(mode="batch", drain=True)])
def test_json_gives_the_same_spec_back(spec: RunSpec) -> None:
    assert RunSpec.from_json(spec.to_json()) == spec
    assert RunSpec.from_dict(spec.to_dict()) == spec
    assert set(json.loads(spec.to_json())) == set(run_options())


def test_the_environment_gives_the_same_spec() -> None:
    variables = {
        "PENSTOCK_RUN_ONCE": "true",
        "PENSTOCK_RUN_FOR": "20s",
        "PENSTOCK_RUN_FROM": "before",
        "PENSTOCK_RUN_CONF": "spark.x=1 spark.y=2",
        "PENSTOCK_RUN_PACKAGES": "a:b:1,c:d:2",
        "PENSTOCK_RUN_DRAIN": "0",
        "PENSTOCK_RUN_MAX_ROWS": "7",
        "PENSTOCK_RUN_CHECKPOINT": "",
        "HOME": "/",
    }
    options = {"conf": {"spark.x": 1, "spark.y": 2}, "packages": ["a:b:1", "c:d:2"], "max_rows": 7}
    assert RunSpec.from_environment(variables) == RunSpec.of(once=True, duration=20, savepoint="before", **options)
    assert RunSpec.from_environment({}) == RunSpec()


def test_a_variable_may_also_have_the_name_of_the_keyword() -> None:
    assert RunSpec.from_environment({"PENSTOCK_RUN_DURATION": "5s"}).duration == 5.0


def test_a_moment_may_name_its_zone() -> None:
    assert RunSpec.of(until_time="2024-05-01T14:00+02:00").until_time == NOON


@pytest.mark.parametrize(
    "options, says",
    [
        ({"intervall": "1s"}, "a run has no option 'intervall'; did you mean 'interval'"),
        ({"duration": "soon"}, "--for: expected a span of time such as 500ms, 20s, 5m, 1h or 1d, got 'soon'"),
        ({"until_time": "noon"}, "--until-time: expected a moment such as 2024-05-01T12:00:00, got 'noon'"),
        ({"batches": 0}, "--batches: expected a whole number of at least 1, got 0"),
        ({"batches": True}, "--batches: expected a whole number"),
        ({"batches": 1.5}, "--batches: expected a whole number"),
        ({"metrics_port": 70000}, "at most 65535"),
        ({"batch_seconds": 0}, "at least 0.1 s"),
        ({"keep_versions": 1}, "at least 2"),
        ({"drain": "perhaps"}, "--drain: expected true or false, got 'perhaps'"),
        ({"mode": "lively"}, "mode: expected one of live, once, batch, got 'lively'"),
        ({"log_level": "all"}, "--log-level: expected one of debug, info, warning, error"),
        ({"conf": ["spark.x"]}, "--conf: expected KEY=VALUE, such as spark.executor.memory=4g"),
        ({"checkpoint": 5}, "--checkpoint: expected a path, got 5"),
        ({"once": True, "batch": True}, "exclude each other"),
        ({"once": True, "mode": "batch"}, "exclude each other"),
        ({"batch": True, "fresh": True}, "leave out --fresh"),
        ({"batch": True, "checkpoint": "kept"}, "leave out --checkpoint"),
        ({"batch": True, "duration": 1, "savepoint": "s"}, "leave out --for, --from"),
        ({"mode": "batch", "until_idle": 1}, "leave out --until-idle"),
    ],
)
def test_what_is_wrong_is_refused(options: dict[str, object], says: str) -> None:
    with pytest.raises(OptionError, match=re.escape(says)):
        RunSpec.of(**options)


@pytest.mark.parametrize("text", ["{", "[]", "3", '{"mode": "once", "chekpoint": "a"}'])
def test_json_that_is_no_spec_is_refused(text: str) -> None:
    with pytest.raises(OptionError):
        RunSpec.from_json(text)


def test_a_spec_is_checked_however_it_is_made_and_does_not_change() -> None:
    with pytest.raises(OptionError, match="--batches"):
        RunSpec(batches=0)
    with pytest.raises(FrozenInstanceError):
        RunSpec().mode = "once"  # type: ignore[misc]
    given = {"spark.x": "1"}
    made = RunSpec(conf=given)
    given["spark.x"] = "2"
    assert made.conf == {"spark.x": "1"}


def test_a_checkpoint_may_be_a_url() -> None:
    spec = RunSpec.of(checkpoint="s3://bucket/flow", standby=True)
    assert spec.checkpoint_of("any") == Location("s3://bucket/flow")
    assert RunSpec.from_json(spec.to_json()) == spec
    with pytest.raises(OptionError, match=r"--standby waits for the lease of a checkpoint that is a URL.*got a/b"):
        RunSpec.of(checkpoint="a/b", standby=True)


def test_a_url_that_lacks_a_slash_is_refused() -> None:
    with pytest.raises(OptionError, match="expected a path, or a URL with two slashes such as s3://bucket/flow, got"):
        RunSpec(checkpoint="s3:/bucket/flow")  # type: ignore[arg-type]  # as a user may


def test_a_bounded_run_may_have_a_url_for_what_tasks_on_other_machines_need() -> None:
    assert str(RunSpec.of(batch=True, checkpoint="s3://bucket/flow").checkpoint) == "s3://bucket/flow"


@pytest.mark.parametrize("value", [{}, [], "maybe", 7])
@pytest.mark.parametrize("word", ["once", "batch"])
def test_a_mode_that_is_neither_said_nor_not_is_refused(word: str, value: object) -> None:
    with pytest.raises(OptionError, match=rf"--{word}: expected true or false, got"):
        RunSpec.of(**{word: value})
