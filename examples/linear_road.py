"""Linear Road, simplified: tolls that follow the traffic, accidents, and the accounts of cars, on one simulated expressway.

penstock run examples/linear_road.py --batch
penstock run examples/linear_road.py --until-idle 5s

The rules are those of the benchmark (VLDB 2004): a car that comes into a segment is told the toll, 2 (NOV - 50)^2, where NOV is the number of cars in the segment in the minute before. There is
none where the average speed of five minutes (LAV) is 40 or more, where NOV is 50 or less, and up to four segments before an accident: two cars stopped at one place, each for four reports.
A toll is charged when the car leaves the segment. Left out: the history of expenses, travel times, and most of the traffic.
"""

from __future__ import annotations

from collections.abc import Iterator

import penstock as ps

CARS, FOOT_PER_SECOND = 400, 5280 / 3600
CRASH, STOPS = 6 * 5280 + 100, {100: 9, 101: 7}
"""Where an accident is, and the cars that stop there, with for how many reports they do."""
FIELDS = "type int, t bigint, car int, speed int, xway int, lane int, dir int, seg int, pos int, query int"
Report = tuple[int, int, int, int, int, int, int, int, int, int]


def trip(car: int) -> Iterator[Report]:
    """The reports of a car, every 30 s: slowly through the roadworks in the segments 1 and 2, out at the end of segment 8. Some ask for their balance."""
    t, pos, lane, stops = 2 * car, float(car * 37 % 2000), 0, STOPS.get(car, 0)
    while pos < 9 * 5280:
        while stops and pos >= CRASH:
            yield 0, t, car, 0, 0, 2, 0, CRASH // 5280, CRASH, -1
            t, stops = t + 30, stops - 1
        speed = 20 if 1 <= pos // 5280 <= 2 else 55
        yield 0, t, car, speed, 0, lane, 0, int(pos // 5280), int(pos), -1
        if car % 10 == 0:
            yield 2, t + 7, car, -1, -1, -1, -1, -1, -1, car * 1000 + t
        t, pos, lane = t + 30, pos + 30 * speed * FOOT_PER_SECOND, 2
    yield 0, t, car, 55, 0, 4, 0, 9, int(pos), -1


REPORTS = sorted((report for car in range(CARS) for report in trip(car)), key=lambda report: report[1])
SEGMENT, MINUTE = ["xway", "dir", "seg"], "59500ms"

flow = ps.Flow("linear-road")
time = {"event_time": "timestamp_seconds(1767225600 + t)", "into": "at"}
reports = flow.source("reports", ps.items(REPORTS, FIELDS, batches=4), **time)
queries = reports.where("balance-queries", "type = 2")
seen = (
    reports.where("positions", "type = 0")
    .key_by("car")
    .over(rows=3)
    .aggregate(
        "seen",
        before="lag(seg)",
        heard="lag(t)",
        n="count(*)",
        low="min(pos)",
        high="max(pos)",
        from_lane="min(lane)",
        to_lane="max(lane)",
    )
)
cars = seen.with_columns(
    "cars",
    stopped="n = 4 and low = high and from_lane = to_lane",
    entered="before is null or (lane = 0 and t - heard > 60)",
)

volume = cars.key_by(*SEGMENT).window(ps.tumbling("1m")).aggregate("volume", nov="count(distinct car)")
speeds = cars.key_by(*SEGMENT).window(ps.sliding("5m", every="1m")).aggregate("speeds", lav="round(avg(speed))")

place = "struct(xway, dir, seg, lane, pos)"
halts = (
    cars.key_by("car")
    .window(ps.tumbling("1m"))
    .aggregate("halts", place=f"max_by({place}, at)", still="max_by(stopped, at)")
)
wrecks = halts.where("still", "still").key_by(
    xway="place.xway", dir="place.dir", wreck="place.seg", pos="place.pos", lane="place.lane"
)
accidents = (
    wrecks.window(ps.tumbling("1m")).aggregate("accidents", stopped_cars="count(*)").where("two", "stopped_cars >= 2")
)
zones = accidents.explode(
    "zones",
    "seg",
    "if(dir = 0, array(wreck - 4, wreck - 3, wreck - 2, wreck - 1, wreck), array(wreck, wreck + 1, wreck + 2, wreck + 3, wreck + 4))",
).drop("zone", "pos", "lane")

crossings = cars.where("crossings", "entered or seg != before")
told = crossings.asof_join("by-volume", volume, SEGMENT, tolerance=MINUTE, prefix="now_")
told = told.asof_join("by-speed", speeds, SEGMENT, tolerance=MINUTE, prefix="mean_")
told = told.asof_join("by-accident", zones, SEGMENT, tolerance=MINUTE, prefix="zone_")
tolls = told.select(
    "tolls", "car", "t", "at", "seg", "lane", "entered", nov="now_nov", lav="mean_lav", wreck="zone_wreck",
    toll="if(lane != 4 and zone_wreck is null and now_nov > 50 and mean_lav < 40, 2 * (now_nov - 50) * (now_nov - 50), 0L)",
)  # fmt: skip
tolls.where("notices", "lane != 4").select("notice", "car", "t", "seg", "toll").sink("toll-notices", ps.console())
tolls.where("warnings", "lane != 4 and wreck is not null").select("warning", "car", "t", "seg", "wreck").sink(
    "accident-alerts", ps.console()
)

due = (
    tolls.key_by("car")
    .over(rows=1)
    .aggregate("due", charged="lag(toll)")
    .where("charges", "not entered and charged > 0")
)
accounts = (
    due.key_by("car")
    .over(rows=(None, 0))
    .aggregate("accounts", balance="sum(charged)")
    .select("account", "car", "at", "balance")
)
answers = queries.asof_join("answers", accounts, "car", prefix="account_")
answers.select("answer", "query", "car", "t", balance="coalesce(account_balance, 0L)").sink("balances", ps.console())

if __name__ == "__main__":
    ps.run(flow, batch=True)
