"""The rule sets of the examples give the same answers on every runtime."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from penstock.testing import run_local, run_spark

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MEDIATION: dict[str, set[tuple[Any, ...]]] = {
    "billed": {(1, "41790000001", 0), (2, "41790000001", 40), (6, "49150000004", 3600), (7, "41790000002", 10), (8, "41790000002", 10)},
    "rejected": {(3, "no duration"), (4, "blocked"), (5, "unknown subscriber")},
    "alerts": {
        ("blocked subscriber", "medium", "blocked 41790000003 calls 41790000001", "call"),
        ("expensive", "high", "49150000004 is to pay 3600 cents for call 6", "billed"),
    },
}  # fmt: skip
INTRUSION: dict[str, set[tuple[Any, ...]]] = {
    "alerts": {
        ("bad address", "high", "203.0.113.7 (botnet) reached 10.0.1.1:22"),
        ("large upload", "medium", "10.0.0.8 sent 900000000 bytes to 198.51.100.200"),
        ("plain text service", "low", "10.0.0.6 uses port 23 of 10.0.1.2"),
        ("guessed", "high", "eve logged in from 192.0.2.44 after failures"),
        ("port scan", "high", "192.0.2.44 tried 4 ports of 10.0.1.1 in a minute"),
    },
    "cases": {("203.0.113.7", "bad address"), ("10.0.0.8", "large upload")},
}
CASES = [("telecom_mediation", MEDIATION), ("intrusion_detection", INTRUSION)]


def flow_of(name: str) -> Any:
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))["flow"]


@pytest.mark.parametrize(("name", "expected"), CASES)
def test_an_example_without_a_jvm(name: str, expected: dict[str, set[tuple[Any, ...]]]) -> None:
    made = run_local(flow_of(name))
    assert {sink: set(map(tuple, rows)) for sink, rows in made.items()} == expected


@pytest.mark.spark
@pytest.mark.parametrize(("name", "expected"), CASES)
def test_an_example_on_spark(name: str, expected: dict[str, set[tuple[Any, ...]]], penstock_spark: Any) -> None:
    made = run_spark(flow_of(name), penstock_spark)
    assert {sink: set(map(tuple, rows)) for sink, rows in made.items()} == expected
