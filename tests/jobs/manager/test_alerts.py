"""Alerts: what lasts is told once, to those who are to know, and so is its end."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import OptionError, UnknownName
from penstock.jobs.manager.alerts.center import AlertCenter
from penstock.jobs.manager.alerts.measures import disk_used, measures_of
from penstock.jobs.manager.alerts.notify import MailServer, Notifier
from penstock.jobs.manager.alerts.rule import AlertRule
from penstock.jobs.manager.alerts.watch import CALM, AlertWatch
from penstock.jobs.manager.job import Job
from penstock.jobs.manager.manager import JobState, Manager
from penstock.jobs.manager.processes.course import Course
from penstock.jobs.manager.store.history import Point
from tests.waiting import wait_until

LAG = AlertRule("behind", "lag", 100.0, seconds=30.0)
JOB = Job("count", "ada", "0" * 64, "count.py")


def test_what_lasts_is_told_once_and_so_is_its_end() -> None:
    watch, told = AlertWatch(), []
    looks = (
        (0, 500),
        (10, 500),
        (29, 50),
        (30, 500),
        (60, 400),
        (70, 300),
        (80, 100),
        (90, 0),
        (139, 7),
        (140, 8),
        (150, 0),
    )
    for now, lag in looks:
        told += [(now, n.what, n.value) for n in watch.look([LAG], {"count": {"lag": float(lag)}}, float(now))]
    assert told == [(60, "firing", 400.0), (140, "resolved", 8.0)]


def test_what_comes_and_goes_is_told_once() -> None:
    watch, told = AlertWatch(), []
    for now in range(0, 3_600, 5):
        lag = 500.0 if now % 10 == 0 else 50.0
        told += watch.look([replace(LAG, seconds=0.0)], {"count": {"lag": lag}}, float(now))
        assert [n.value for n in watch.firing.values()] == [lag]
    assert [n.what for n in told] == ["firing"]


def test_what_fires_does_so_while_its_measure_is_not_known() -> None:
    watch, rule = AlertWatch(), replace(LAG, seconds=10.0)
    watch.look([rule], {"a": {"lag": 500.0}}, 0.0)
    assert watch.look([rule], {"a": {"failures": 1.0}}, 11.0) == []
    assert [n.what for n in watch.look([rule], {"a": {"lag": 700.0}}, 12.0)] == ["firing"]
    for now in range(13, 500):
        assert watch.look([rule], {"a": {"failures": 1.0}}, float(now)) == [], "its driver is started anew"
    over = watch.look([rule], {"a": {}}, 501.0)
    assert [str(n) for n in over] == ["resolved: behind, job a: it is watched no more (limit 100)"]


def test_an_alert_of_a_job_that_is_gone_or_of_a_rule_that_is_gone_is_over() -> None:
    for rules, measures in (([], {"a": {"lag": 500.0}}), ([LAG], {}), ([LAG], {"a": {}})):
        watch = AlertWatch()
        watch.look([replace(LAG, seconds=0.0)], {"a": {"lag": 500.0}}, 0.0)
        assert [n.what for n in watch.look(rules, measures, 1.0)] == ["resolved"]  # type: ignore[arg-type]
        assert not watch.firing


@given(st.lists(st.tuples(st.floats(0.1, 40.0), st.booleans()), max_size=40))
def test_notices_of_an_alert_begin_and_end_in_turns_and_only_what_lasted_begins(
    looks: list[tuple[float, bool]],
) -> None:
    watch, now, since, low, told = AlertWatch(), 0.0, None, 0.0, []
    is_firing = False
    for wait, is_high in looks:
        now += wait
        since = (now if since is None else since) if is_high else None
        low = 0.0 if is_high else low or now
        is_firing = (since is not None and now - since >= 30.0) or (is_firing and not (low and now - low >= CALM))
        for notice in watch.look([LAG], {"a": {"lag": 101.0 if is_high else 100.0}}, now):
            told.append(notice.what)
            assert (since is not None and now - since >= 30.0) if notice.what == "firing" else now - low >= CALM
        assert (("behind", "a") in watch.firing) == is_firing
    assert told == ["firing", "resolved"] * (len(told) // 2) + ["firing"] * (len(told) % 2)


def test_rules_are_about_the_jobs_that_they_name() -> None:
    watch, rule = AlertWatch(), replace(LAG, seconds=0.0, jobs="team-*")
    told = watch.look([rule], {"team-a": {"lag": 500.0}, "other": {"lag": 500.0}}, 0.0)
    assert [n.job for n in told] == ["team-a"]
    assert str(told[0]) == "firing: behind, job team-a: 500 records wait (limit 100)"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "Up/.."}, "the name of an alert"),
        ({"measure": "mood"}, "expected a measure, lag"),
        ({"above": -1.0}, "a value of 0 or more"),
        ({"above": float("nan")}, "a value of 0 or more"),
        ({"seconds": 1e9}, "up to 7 days"),
        ({"severity": "loud"}, "expected info, warning"),
        ({"to": ()}, "1 to 10 targets"),
        ({"to": ("ftp://x",)}, "got something else"),
        ({"to": ("file:///etc/passwd",)}, "got something else"),
        ({"to": ("http://",)}, "got something else"),
        ({"to": ("http://[",)}, "got something else"),
        ({"to": ("http://x\r\nHost: y",)}, "got something else"),
        ({"to": ("mailto:a@b\r\nBcc: c@d",)}, "an address that is none"),
        ({"to": ("mailto:",)}, "an address that is none"),
    ],
)
def test_what_is_no_rule_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        replace(LAG, **changes)


def test_measures_of_a_job() -> None:
    progress: dict[str, object] = {
        "phase": "running",
        "lags": [["in", "records", 30], ["in", "bytes", 9], ["b", "records", 12]],
        "last": {"finished": 900.0},
    }
    state = JobState(JOB, Course("running", 1, since=500.0), progress, True)
    recent = Point(0.0, {"rows": 200.0, "late:count": 4.0, "dead:count": 1.0, "dead:other": 1.0})
    found = measures_of(state, recent, 1_000.0)
    assert found == {"failures": 0.0, "lag": 42.0, "silence": 100.0, "late": 2.0, "dead": 1.0}
    idle = measures_of(replace(state, progress={**progress, "lags": []}), None, 1_000.0)
    assert (idle["silence"], "late" in idle) == (0.0, False)
    stuck = measures_of(replace(state, progress={"under_way": "batch 0"}), None, 1_000.0)
    assert stuck["silence"] == 500.0
    held = measures_of(replace(state, course=Course("held", 1, failures=5)), None, 0.0)
    assert held == {"failures": 5.0}
    assert measures_of(replace(state, job=JOB.wished("paused")), None, 0.0) == {}
    assert measures_of(replace(state, course=Course("finished", 1)), recent, 1_000.0) == {}


@contextmanager
def receiving(failures: int = 0) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server that keeps what is posted to it, after it has failed so many times."""
    got: list[dict[str, Any]] = []
    left = [failures]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            left[0] -= 1
            if left[0] < 0:
                got.append(json.loads(body))
            self.send_response(500 if left[0] >= 0 else 204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook/secret", got
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Mailbox(socketserver.StreamRequestHandler):
    """As much of SMTP as a message takes."""

    def handle(self) -> None:
        mails: list[str] = self.server.mails  # type: ignore[attr-defined]
        self.wfile.write(b"220 here\r\n")
        lines: list[str] | None = None
        for raw in self.rfile:
            line = raw.decode().rstrip("\r\n")
            if lines is not None:
                if line != ".":
                    lines.append(line)
                    continue
                mails.append("\n".join(lines))
                lines = None
            elif line.upper() == "DATA":
                lines = []
                self.wfile.write(b"354 go on\r\n")
                continue
            self.wfile.write(b"221 bye\r\n" if line.upper() == "QUIT" else b"250 ok\r\n")


@contextmanager
def mailing() -> Iterator[tuple[MailServer, list[str]]]:
    """A mail server, and what it was given."""
    with socketserver.TCPServer(("127.0.0.1", 0), Mailbox) as smtp:
        mails: list[str] = []
        smtp.mails = mails  # type: ignore[attr-defined]
        thread = threading.Thread(target=smtp.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            made = MailServer.of(f"127.0.0.1:{smtp.server_address[1]}", "jobs@example.org")
            yield replace(made, pause=0.01), mails
        finally:
            smtp.shutdown()
            thread.join()


def test_people_are_told_by_http_and_by_mail_and_tried_again(manager: Manager) -> None:
    with mailing() as (mail, mails), receiving(failures=2) as (url, got):
        center = AlertCenter(manager, Notifier(mail, frozenset({"127.0.0.1"})))
        center.put(
            AlertRule("full", "disk", 0.0, to=("log", url, "mailto:ada@example.org"), severity="critical"), "root"
        )
        assert [n.job for n in center.look(10.0)] == [""]
        assert center.look(11.0) == []
        wait_until(lambda: len(got) == 1 and len(mails) == 1)
    assert (got[0]["rule"], got[0]["what"], got[0]["severity"]) == ("full", "firing", "critical")
    assert "the disk is" in got[0]["text"]
    assert "To: ada@example.org" in mails[0]
    assert "Subject: [penstock] firing: full" in mails[0]
    assert [n.rule for n in center.firing()] == ["full"]
    center.remove("full", "root")
    assert [n.what for n in center.look(12.0)] == ["resolved"]
    with pytest.raises(UnknownName, match="there is no alert 'full'"):
        center.remove("full", "root")


def test_what_is_to_be_mailed_to_somebody_at_once_is_one_mail() -> None:
    with mailing() as (mail, mails):
        notifier, watch = Notifier(mail), AlertWatch()
        rule = replace(LAG, seconds=0.0, to=("mailto:ada@example.org",))
        rules = [rule, replace(rule, name="stuck", measure="silence")]
        jobs = {f"job-{n:03}": {"lag": 500.0, "silence": 900.0} for n in range(200)}
        notifier.tell(rules, watch.look(rules, jobs, 0.0))  # type: ignore[arg-type]
        wait_until(lambda: len(mails) == 1)
        notifier.tell(rules, watch.look(rules, {}, 1.0)[:1])
        wait_until(lambda: len(mails) == 2)
    assert "Subject: [penstock] 400 firing: behind, stuck" in mails[0]
    assert all(f"job {name}: 500 records wait" in mails[0] for name in jobs)
    assert "Subject: [penstock] resolved: behind job-000" in mails[1]
    assert all(f"\n{header}: " in mails[1] for header in ("Date", "Message-ID"))


def test_a_target_that_never_answers_ends_nothing(manager: Manager, caplog: pytest.LogCaptureFixture) -> None:
    notifier = Notifier(replace(MailServer(), pause=0.0), frozenset({"127.0.0.1"}))
    center = AlertCenter(manager, notifier)
    center.put(AlertRule("full", "disk", 0.0, to=("http://127.0.0.1:9/secret-path",)), "root")
    center.look(1.0)
    wait_until(lambda: "could not be sent (" in caplog.text)
    assert "secret-path" not in caplog.text
    assert 0.0 < disk_used(manager.root) <= 100.0


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "a.localhost.", "10.0.0.7", "[::1]", "[fd00::1]", "[::ffff:10.1.1.1]"]
)
def test_nobody_inside_is_told_who_was_not_named(manager: Manager, host: str) -> None:
    rule = AlertRule("inside", "disk", 0.0, to=(f"http://{host}:9/secret-path",))
    with pytest.raises(OptionError, match="start the server with --alert-host HOST") as caught:
        AlertCenter(manager).put(rule, "root")
    assert "secret-path" not in str(caught.value)
    assert AlertCenter(manager).rules() == []
    AlertCenter(manager, Notifier(hosts=frozenset({host.strip("[]")}))).put(rule, "root")


def test_a_name_that_leads_inside_is_told_in_the_log(
    manager: Manager, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.168.1.1", 80))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *given, **named: inside)
    center = AlertCenter(manager, Notifier(replace(MailServer(), pause=0.0)))
    center.put(AlertRule("full", "disk", 0.0, to=("http://hooks.example.org/secret-path",)), "root")
    center.look(1.0)
    wait_until(lambda: "the address 192.168.1.1 is inside" in caplog.text)
    assert "secret-path" not in caplog.text


def test_a_mail_server_is_checked() -> None:
    for address, sender in (("nowhere", "a@b"), ("h:0", "a@b"), ("h:99999", "a@b"), ("h:25", "not an address")):
        with pytest.raises(OptionError, match="expected"):
            MailServer.of(address, sender)
