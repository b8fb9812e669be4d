"""A driver that is paused, replaced and woken neither loses nor doubles a record of a topic of Kafka. No JVM but the broker's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.connectors.takeover import check_refusing, check_takeover
from tests.kafka.conftest import Kafka

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


@pytest.mark.parametrize(("point", "cut"), [("staged@2", 7), ("after sink commit@2", 10), ("sink written@2", 10)])
def test_a_driver_that_was_replaced_writes_nothing(kafka: Kafka, point: str, cut: int) -> None:
    topic = kafka.topic()
    check_takeover("kafka", f"{kafka.servers}|{topic}", point, cut, lambda: [int(m.value()) for m in kafka.read(topic)])


@pytest.mark.parametrize("point", ["staged@2", "after sink commit@2", "sink written@2", "dead letters written@2"])
def test_refused_records_are_dead_letters_once_whoever_takes_over(kafka: Kafka, tmp_path: Path, point: str) -> None:
    topic = kafka.topic(1, cleanup_policy="compact")
    check_refusing("kafka", f"{kafka.servers}|{topic}", tmp_path, point, lambda: [int(v) for v in kafka.values(topic)])
