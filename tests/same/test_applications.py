"""The applications among the examples: what they find in their data, on every runtime."""

from __future__ import annotations

import math
import runpy
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.errors import UnknownName
from penstock.testing import run_local, run_spark

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
Answers = dict[str, list[Any]]


@cache
def module(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


def enrolment() -> Any:
    return module("identity")["enrolled"](**{"identity.speed": math.inf})


FLOWS: dict[str, Callable[[], Any]] = {
    "moving_average": lambda: ps.sql_flow((EXAMPLES / "moving_average.sql").read_text()),
    "water_network": lambda: module("water_network")["flow"],
    "identity": enrolment,
    "glucose": lambda: module("glucose")["flow"],
    "transients": lambda: module("transients")["flow"],
    "card_fraud": lambda: module("card_fraud")["bounded"],
    "linear_road": lambda: module("linear_road")["flow"],
    "web_analytics": lambda: ps.flow_file(EXAMPLES / "web_analytics.yaml"),
}


@pytest.fixture(autouse=True)
def top(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flow file and a file of SQL name their data as seen from the top of a checkout."""
    monkeypatch.chdir(ROOT)


def answers(made: Any) -> Answers:
    """The rows of each sink, in some order; of running totals the last ones."""

    def rows(sink: str) -> list[Any]:
        try:
            return list(made.table(sink).values())
        except UnknownName:
            return list(made[sink])

    return {sink: sorted((tuple(row) for row in rows(sink)), key=repr) for sink in made}


@cache
def found(name: str) -> Answers:
    return answers(run_local(FLOWS[name]()))


def shown(rows: list[Any], *places: int) -> Counter[Any]:
    """How often each choice of values stands in the rows."""
    return Counter(tuple(row[place] for place in places) for row in rows)


def test_the_average_of_the_last_hour() -> None:
    def celsius(n: int) -> float:
        return round(12 + n % 3 + 6 * math.sin(n / 3 * math.pi / 720) + math.cos(n * 7), 2)

    made = {(station, until.timestamp()): (mean, n) for station, until, mean, n in found("moving_average")["averages"]}
    begin, wanted = 1767225600, {}
    for until in range(10, 2880 + 60, 10):
        for station in range(3):
            hour = [celsius(3 * minute + station) for minute in range(max(until - 60, 0), min(until, 2880))]
            wanted[f"station {station}", begin + 60 * until] = (sum(hour) / len(hour), len(hour))
    assert made.keys() == wanted.keys()
    for key, (mean, n) in wanted.items():
        assert made[key][1] == n
        assert made[key][0] == pytest.approx(mean, abs=0.02)


def test_tanks_leaks_and_pumps() -> None:
    made = found("water_network")
    assert shown(made["alerts"], 0) == {("runs dry",): 2, ("did not start",): 2, ("not planned",): 2, ("leak",): 5}
    texts = [text for _, _, text, _ in made["alerts"]]
    assert "pump 3 was to start at 2026-03-02 02:30:00 and did not" in texts
    assert "pump 1 started at 2026-03-02 03:20:00, which no plan says" in texts
    assert all("hostel" in text for rule, _, text, _ in made["alerts"] if rule == "runs dry")
    assert made["repairs"] == [("south", 6.3)]


def test_packets_pass_as_often_as_the_services_say() -> None:
    """Of 700: every 70th fails, then 5 of 100 twice, then 8 of 100, which people look at."""
    sizes = {sink: len(rows) for sink, rows in found("identity").items()}
    assert sizes == {
        "enrolled": 582,
        "refused-demographic": 10,
        "refused-quality": 30,
        "refused-validate": 30,
        "known": 48,
    }
    authentication = module("identity")["authenticated"](**{"identity.speed": math.inf})
    assert len(run_local(authentication)["answers"]) == 700


def test_what_becomes_of_patients() -> None:
    made = found("glucose")
    low = [(who, f"{at:%H:%M}", kind) for who, at, kind, _ in made["alerts"] if at.hour in (9, 10)]
    assert low == [], "what is low for long was forecast before"
    assert ("bob", "08:20", "low ahead") in [(who, f"{at:%H:%M}", kind) for who, at, kind, _ in made["alerts"]]
    assert ("bob", "08:50") in [(who, f"{at:%H:%M}") for who, at, kind, _ in made["alerts"] if kind == "nobody acted"]
    ends = Counter(f"{at:%H:%M}" for _, at in made["silent"])
    assert ends == {"09:15": 1, "14:15": 3}, "Eve's sensor, and the end of the readings"
    assert [share for who, since, _, share, _ in made["report"] if who == "bob" and since.hour == 10] == [0.08]


def test_shocks_and_no_lorries() -> None:
    made = found("transients")
    assert [(at.minute * 60 + at.second, sensors) for at, sensors, _ in made["transients-found"]] == [
        (40, [0, 1, 2, 3, 4, 5]),
        (95, [0, 1, 2, 3, 4, 5]),
    ]
    assert sorted(n for _, n, _ in made["sensors-seen"]) == [2, 2, 2, 2, 3, 3]


def test_fraud_and_only_fraud() -> None:
    """20,000 payments have four of each kind; of the large ones one is within the limit that the card has by then."""
    alerts = found("card_fraud")["written"]
    assert shown(alerts, 3) == {("tried",): 4, ("moved",): 4, ("over",): 3}
    cards = module("card_fraud")["CARDS"]
    assert {card for card, _, _, why in alerts if why == "tried"} == {cards + block for block in range(4)}
    assert {card for card, _, _, why in alerts if why == "moved"} == {2 * cards + block for block in range(4)}
    assert all(amount == 2_000.0 for _, amount, _, why in alerts if why == "over")


def test_tolls_accidents_and_balances() -> None:
    """By the rules as they are written, car by car and minute by minute."""
    made = found("linear_road")
    notices, warnings, balances = by_the_rules(list(module("linear_road")["REPORTS"]))
    assert made["toll-notices"] == sorted(notices, key=repr)
    assert made["accident-alerts"] == sorted(warnings, key=repr)
    assert made["balances"] == sorted(balances, key=repr)
    assert len(warnings) > 100
    assert sum(toll > 0 for *_, toll in notices) > 100


def by_the_rules(reports: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """The notices, the alerts and the answers that a run must give."""
    positions = [r for r in reports if r[0] == 0]
    cars: defaultdict[Any, set[int]] = defaultdict(set)
    speeds: defaultdict[Any, list[int]] = defaultdict(list)
    for _, t, car, speed, _, _, _, seg, _, _ in positions:
        cars[t // 60, seg].add(car)
        speeds[t // 60, seg].append(speed)
    crashed = {minute + 1: segments for minute, segments in stopped_pairs(positions)}
    notices: list[Any] = []
    warnings: list[Any] = []
    charged: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    last: dict[int, tuple[int, int]] = {}
    for _, t, car, _, _, lane, _, seg, _, _ in positions:
        if car in last and last[car][0] == seg:
            continue
        minute = t // 60
        nov = len(cars[minute - 1, seg])
        heard = [s for m in range(minute - 5, minute) for s in speeds[m, seg]]
        ahead = [s for s in crashed.get(minute, ()) if seg <= s <= seg + 4]
        is_dear = nov > 50 and bool(heard) and round(sum(heard) / len(heard)) < 40
        toll = 2 * (nov - 50) ** 2 if lane != 4 and not ahead and is_dear else 0
        if car in last and last[car][1] > 0:
            charged[car].append((t, last[car][1]))
        last[car] = (seg, toll)
        if lane != 4:
            notices.append((car, t, seg, toll))
            warnings.extend((car, t, seg, s) for s in ahead)
    asked = [(r[9], r[2], r[1]) for r in reports if r[0] == 2]
    return notices, warnings, [(query, car, t, sum(n for at, n in charged[car] if at <= t)) for query, car, t in asked]


def stopped_pairs(positions: list[Any]) -> Iterator[tuple[int, list[int]]]:
    """The minutes at whose end two cars stood at one place, with the segments."""
    trail: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    still: defaultdict[int, dict[int, Any]] = defaultdict(dict)
    for _, t, car, _, _, lane, _, seg, pos, _ in positions:
        trail[car].append((lane, pos))
        stands = len(trail[car]) >= 4 and len(set(trail[car][-4:])) == 1
        still[t // 60][car] = (seg, lane, pos) if stands else None
    for minute, places in still.items():
        counts = Counter(place for place in places.values() if place is not None)
        yield minute, [seg for (seg, _, _), n in counts.items() if n >= 2]


def test_visits_pages_and_channels() -> None:
    made = found("web_analytics")
    views = [line.split(",") for line in (EXAMPLES / "data/web/views.csv").read_text().splitlines()[1:]]
    sessions = sum(n for _, _, n, _, _ in made["sessions-by-hour"])
    assert 40 <= sessions < len(views)
    first = Counter(page for at, _, page, _ in views if at.startswith("2026-03-02 10:1"))
    best = [(page, n) for since, _, page, n, *_ in made["pages"] if f"{since:%H:%M}" == "10:10"]
    assert sorted(best) == sorted(sorted(first.items(), key=lambda item: (-item[1], item[0]))[:3])
    assert made["revenue-by-channel"] == [("mail", 4, 521.49), ("none", 2, 221.71)]


def agree(made: Answers, name: str) -> None:
    """On Spark tuples of several tasks come in another order, so other packets are every 70th; sums of floats differ in their last digits."""
    wanted = found(name)
    if name == "identity":
        assert {sink: len(rows) for sink, rows in made.items()} == {sink: len(rows) for sink, rows in wanted.items()}
        return
    assert made.keys() == wanted.keys()
    for sink, rows in wanted.items():
        assert [list(row) for row in made[sink]] == [close(row) for row in rows], sink


def close(row: Any) -> list[Any]:
    """A row whose floats are equal to what is close to them."""
    return [pytest.approx(value, abs=0.011) if isinstance(value, float) else value for value in row]


@pytest.mark.spark
@pytest.mark.parametrize("name", FLOWS)
def test_an_application_on_spark(name: str, penstock_spark: Any) -> None:
    agree(answers(run_spark(FLOWS[name](), penstock_spark)), name)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("name", FLOWS)
def test_an_application_live(name: str, penstock_spark: Any) -> None:
    agree(answers(run_spark(FLOWS[name](), penstock_spark, cuts=3)), name)
