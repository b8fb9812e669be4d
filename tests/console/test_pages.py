"""Every page of the console in a real browser: light and dark, on a desk and on a phone, by mouse and by keyboard, over jobs whose reports are real."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import ViewportSize

from penstock.demo.job import NAME
from penstock.graph.nodes import DEAD
from penstock.live.dead_letters.store import DEAD_LETTERS, DeadLetterStore
from penstock.web import FOLDER
from tests.breadth import some_now
from tests.console.conftest import CANARY, LETTERS, Console, Opens
from tests.waiting import wait_until

PAGES = {
    "jobs": ("#/", NAME),
    "job": (f"#/jobs/{NAME}", "hashtags"),
    "charts": (f"#/jobs/{NAME}/charts", "Watermark delay"),
    "logs": (f"#/jobs/{NAME}/logs", "lines of batches"),
    "error": ("#/jobs/hostile/error", "Traceback"),
    "dead-letters": ("#/jobs/letters/dead-letters", "picky"),
    "savepoints": (f"#/jobs/{NAME}/savepoints", "No savepoints"),
    "tasks": (f"#/jobs/{NAME}/tasks", "Needs"),
    "rules": ("#/jobs/rules/rules", "length(text) > 20"),
    "trace": ("#/jobs/words/trace", "Nothing is followed"),
    "profile": (f"#/jobs/{NAME}/profile", "Stack dump"),
    "version": (f"#/jobs/{NAME}/version", "See its plan"),
    "alerts": ("#/alerts", "lagging"),
    "pools": ("#/pools", "small"),
    "topics": ("#/topics", "posts"),
    "submit": ("#/submit", "See its plan"),
    "events": (f"#/jobs/{NAME}/events", "When"),
    "audit": ("#/audit", "submit"),
    "tokens": ("#/tokens", "Make a token"),
    "nothing": ("#/no/such/page", "Nothing here"),
    "no-job": ("#/jobs/nobody", "No such job"),
}
EXPECTED = ("the server responded with a status of 404",)
"""What a browser says of an answer that a page expects."""
DESK = ViewportSize(width=1360, height=860)
ZOOMED = [ViewportSize(width=680, height=430), ViewportSize(width=340, height=215)]
"""The desk at 200 and at 400 %."""
CHARTS_FIT = "[...document.querySelectorAll('.chart-box')].every(each => each.scrollWidth <= each.clientWidth)"
PHONE = {"viewport": {"width": 390, "height": 844}}


def shown(errors: list[str]) -> list[str]:
    return [each for each in errors if not any(word in each for word in EXPECTED)]


SCREENS = [("desk", "light"), ("phone", "dark"), ("desk", "dark"), ("phone", "light")]
"""Each size and each scheme in every run; how they go together, in the slow tier."""


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize(("size", "scheme"), some_now(SCREENS, 2))
def test_every_page_is_drawn_without_errors_and_for_everybody(
    console: Console, opens: Opens, scheme: str, size: str, part: int
) -> None:
    watched = opens(color_scheme=scheme, **(PHONE if size == "phone" else {}))
    page, folder = watched.page, os.environ.get("PENSTOCK_SHOTS")
    for name, (path, text) in list(PAGES.items())[part::4]:
        watched.go(f"{console.url}/{path}")
        page.wait_for_selector(f"text={text}", state="attached")
        assert watched.findings() == [], name
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} is wider than the screen"
        if size == "desk":
            for zoomed in ZOOMED:
                page.set_viewport_size(zoomed)
                fits = page.evaluate("document.documentElement.scrollWidth <= innerWidth")
                assert fits, f"{name} is wider than a screen of {zoomed['width']} points"
                wait_until(lambda: page.evaluate(CHARTS_FIT))
            page.set_viewport_size(DESK)
        if folder:
            page.wait_for_timeout(2_500)
            page.screenshot(path=Path(folder) / f"{name}-{size}-{scheme}.png")
    assert shown(watched.wrong) == []


def test_the_graph_moves_and_a_step_shows_its_figures(console: Console, opens: Opens) -> None:
    watched = opens()
    page = watched.go(f"{console.url}/#/jobs/{NAME}")
    page.wait_for_selector(".edge-flow.moving", state="attached")
    first = page.locator(".tile-value").nth(4).inner_text()
    wait_until(lambda: page.locator(".tile-value").nth(4).inner_text() != first)
    page.locator("g.step", has_text="check").click()
    page.wait_for_selector(".details >> text=dead letters")
    assert "check" in page.locator(".details h2").inner_text()
    page.get_by_role("button", name="As it runs").click()
    page.wait_for_selector(".step-name >> text=count@parts")
    assert page.locator("g.stage rect").count() >= 8
    page.select_option("#measure", "failures")
    page.locator("g.stream").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".details >> text=schema")
    page.fill("#sample-where", "length(author) = 5")
    page.get_by_role("button", name="Look").click()
    page.wait_for_selector(".details tbody td")
    authors = page.locator(".details .plain-table tbody tr td:first-child").all_inner_texts()
    assert authors
    assert {len(author) for author in authors} == {5}
    page.fill("#sample-where", "nothing > 1")
    page.get_by_role("button", name="Look").click()
    page.wait_for_selector(".details .bad-text >> text=nothing")
    assert [wrong for wrong in watched.wrong if "422" not in wrong] == []


def test_an_action_asks_first_and_says_what_will_happen(console: Console, opens: Opens) -> None:
    watched, client = opens(), console.client()
    client.act("resting", "resume")
    page = watched.go(f"{console.url}/#/jobs/resting")
    page.get_by_role("button", name="Pause").click()
    assert "keeps its state" in page.locator("dialog").inner_text()
    page.get_by_role("button", name="Cancel").click()
    assert client.job("resting")["wish"] == "running"
    page.get_by_role("button", name="Pause").click()
    page.locator("dialog button[type=submit]").click()
    page.wait_for_selector(".head >> text=paused")
    assert client.job("resting")["wish"] == "paused"
    assert watched.wrong == []


def test_a_viewer_looks_and_is_offered_nothing_else(console: Console, opens: Opens) -> None:
    watched = opens("viewer", "val")
    page = watched.go(f"{console.url}/#/jobs/{NAME}")
    page.wait_for_selector("text=belongs to ada")
    assert page.get_by_role("button", name="Kill").count() == 0
    assert page.locator("nav.main").inner_text().split() == ["Jobs", "Topics", "Alerts", "Pools"]


def test_text_of_jobs_stays_text(console: Console, opens: Opens) -> None:
    watched = opens()
    page = watched.go(f"{console.url}/#/jobs/hostile/error")
    page.wait_for_selector("text=Traceback")
    assert CANARY in page.locator("pre.trace").first.inner_text()
    watched.go(f"{console.url}/#/jobs/hostile/logs")
    page.wait_for_selector("li.line.raw")
    assert CANARY in page.locator(".log").inner_text()
    watched.go(f"{console.url}/#/jobs/hostile")
    page.locator("g.step", has_text="long").click()
    page.wait_for_selector(".details >> text=Settings")
    assert CANARY in page.locator(".details").inner_text()
    watched.go(f"{console.url}/#/jobs/letters/dead-letters")
    page.locator("button.link").first.click()
    page.wait_for_selector("text=Payload")
    assert CANARY in page.locator("pre.trace").last.inner_text()
    watched.go(f"{console.url}/#/topics")
    page.locator("a", has_text="posts").click()
    page.wait_for_selector("text=Newest records")
    page.fill("#where", "author contains 'onerror'")
    page.get_by_role("button", name="Look").click()
    wait_until(lambda: page.locator(".plain-table tbody tr").count() == 1)
    assert CANARY in page.locator(".plain-table").inner_text()
    watched.go(f"{console.url}/#/jobs/{CANARY.replace('/', '%2F')}")
    page.wait_for_selector("text=No such job")
    written = quote(CANARY, safe="")
    watched.go(f"{console.url}/#/jobs/hostile/logs/{written}")
    page.wait_for_selector("li.line.raw")
    assert page.input_value("input[type=search]") == CANARY
    watched.go(f"{console.url}/#/?q={written}")
    page.wait_for_selector("text=No job is like that")
    watched.go(f"{console.url}/#/jobs/letters/flow/{written}")
    page.wait_for_selector("g.step")
    assert page.evaluate("window.pwned") is None
    assert page.locator("img[src=x]").count() == 0
    assert shown(watched.wrong) == []


def test_dead_letters_are_dropped_and_sent_back_when_that_is_confirmed(console: Console, opens: Opens) -> None:
    watched, client = opens(), console.client()
    many = len(client.dead_letters("letters"))
    page = watched.go(f"{console.url}/#/jobs/letters/dead-letters")
    for action, done in (("Replay", "1 will go back"), ("Drop", "1 dropped")):
        page.locator("tbody input[type=checkbox]").first.check()
        page.get_by_role("button", name=f"{action} 1").click()
        page.locator("dialog button[type=submit]").click()
        page.wait_for_selector(f"text={done}")
    assert {"replay", "drop"} <= {entry.action for entry in console.manager.records.audit()}
    assert len(client.dead_letters("letters")) == many - 1
    assert watched.wrong == []


def test_a_dead_letter_is_edited_before_it_goes_back(console: Console, opens: Opens) -> None:
    watched, client = opens(), console.client()
    page = watched.go(f"{console.url}/#/jobs/letters/dead-letters")
    page.locator("button.link").first.click()
    page.get_by_role("button", name="Edit before replay").click()
    payload = json.loads(page.input_value("#payload"))
    page.fill("#payload", "{nonsense")
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_selector("form .bad-text >> text=no JSON")
    page.fill("#payload", json.dumps({**payload, "record": {**payload["record"], "author": "mended"}}))
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_selector(".notice >> text=changed")
    assert any(each["payload"]["record"]["author"] == "mended" for each in client.dead_letters("letters"))
    assert watched.wrong == []


def test_dead_letters_are_shown_page_by_page(console: Console, opens: Opens) -> None:
    watched, store = opens(), DeadLetterStore(console.manager.directory("letters").checkpoint / DEAD_LETTERS)
    made = {"time": datetime.now(UTC), "step": "made", "payload": '{"schema": "n bigint", "record": {"n": 1}}'}
    rows = [
        tuple((made | {"id": f"made-{n}", "cause": f"no {n}."}).get(name, "") for name in DEAD.names)
        for n in range(450)
    ]
    store.stage(rows, 999_999).commit()
    page = watched.go(f"{console.url}/#/jobs/letters/dead-letters")
    page.locator("#step option[value=made]").wait_for(state="attached")
    page.select_option("#step", "made")
    page.wait_for_selector("text=1 to 200 of 450")
    older, newer = (page.get_by_role("button", name=word) for word in ("Older", "Newer"))
    assert newer.is_disabled()
    page.locator("tbody input[type=checkbox]").first.check()
    older.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("text=201 to 400 of 450")
    assert page.locator("tbody tr").count() == 200
    assert page.locator("button.link").first.inner_text() == "no 249."
    assert page.get_by_role("button", name="Drop").is_disabled()
    page.keyboard.press("Enter")
    page.wait_for_selector("text=401 to 450 of 450")
    assert page.locator("button.link").last.inner_text() == "no 0."
    assert older.is_disabled()
    store.drop([f"made-{n}" for n in range(50, 200)])
    page.wait_for_selector("text=1 to 200 of 300")
    page.get_by_label("all shown").check()
    page.get_by_role("button", name="Drop 200").click()
    page.locator("dialog button[type=submit]").click()
    page.wait_for_selector("text=1 to 100 of 100")
    assert older.is_hidden()
    store.drop([f"made-{n}" for n in range(450)])
    assert [wrong for wrong in watched.wrong if "422" not in wrong] == []


def test_the_keyboard_stays_where_it_was_when_the_page_is_drawn_anew(console: Console, opens: Opens) -> None:
    watched, client = opens(), console.client()
    client.act("resting", "resume")
    page = watched.go(f"{console.url}/#/jobs/resting")
    focused = "document.activeElement.textContent"
    page.get_by_role("button", name="Savepoint").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#dialog-field:focus")
    client.act("resting", "pause")
    page.wait_for_selector(".head >> text=paused")
    page.keyboard.press("Escape")
    assert page.evaluate(focused) == "Savepoint"
    page.get_by_role("button", name="Resume").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Pause").wait_for()
    wait_until(lambda: page.evaluate(focused) == "Pause")
    page.get_by_role("button", name="Stop").focus()
    page.keyboard.press("Enter")
    client.act("resting", "pause")
    page.get_by_role("button", name="Resume").wait_for(state="attached")
    page.keyboard.press("Escape")
    assert page.evaluate(f"document.activeElement.localName + ' ' + {focused}") not in ("body", "button Remove")
    assert page.evaluate("document.activeElement.closest('.actions') !== null")
    assert watched.wrong == []


def test_rules_are_added_changed_and_removed_in_the_page(console: Console, opens: Opens) -> None:
    watched = opens()
    page = watched.go(f"{console.url}/#/jobs/rules/rules")
    page.get_by_role("button", name="Add a rule").click()
    page.fill("#rule-name", "short")
    page.fill("#rule-text", "if length(text) <")
    page.get_by_role("button", name="Add", exact=True).click()
    page.wait_for_selector(".notice.bad")
    page.fill("#rule-text", "if length(text) < 3 do emit to cases(author)")
    page.get_by_role("button", name="Add", exact=True).click()
    row = page.locator("tbody tr", has_text="short")
    row.get_by_role("button", name="Disable").click()
    page.locator("dialog button[type=submit]").click()
    row.locator("text=disabled").wait_for()
    row.get_by_role("button", name="Edit").click()
    page.fill("#rule-text", f"if length(text) < 4 and author <> '{CANARY}' do emit to cases(author)")
    page.get_by_role("button", name="Change").click()
    row.locator("code >> text=< 4").wait_for()
    assert page.evaluate("window.pwned") is None
    row.get_by_role("button", name="Remove").click()
    page.locator("dialog button[type=submit]").click()
    wait_until(lambda: row.count() == 0)
    assert [wrong for wrong in watched.wrong if "422" not in wrong] == []


def test_a_message_is_traced_and_the_time_of_workers_is_drawn(console: Console, opens: Opens) -> None:
    watched = opens()
    page = watched.go(f"{console.url}/#/jobs/words/trace")
    page.wait_for_selector("button.primary:not([disabled]) >> text=Trace")
    page.get_by_role("button", name="Trace", exact=True).click()
    page.wait_for_selector(".tree >> text=split")
    assert "a line" in page.locator(".tree").first.inner_text()
    watched.go(f"{console.url}/#/jobs/{NAME}/profile")
    page.wait_for_selector("button.primary:not([disabled]) >> text=Profile")
    page.get_by_role("button", name="Profile", exact=True).click()
    page.wait_for_selector(".flame-box")
    page.locator(".flame-box", has_text="batch").first.click()
    page.wait_for_selector(".flame-path >> text=batch")
    assert "penstock.kernels.map" in page.locator("[aria-label=functions]").inner_text()
    page.get_by_role("button", name="driver").click()
    page.wait_for_selector("text=threads of the driver")
    page.wait_for_selector(".flame-box >> nth=5")
    if folder := os.environ.get("PENSTOCK_SHOTS"):
        page.wait_for_timeout(6_000)
        page.screenshot(path=Path(folder) / "profile-drawn.png")
    page.locator("#waiting").check()
    page.get_by_role("button", name="Stack dump").click()
    page.wait_for_selector("pre.trace >> text=Thread")
    assert watched.findings() == []
    assert watched.wrong == []


def test_a_step_shows_what_its_tasks_measure_themselves(console: Console, opens: Opens) -> None:
    watched = opens("viewer", "val")
    page = watched.go(f"{console.url}/#/jobs/words/flow/split")
    page.wait_for_selector(".figures >> text=metric sizes.long")
    figures = page.locator(".details .figures").inner_text()
    assert "metric lines\t30" in figures
    assert "metric <b>\tx" in figures
    page.locator("g.step", has_text="count").click()
    page.wait_for_selector(".details h2 >> text=count")
    assert "metric" not in page.locator(".details .figures").inner_text()
    assert watched.wrong == []


def test_the_data_of_a_stream_is_drawn_as_bars_a_line_and_a_map_of_keys(console: Console, opens: Opens) -> None:
    watched = opens()
    page = watched.go(f"{console.url}/#/jobs/{NAME}")
    page.locator("g.stream").first.focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Look").click()
    page.wait_for_selector(".details tbody td")
    page.select_option("#sample-how", "bars")
    page.wait_for_selector(".bar-row")
    page.select_option("#sample-how", "line")
    page.wait_for_selector(".details .chart canvas")
    page.select_option("#sample-how", "map")
    page.wait_for_selector(".key-map rect")
    if folder := os.environ.get("PENSTOCK_SHOTS"):
        page.wait_for_timeout(8_000)
        page.screenshot(path=Path(folder) / "map-drawn.png")
    assert watched.findings() == []
    assert watched.wrong == []


def test_an_alert_is_set_silenced_and_removed_and_a_pool_gets_limits(console: Console, opens: Opens) -> None:
    watched = opens()
    page = watched.go(f"{console.url}/#/alerts")
    page.fill("#alert-name", "stuck")
    page.select_option("#alert-measure", "silence")
    page.get_by_role("button", name="Set", exact=True).click()
    row = page.locator("tbody tr", has_text="seconds without a batch")
    row.get_by_role("button", name="Silence").click()
    page.locator("dialog button[type=submit]").click()
    row.get_by_role("button", name="End silence").wait_for()
    row.get_by_role("button", name="Remove").click()
    page.locator("dialog button[type=submit]").click()
    wait_until(lambda: row.count() == 0)
    watched.go(f"{console.url}/#/pools")
    page.fill("#pool-name", "large")
    page.fill("#pool-cores", "64")
    page.get_by_role("button", name="Set limits").click()
    page.wait_for_selector("section.card >> text=0 of 64")
    assert watched.wrong == []


def test_another_version_is_written_planned_and_tried_in_the_page(console: Console, opens: Opens) -> None:
    watched, client = opens(), console.client()
    client.act("resting", "resume")
    page = watched.go(f"{console.url}/#/jobs/resting/version")
    wait_until(lambda: "trending_job" in page.input_value("#text"))
    page.fill("#text", "flow = 1 +")
    page.get_by_role("button", name="See its plan").click()
    page.wait_for_selector("pre.bad-text:not([hidden])")
    page.fill("#text", LETTERS.replace('"letters"', '"second"'))
    page.get_by_role("button", name="See its plan").click()
    page.wait_for_selector(".step-name >> text=picky")
    page.get_by_role("button", name="Upgrade").click()
    assert "goes on, and nothing is lost" in page.locator("dialog").inner_text()
    page.locator("dialog button[type=submit]").click()
    page.wait_for_selector(".badge >> text=/on trial|went back|settled/")
    client.act("resting", "pause")
    assert [wrong for wrong in watched.wrong if "422" not in wrong] == []


def test_a_flow_is_written_planned_and_submitted_in_the_page(console: Console, opens: Opens) -> None:
    watched = opens("developer", "dev")
    page = watched.go(f"{console.url}/#/submit")
    page.fill("#text", "SELECT nothing FROM nowhere")
    page.get_by_role("button", name="See its plan").click()
    page.wait_for_selector("pre.bad-text >> text=nowhere")
    page.select_option("#kind", "flow.py")
    page.fill("#text", LETTERS.replace("letters", "by-hand"))
    page.get_by_role("button", name="See its plan").click()
    page.wait_for_selector(".step-name >> text=picky")
    page.get_by_role("button", name="Submit as a job").click()
    page.locator("dialog button[type=submit]").click()
    page.wait_for_selector("h1 >> text=by-hand")
    assert console.client().job("by-hand")["owner"] == "dev"


def test_a_flow_in_sql_is_planned_and_runs(console: Console, opens: Opens, tmp_path: Path) -> None:
    watched, client = opens("developer", "dev"), console.client()
    page = watched.go(f"{console.url}/#/submit")
    page.fill(
        "#text",
        f"""
        CREATE TABLE posts (author STRING, text STRING, `second` DOUBLE)
        WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'json');
        CREATE TABLE out (author STRING, many BIGINT) WITH ('connector' = 'print');
        INSERT INTO out SELECT author, count(*) AS many FROM posts GROUP BY author;
        """,
    )
    run = page.get_by_role("button", name="Submit as a job")
    page.get_by_role("button", name="See its plan").click()
    page.wait_for_selector(".step-name >> text=posts")
    assert "shuffle" in page.locator("section.card p.muted").inner_text()
    page.fill("#name", "in-sql")
    page.fill("#text", page.input_value("#text") + "-- changed")
    assert run.is_disabled()  # what was planned is what runs
    page.get_by_role("button", name="See its plan").click()
    run.click()
    page.locator("dialog button[type=submit]").click()
    page.wait_for_selector("h1 >> text=in-sql")
    page.wait_for_selector(".step-name >> text=posts")
    wait_until(lambda: (client.job("in-sql")["rows"] or 0) > 0)
    page.wait_for_selector(".head >> text=running")
    assert watched.wrong == []


def test_a_record_is_put_into_a_topic_and_seen_there(console: Console, opens: Opens) -> None:
    watched = opens("operator", "op")
    page = watched.go(f"{console.url}/#/topics")
    page.locator("a", has_text="posts").click()
    page.wait_for_selector("text=Newest records")
    page.fill("#key", "by-hand")
    page.fill("#value", json.dumps({"author": f"put {CANARY}"}))
    page.get_by_role("button", name="Put", exact=True).click()
    said = page.locator(".notice", has_text="put at").inner_text()
    page.fill("#where", "author contains 'put '")
    page.get_by_role("button", name="Look").click()
    row = page.locator("[aria-label=records] tbody tr")
    wait_until(lambda: row.count() == 1)
    cells = row.locator("td").all_inner_texts()
    assert cells[1] in said
    assert (cells[2], cells[3]) == ("by-hand", f"put {CANARY}")
    assert page.evaluate("window.pwned") is None
    viewer = opens("viewer", "val")
    viewer.go(page.url)
    viewer.page.wait_for_selector("[aria-label=partitions] tbody tr")
    assert viewer.page.get_by_role("button", name="Put", exact=True).count() == 0
    assert watched.wrong == []


def test_everything_is_reached_by_keyboard(console: Console, opens: Opens) -> None:
    watched = opens()
    page = watched.go(f"{console.url}/#/")
    page.wait_for_selector(f"text={NAME}")

    def is_searching() -> bool:
        """The key is heard once the page listens to it."""
        if page.locator("input:focus").count() == 0:
            page.keyboard.press("/")
        return page.locator("input:focus").count() == 1

    wait_until(is_searching)
    page.keyboard.type("words")  # no other job has it in its name or its flow, whatever other tests made of theirs
    wait_until(lambda: page.locator("tbody tr").count() == 1)
    page.locator("a:text-is('words')").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("g.step")
    page.locator("g.step").nth(1).focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".details h2")
    page.locator("h1").click()
    page.keyboard.press("d")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_a_link_works_once_and_a_token_signs_in(console: Console, opens: Opens) -> None:
    watched = opens()
    link = console.client().sign_in_link()
    watched.go(link)
    page = watched.page
    page.get_by_role("button", name="Sign out").wait_for()
    page.goto(link)
    page.wait_for_selector("text=You are signed in already; this link was used")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_selector("text=Or enter a token")
    watched.go(link)
    page.wait_for_selector("text=this link was used")
    assert "sign-in" not in page.url
    page.fill("#token", console.client("viewer", "val").token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_selector("text=val · viewer")


def test_a_server_that_is_gone_is_said_and_the_page_goes_on_when_it_is_back(console: Console, opens: Opens) -> None:
    watched = opens()
    page = watched.go(f"{console.url}/#/jobs/{NAME}/tasks")
    page.wait_for_selector(".live.live")
    page.route("**/api/**", lambda route: route.abort())
    page.wait_for_selector("#away >> text=does not answer since")
    assert watched.findings() == []
    page.evaluate("location.hash = '#/jobs/rules'")
    page.wait_for_selector("text=the server does not answer")
    page.unroute("**/api/**")
    page.wait_for_selector("#away", state="hidden")
    page.wait_for_selector(".head >> text=running")
    page.wait_for_selector("g.step")
    assert [wrong for wrong in watched.wrong if "ERR_FAILED" not in wrong] == []


def test_who_signs_in_again_is_on_the_page_where_the_session_ended(console: Console, opens: Opens) -> None:
    watched = opens("viewer", "once")
    page = watched.go(f"{console.url}/#/jobs/{NAME}")
    page.wait_for_selector("g.step")
    for token in console.manager.tokens.all():
        if token.owner == "once":
            console.manager.tokens.revoke(token.id)
    page.wait_for_selector("text=Your session has ended")
    assert watched.findings() == []
    page.fill("#token", console.client("viewer", "val").token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_selector("g.step")
    assert [wrong for wrong in watched.wrong if "401" not in wrong] == []


def test_a_link_leads_to_a_step_a_time_and_a_search(console: Console, opens: Opens) -> None:
    watched = opens()
    page = watched.go(f"{console.url}/#/jobs/{NAME}/flow/hashtags")
    page.wait_for_selector(".details h2 >> text=hashtags")
    page.locator("g.step", has_text="check").click()
    page.wait_for_selector(".details h2 >> text=check")
    assert page.url.endswith("/flow/check")
    page = watched.go(f"{console.url}/#/jobs/{NAME}/charts/1h")
    assert page.locator(".chip[aria-pressed=true]").inner_text() == "1 hour"
    page.wait_for_selector("text=/a batch takes .*p50.*p95.*p99/")
    page = watched.go(f"{console.url}/#/?q=words")
    wait_until(lambda: page.locator("tbody tr").count() == 1)
    page = watched.go(f"{console.url}/#/jobs/%")
    page.wait_for_selector("text=No such job")
    assert shown(watched.wrong) == []


def test_times_are_in_the_zone_of_who_looks_by_the_clock_of_the_server(console: Console, opens: Opens) -> None:
    watched = opens(timezone_id="Asia/Kathmandu")
    page = watched.page
    page.add_init_script("const now = Date.now; Date.now = () => now() - 7_200_000;")
    watched.go(f"{console.url}/#/jobs/letters/dead-letters")
    page.wait_for_selector("tbody tr")
    letter = console.client().dead_letters("letters")[0]
    here = datetime.fromisoformat(letter["time"]).astimezone(ZoneInfo("Asia/Kathmandu"))
    assert page.locator("tbody td").nth(1).inner_text() == f"{here:%Y-%m-%d %H:%M:%S}"
    assert "UTC+05:45" in page.locator("#top").inner_text()
    page.wait_for_selector("text=/paused for [1-9]/")
    assert watched.wrong == []


def test_names_fit_and_nothing_moves_for_those_who_want_it_still(console: Console, opens: Opens) -> None:
    watched, long = opens(reduced_motion="reduce"), "a_step_whose_name_is_much_too_long_for_the_box_of_it"
    page = watched.go(f"{console.url}/#/submit")
    page.select_option("#kind", "flow.py")
    page.fill("#text", LETTERS.replace('"picky"', f'"{long}"'))
    page.get_by_role("button", name="See its plan").click()
    page.wait_for_selector(".step-name >> text=/^a_step.*…/")
    assert page.get_by_role("button", name=re.compile(f"^{long}: map")).count() == 1
    widths = page.eval_on_selector_all(".step-name, .step-kind", "all => all.map(each => each.getBBox().width)")
    assert max(widths) <= 136
    watched.go(f"{console.url}/#/jobs/{NAME}")
    page.wait_for_selector(".edge-flow.moving", state="attached")
    moving = (
        "[...document.querySelectorAll('*')].filter(each => getComputedStyle(each).animationName !== 'none').length"
    )
    assert page.evaluate(moving) == 0
    assert watched.wrong == []


def test_a_page_of_another_origin_changes_nothing_and_reads_nothing(console: Console, opens: Opens) -> None:
    watched = opens()
    page, port = watched.page, console.url.rsplit(":", 1)[1]
    page.route("http://127.0.0.1:1/", lambda route: route.fulfill(body="<h1>evil</h1>", content_type="text/html"))
    page.goto("http://127.0.0.1:1/")
    attack = """async (url) => {
      const tried = [];
      for (const init of [{method: 'POST', body: '{}', mode: 'no-cors'}, {method: 'POST', body: '{}', headers: {'x-penstock-console': '1'}}, {}]) {
        try { const got = await fetch(url + (init.method ? '/stop' : ''), {...init, credentials: 'include'}); tried.push(got.type + ' ' + got.status); } catch { tried.push('refused'); }
      }
      return tried;
    }"""
    tried = page.evaluate(attack, f"http://127.0.0.1:{port}/api/v1/jobs/{NAME}")
    assert tried[0] in ("refused", "opaque 0")
    assert tried[1:] == ["refused", "refused"]
    assert console.client().job(NAME)["wish"] == "running"
    answer = page.context.request.get(f"{console.url}/api/v1/jobs", headers={"Host": "evil.example"})
    assert answer.status == 421


def test_the_libraries_are_those_that_are_noted() -> None:
    noted = {
        file: digest
        for each in json.loads((FOLDER.parent / "vendored.json").read_text())
        for file, digest in each["files"].items()
    }
    there = {file.name: sha256(file.read_bytes()).hexdigest() for file in (FOLDER / "vendor").iterdir()}
    assert there == noted
