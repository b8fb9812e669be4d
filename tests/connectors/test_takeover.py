"""A driver that is paused, replaced and woken neither loses nor doubles a record, wherever it was paused. No JVM."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.connectors.files.manifests import committed_files
from penstock.log import Log
from penstock.storage.swap import POINTS as SWAP
from tests.breadth import some_now
from tests.connectors.takeover import check_takeover

AROUND = [
    ("before sink commit@2", 7),
    ("ledger checked@2", 10),
    ("after sink commit@2", 10),
    ("after sink commit@2", 7),
    ("sink written@2", 10),
]
"""Where the first driver is paused, and how many records the second takes at a time; the first takes 10."""
SWAPS = [(f"{point}#{number}", cut) for number, cut in ((5, 7), (6, 10)) for point in SWAP]
"""A batch of the log swaps its ledger twice: before the first append, and after the last, which the slow tier looks at."""


@pytest.mark.parametrize(("point", "cut"), [*AROUND, ("intent written@2", 7), *some_now(SWAPS, len(SWAP))])
def test_a_driver_of_a_topic_that_was_replaced_writes_nothing(tmp_path: Path, point: str, cut: int) -> None:
    def held() -> list[int]:
        with Log(tmp_path) as log:
            return [int(r.value or b"") for p in log.offsets("to") for r in log.read("to", p, 0)]

    check_takeover("log", str(tmp_path), point, cut, held)


@pytest.mark.parametrize(("point", "cut"), AROUND)
def test_a_driver_of_files_that_was_replaced_writes_nothing(tmp_path: Path, point: str, cut: int) -> None:
    def held() -> list[int]:
        listed = sorted(str(p) for p in tmp_path.glob("out-*"))
        assert sorted(committed_files(str(tmp_path))) == listed
        return [json.loads(line)["id"] for path in listed for line in Path(path).read_text().splitlines()]

    check_takeover("files", str(tmp_path), point, cut, held)
