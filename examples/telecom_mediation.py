"""Telecom mediation: call records become bills by rules, with look-ups of subscribers and tariffs that may change while it runs.

penstock run examples/telecom_mediation.py --once
"""

from pathlib import Path

import penstock as ps

DATA = Path(__file__).parent / "data"
CALLS = "id bigint, msisdn string, other string, visited string, seconds int, kind string"

flow = ps.Flow("mediation")
calls = flow.source("calls", ps.files(DATA / "calls.csv", "csv", CALLS))
known = calls.join(
    "subscriber",
    ps.files(DATA / "subscribers.csv", "csv", "msisdn string, plan string, home string, blocked boolean"),
    on="msisdn",
    how="left",
    refresh="changed",
)
rated = known.join(
    "tariff", ps.files(DATA / "tariffs.csv", "csv", "visited string, cents int"), on="visited", how="left", refresh="changed"
).rename("named", cents="tariff")  # fmt: skip

found = rated.rules(
    "mediate",
    ps.rules(DATA / "mediation.yaml"),
    event="call",
    streams={"rated": "id bigint, msisdn string, plan string, roaming boolean, cents bigint", "billed": "id bigint, msisdn string, cents bigint"},
)  # fmt: skip
found.billed.sink("billed", ps.console())
found.rejected.sink("rejected", ps.console())
found.alerts.sink("alerts", ps.console())

if __name__ == "__main__":
    ps.run(flow)
