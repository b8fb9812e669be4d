"""Intrusion detection: rules over connections, over counts of a minute, and over logins, with a look-up of bad addresses.

penstock run examples/intrusion_detection.py --once
"""

from pathlib import Path

import penstock as ps

DATA = Path(__file__).parent / "data"
do = ps.action

CONNECTION_RULES = """
rule "bad address"
  if reputation is not null
  do alert('high', '{source} ({reputation}) reached {target}:{port}'), emit to incidents(source, kind = 'bad address')
rule "plain text service"
  if port in (21, 23) and state = 'ok'
  do alert('low', '{source} uses port {port} of {target}')
rule "large upload"
  if source like '10.%' and not target like '10.%' and bytes > 100000000
  do alert('medium', '{source} sent {bytes} bytes to {target}'), emit to incidents(source, kind = 'large upload')
rule incident
  on incidents
  do update cases(source, kind)
"""
SCAN_RULES = """
rule "port scan" if ports >= 4 do alert('high', '{source} tried {ports} ports of {target} in a minute')
"""
LOGIN_RULES = [
    ps.rule("failed", "not ok", do.activate("suspicious")),
    ps.rule("suspicious", "not ok", do.activate("guessed"), active=False, priority=1),
    ps.rule(
        "guessed", "ok", do.alert("high", "{user} logged in from {source} after failures"),
        do.deactivate("guessed"), do.deactivate("suspicious"), active=False,
    ),
    ps.rule("forget", "ok", do.deactivate("suspicious"), priority=-1),
]  # fmt: skip

flow = ps.Flow("intrusion")
wire = "at timestamp, source string, target string, port int, bytes bigint, state string"
connections = flow.source("connections", ps.files(DATA / "connections.csv", "csv", wire), event_time="at")
logins = flow.source("logins", ps.files(DATA / "logins.csv", "csv", "user string, source string, ok boolean"))

known = connections.join(
    "reputation",
    ps.files(DATA / "blocklist.csv", "csv", "source string, reputation string"),
    on="source",
    how="left",
    refresh="changed",
)
found = known.rules("connections-rules", ps.rules(CONNECTION_RULES), tables={"cases": "source"})
minutes = (
    connections.key_by("source", "target").window(ps.tumbling("1m")).aggregate("ports", ports="count(distinct port)")
)
scans = minutes.rules("scan-rules", ps.rules(SCAN_RULES))
guesses = logins.key_by("user").rules("login-rules", LOGIN_RULES)

fields = ("rule", "severity", "text")
alerts = [
    found.alerts.select("of-connections", *fields),
    scans.alerts.select("of-scans", *fields),
    guesses.alerts.select("of-logins", *fields),
]
alerts[0].union("all-alerts", *alerts[1:]).sink("alerts", ps.console())
found.cases.sink("cases", ps.console())

if __name__ == "__main__":
    ps.run(flow)
