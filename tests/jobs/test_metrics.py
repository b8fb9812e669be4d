"""What Prometheus fetches."""

from __future__ import annotations

import re
import sys
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from penstock.errors import SetupError
from penstock.graph.state.active_runs import RunFigures
from penstock.jobs.metrics import Metrics
from penstock.kernels.counts import StepLoad
from penstock.live.report import BatchReport


def report(batch: int, rows: int) -> BatchReport:
    lag = {"lines": {"files": 4}}
    return BatchReport(batch, {"lines": rows}, {"split": (rows, 3 * rows)}, {"plan": 0.1, "trigger": 0.3}, lag, 1234.5)


@pytest.fixture
def served() -> Iterator[tuple[Metrics, str]]:
    metrics = Metrics("words", ["lines"])
    port = metrics.serve(0)
    yield metrics, f"http://127.0.0.1:{port}/metrics"
    metrics.close()


def fetch(address: str) -> dict[str, float]:
    text = urllib.request.urlopen(address, timeout=300).read().decode()
    pairs = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def test_a_flow_is_up_before_its_first_batch(served: tuple[Metrics, str]) -> None:
    found = fetch(served[1])
    assert found['penstock_up{flow="words"}'] == 1
    assert found['penstock_batches_total{flow="words"}'] == 0
    assert found['penstock_rows_in_total{flow="words",source="lines"}'] == 0


def test_rows_batches_times_and_lag_add_up(served: tuple[Metrics, str]) -> None:
    metrics, address = served
    metrics(report(0, 10))
    metrics(report(1, 5))
    found = fetch(address)
    assert found['penstock_batches_total{flow="words"}'] == 2
    assert found['penstock_rows_in_total{flow="words",source="lines"}'] == 15
    assert found['penstock_rows_total{direction="in",flow="words",step="split"}'] == 15
    assert found['penstock_rows_total{direction="out",flow="words",step="split"}'] == 45
    assert found['penstock_batch_seconds_count{flow="words"}'] == 2
    assert found['penstock_batch_seconds_sum{flow="words"}'] == pytest.approx(0.6)
    assert found['penstock_batch_phase_seconds{flow="words",phase="plan"}'] == 0.1
    assert found['penstock_last_batch_timestamp_seconds{flow="words"}'] == 1234.5
    assert found['penstock_lag{flow="words",source="lines",unit="files"}'] == 4


def test_runs_of_patterns_are_shown_while_they_are_under_way(served: tuple[Metrics, str]) -> None:
    metrics, address = served
    runs = RunFigures(runs=3, keys=2, events=4, bytes=900, waiting={"sent": 2, "paid": 1}, oldest=5_000_000)
    metrics(BatchReport(0, active_runs={"orders": {"unpaid": runs}}))
    of = 'flow="words",pattern="unpaid",step="orders"'
    found = fetch(address)
    assert found[f'penstock_active_runs{{{of},waits_for="sent"}}'] == 2
    assert found[f'penstock_active_runs{{{of},waits_for="paid"}}'] == 1
    assert found[f"penstock_held_events{{{of}}}"] == 4
    assert found[f"penstock_run_bytes{{{of}}}"] == 900
    assert found[f"penstock_oldest_run_timestamp_seconds{{{of}}}"] == 5
    metrics(BatchReport(1))
    assert not [name for name in fetch(address) if "unpaid" in name]


def test_late_and_bad_records_and_the_watermark_are_shown(served: tuple[Metrics, str]) -> None:
    metrics, address = served
    for batch in range(2):
        metrics(BatchReport(batch, late={"window": 3}, bad={"clicks@time": 1}, watermarks={"clicks@time": 5_500_000}))
    found = fetch(address)
    assert found['penstock_late_total{flow="words",step="window"}'] == 6
    assert found['penstock_bad_time_total{flow="words",step="clicks@time"}'] == 2
    assert found['penstock_watermark_timestamp_seconds{flow="words",step="clicks@time"}'] == 5.5


def test_what_spouts_and_bolts_measure_and_report_is_shown(served: tuple[Metrics, str]) -> None:
    """The last value of a metric, whatever it was before; errors add up."""
    metrics, address = served
    for lines in (3, 5):
        measured = {"split": {1: {"lines": lines, "sizes": {"long": 2}, "note": "of no number"}}}
        metrics(BatchReport(0, metrics=measured, errors={"split": {0: ["a", "b"], 1: ["c"]}}))
    found = fetch(address)
    of = 'component="split",flow="words"'
    assert found[f'penstock_component_metric{{{of},metric="lines",task="1"}}'] == 5
    assert found[f'penstock_component_metric{{{of},metric="sizes.long",task="1"}}'] == 2
    assert found[f"penstock_reported_errors_total{{{of}}}"] == 6
    assert not [name for name in found if "note" in name]


def test_a_taken_port_says_so(served: tuple[Metrics, str]) -> None:
    port = int(served[1].split(":")[2].split("/")[0])
    with pytest.raises(SetupError, match="--metrics-port 0 takes a free port"):
        Metrics("other").serve(port)


def test_without_the_package_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(SetupError, match=r"pip install 'penstock\[metrics\]'"):
        Metrics("words")


HOSTILE = 'a "quoted"\\ name\nof two lines'


def test_metrics_are_named_as_prometheus_has_it_and_names_of_users_stay_labels() -> None:
    metrics = Metrics(HOSTILE, [HOSTILE])
    runs = RunFigures(runs=3, keys=2, events=4, bytes=900, waiting={HOSTILE: 2}, oldest=5_000_000)
    counts = {HOSTILE: 3}
    metrics(
        BatchReport(
            0,
            counts,
            {HOSTILE: (1, 2)},
            {"trigger": 0.3},
            {HOSTILE: {"files": 4}},
            1234.5,
            late=counts,
            bad=counts,
            dead=counts,
            skipped=counts,
            shed=counts,
            watermarks={HOSTILE: 5_500_000},
            active_runs={HOSTILE: {HOSTILE: runs}},
            load={HOSTILE: StepLoad(seconds=1.0, tasks=2, skew=1.25, longest=0.5)},
            state={HOSTILE: {"rows": 1, "bytes": 2}},
            timers=counts,
        )
    )
    families = list(text_string_to_metric_families(generate_latest(metrics.registry).decode()))
    assert len(families) >= 20
    for family in families:
        assert re.fullmatch("penstock(_[a-z]+)+", family.name), family.name
        assert family.documentation[:1].isupper() or family.documentation[:1].isdigit(), family.name
        assert "unix" not in family.documentation.lower() or family.name.endswith("_timestamp_seconds"), family.name
        assert {sample.labels["flow"] for sample in family.samples} <= {HOSTILE}, family.name
    assert all(f.type == "counter" for f in families if any(s.name.endswith("_total") for s in f.samples))
