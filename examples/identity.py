"""Identity: the flows that enrol people and authenticate them, with the latencies and selectivities of the published ones.

penstock run examples/identity.py:enrolment --batch
penstock run examples/identity.py:authentication --batch
penstock run examples/identity.py:enrolment --until-idle 5s

The figures are those of the code for Storm that the study of Aadhaar's dataflows (arXiv 1510.04160) came with; here a service takes a thousandth of its time, as SPEED says.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import penstock as ps

SPEED, PACKETS = 1000, 700
PACKET = "packet bigint, person string"
SERVICES = (
    ("validation", 26),
    ("decryption", 20),
    ("verification", 13),
    ("resident", 19),
    ("matching", 38),
    ("notification", 2),
    ("response", 18),
    ("sending", 114),
)
"""The services of an authentication, each with its milliseconds."""


class Packets(ps.Spout):
    """What the field offices send. `at` is saved, so a restart goes on where it stood."""

    outputs = PACKET
    at = 0

    def next_tuple(self) -> Any:
        """One packet."""
        if self.at == PACKETS:
            return ps.END
        self.emit((self.at, f"person {self.at}"))
        self.at += 1
        return None


class Service(ps.Bolt):
    """Takes its time over each packet, and fails the last ones of so many: of 95 and 5, each 100 have 95 that pass."""

    outputs = {"default": PACKET, "failed": f"{PACKET}, service string"}

    def __init__(self, milliseconds: float, passing: int = 1, failing: int = 0) -> None:
        self.seconds = milliseconds / 1000
        self.passing, self.every = passing, passing + failing

    def prepare(self, context: Any) -> None:
        """Begins with the first of a round; a restart goes on with the one that was due."""
        self.turn = 0
        self._name, self._pause = context.component, self.seconds / context.config.get("identity.speed", SPEED)

    def process(self, tup: Any) -> Iterator[Any]:
        """One packet."""
        time.sleep(self._pause)
        has_passed = self.turn < self.passing
        self.turn = (self.turn + 1) % self.every
        yield (tup.packet, tup.person) if has_passed else ps.to("failed", (tup.packet, tup.person, self._name))


def enrolled(**config: Any) -> ps.Topology:
    """Seven services; what three checks fail is refused, and what looks like somebody known goes to people who look."""
    topology = ps.Topology("enrolment", config=config)
    topology.spout("packets", Packets())
    topology.bolt("extract", Service(2770), parallelism=3).shuffle("packets")
    topology.bolt("demographic", Service(2400, 69, 1)).shuffle("extract")
    topology.bolt("quality", Service(10_000, 95, 5)).shuffle("demographic")
    topology.bolt("validate", Service(2400, 95, 5)).shuffle("quality")
    topology.bolt("biometric", Service(2850, 92, 8)).shuffle("validate")
    topology.bolt("generate", Service(800)).shuffle("biometric")
    topology.bolt("by-hand", Service(4800)).shuffle("biometric", stream="failed")
    topology.sink("enrolled", ps.console(rows=5), from_="generate")
    for check in ("demographic", "quality", "validate"):
        topology.sink(f"refused-{check}", ps.console(rows=5), from_=check, stream="failed")
    topology.sink("known", ps.console(rows=5), from_="by-hand")
    return topology


def authenticated(**config: Any) -> ps.Topology:
    """Eight services, one after the other."""
    topology = ps.Topology("authentication", config=config)
    topology.spout("requests", Packets())
    before = "requests"
    for name, milliseconds in SERVICES:
        topology.bolt(name, Service(milliseconds), parallelism=2).local_or_shuffle(before)
        before = name
    topology.sink("answers", ps.console(rows=5), from_=before)
    return topology


enrolment, authentication = enrolled(), authenticated()

if __name__ == "__main__":
    ps.run(enrolment, batch=True)
