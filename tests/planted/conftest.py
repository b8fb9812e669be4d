"""Tells at the end which bugs were planted, and what caught each."""

from __future__ import annotations

import pytest

from tests.kafka.conftest import kafka, kafka_broker
from tests.log.conftest import fast_path

__all__ = ["fast_path", "kafka", "kafka_broker"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reported = [dict(r.user_properties) for r in terminalreporter.stats.get("passed", []) if r.when == "call"]
    caught = [(t["planted"], t["caught"]) for t in reported if "planted" in t]
    if caught:
        terminalreporter.section(f"{len(caught)} bugs were planted and caught")
    for name, how in caught:
        terminalreporter.write_line(f"{name}: {how}")
