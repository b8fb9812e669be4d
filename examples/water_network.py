"""The water of a campus: tanks that run low, leaks of zones, and pumps that do not keep to their plan.

penstock run examples/water_network.py --batch
penstock run examples/water_network.py --until-idle 5s
"""

from pathlib import Path

import penstock as ps

DATA = Path(__file__).parent / "data" / "water"
RULES = """
rule "runs dry"
  on levels if level < 0.5 and trend < 0 do alert('high', '{tank} has {level} m left and falls by {-trend} m an hour')
rule overflow
  on levels if level > 4.8 and trend > 0 do alert('medium', '{tank} stands at {level} m and rises')
rule leak
  on leaks do alert('high', 'zone {zone} loses {missing} l a minute at night since {since}'), update repairs(zone, missing)
rule "did not start"
  on missed do alert('high', '{pump} was to start at {planned} and did not')
rule "not planned"
  on starts if planned is null do alert('low', '{pump} started at {at}, which no plan says')
"""


class Trend(ps.Aggregator):
    """The slope of the line that fits the levels best, in metres an hour."""

    schema = "double"

    def init(self) -> tuple[float, ...]:
        """No level yet: how many, the sums of times and levels, of squares, and of products."""
        return (0.0, 0.0, 0.0, 0.0, 0.0)

    def add(self, so_far: tuple[float, ...], row: ps.Row) -> tuple[float, ...]:
        """One more level."""
        hours = (row.at.hour * 60 + row.at.minute) / 60
        return self.merge(so_far, (1.0, hours, row.level, hours * hours, hours * row.level))

    def merge(self, one: tuple[float, ...], other: tuple[float, ...]) -> tuple[float, ...]:
        """Two parts together."""
        return tuple(a + b for a, b in zip(one, other, strict=True))

    def result(self, so_far: tuple[float, ...]) -> float:
        """The slope; a single level has none."""
        n, x, y, xx, xy = so_far
        spread = n * xx - x * x
        return round((n * xy - x * y) / spread, 2) if spread else 0.0


flow = ps.Flow("water")
tanks = flow.source(
    "tanks",
    ps.files(DATA / "levels.csv", "csv", "tank string, level double, at timestamp"),
    event_time="at",
    lateness="2m",
)
meters = flow.source(
    "meters",
    ps.files(DATA / "meters.csv", "csv", "zone string, meter string, litres double, at timestamp"),
    event_time="at",
    lateness="2m",
)
pumps = flow.source(
    "pumps",
    ps.files(DATA / "pumps.csv", "csv", "pump string, kind string, at timestamp"),
    event_time="at",
    lateness="2m",
)

levels = tanks.key_by("tank").window(ps.tumbling("15m")).aggregate("levels", level="last(level)", trend=Trend())

balance = (
    meters.key_by("zone")
    .window(ps.tumbling("10m"))
    .aggregate(
        "balance",
        missing="sum(litres) filter (where meter = 'inlet') - coalesce(sum(litres) filter (where meter != 'inlet'), 0)",
    )
)
dry = (
    ps.pattern("leak")
    .begin("loss", "missing > 40 and hour(window_start) < 5", times=3, consecutive=True)
    .after_match("past_last")
)
leaks = balance.key_by("zone").match(
    "leaks",
    dry,
    select={"zone": "zone", "missing": "round(avg(loss.missing) / 10, 1)", "since": "first(loss).window_start"},
)

late = ps.pattern("late").begin("plan", "kind = 'planned'").not_followed_by("start", "kind = 'started'").within("5m")
missed = pumps.key_by("pump").match("missed", late, select={"pump": "pump", "planned": "plan.at"})
plans = (
    pumps.where("plans", "kind = 'planned'")
    .select("planned", "pump", planned="at")
    .event_time("planned-at", "planned", lateness="2m")
)
starts = (
    pumps.where("started", "kind = 'started'").asof_join("starts", plans, "pump", tolerance="5m").drop("start", "kind")
)

found = levels.rules(
    "water-rules",
    ps.rules(RULES),
    event="levels",
    events={"leaks": leaks, "missed": missed, "starts": starts},
    tables={"repairs": "zone"},
)
found.alerts.sink("alerts", ps.console())
found.repairs.sink("repairs", ps.console())

if __name__ == "__main__":
    ps.run(flow, batch=True)
