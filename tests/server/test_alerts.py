"""Alerts and metrics through the API."""

from __future__ import annotations

import json
import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.server.conftest import Service, phase_becomes

LAST = "penstock_job_last_batch_timestamp_seconds"
DASHBOARD = Path(__file__).parents[2] / "docs" / "grafana" / "penstock.json"


def test_an_alert_is_set_and_shown_without_its_secrets(service: Service) -> None:
    client = service.client("admin")
    made = client.set_alert("behind", {"measure": "lag", "above": 100, "to": ["https://hooks.example.org/T0/canary-7"]})
    assert made["to"] == ["https://hooks.example.org/..."]
    listed = service.client("viewer").alerts()
    assert [rule["name"] for rule in listed["rules"]] == ["behind"]
    assert "canary-7" not in json.dumps(listed)
    status, _, body = service.ask(
        "PUT", "/api/v1/alerts/bad", service.token("admin"), {"measure": "lag", "above": 1, "to": ["ftp://canary-8"]}
    )
    assert status in (400, 422)
    assert b"canary-8" not in body
    client.remove_alert("behind")
    assert client.alerts()["rules"] == []


def scrape(service: Service) -> dict[str, dict[tuple[str, ...], float]]:
    status, headers, body = service.ask("GET", "/api/v1/metrics", service.token("viewer"))
    assert status == 200
    assert {k.lower(): v for k, v in headers.items()}["content-type"].startswith("text/plain; version=0.0.4")
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(body.decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def test_prometheus_gets_the_figures_of_all_jobs(service: Service, bundle: str) -> None:
    client = service.client("developer", "ada")
    client.submit("measured", bundle, "count.py")
    phase_becomes(client, "measured", "running")
    found = scrape(service)
    assert found["penstock_job_up"]["measured", "ada"] == 1.0
    assert found["penstock_job_rows_total"]["measured", "ada"] == 10.0
    assert found["penstock_job_batches_total"]["measured", "ada"] == 1.0
    assert found["penstock_job_batch_seconds"]["measured", "ada"] == 0.5
    assert found["penstock_jobs"]["running",] >= 1.0


def test_prometheus_gets_what_steps_keep_and_put_aside_and_how_the_server_is(service: Service, bundle: str) -> None:
    client = service.client("developer", "ada")
    service.client().put_pool("small", cores=4)
    client.submit("kept", bundle, "count.py")
    phase_becomes(client, "kept", "running")
    client.act("kept", "pause")
    phase_becomes(client, "kept", "paused")
    assert ("kept", "ada") not in scrape(service).get(LAST, {})
    directory = service.manager.directory("kept")
    figures = {"dead:a": 2, "dead:b": 3, "late:a": 7, "in:a": 100}
    told = {
        "totals": {"figures": figures, "measured": {"kept:a": 4, "kept:b": 5, "bytes:a": 6}},
        "last": {"finished": 9.0},
    }
    directory.write_progress({**directory.progress(), **told})
    service.manager.reconcile()
    found = scrape(service)
    own = {name: values["kept", "ada"] for name, values in found.items() if ("kept", "ada") in values}
    assert own[LAST] == 9.0
    assert (own["penstock_job_dead_letters_total"], own["penstock_job_late_total"]) == (5.0, 7.0)
    assert (own["penstock_job_state_entries"], own["penstock_job_state_bytes"]) == (9.0, 6.0)
    assert found["penstock_server_leads"][()] == 1.0
    assert found["penstock_pool_waiting"]["small",] == 0.0
    assert found["process_resident_memory_bytes"][()] > 1 << 20


def test_every_metric_of_the_dashboard_is_there(service: Service, bundle: str) -> None:
    asked = {
        name
        for panel in json.loads(DASHBOARD.read_text())["panels"]
        for target in panel.get("targets", ())
        for name in re.findall(r"penstock_[a-z_]+", target["expr"])
    }
    assert len(asked) >= 8
    service.client("developer", "ada").submit("shown", bundle, "count.py")
    missing = asked - {*scrape(service)}
    assert missing <= {
        "penstock_job_lag",
        "penstock_job_last_batch_timestamp_seconds",
    }  # a job without sources and batches has none
