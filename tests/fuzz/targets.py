"""What reads bytes that somebody else may have written: each target takes any bytes, and refuses in words of ours what it cannot read."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pyarrow as pa

from penstock.bridge.records import BadInput
from penstock.bridge.request_format import RequestFormat
from penstock.errors import PenstockError
from penstock.flowfiles.opening import open_file
from penstock.graph.expr.parse import parse
from penstock.graph.run import RunSpec
from penstock.jobs.manager.bundle import BundleStore, pack
from penstock.jobs.manager.job import Job
from penstock.jobs.manager.processes.heard import heard
from penstock.log import Log, LogError
from penstock.spark.checkpoint.savepoint import NOTE, load
from penstock.spark.jvm.session import read_properties
from penstock.state.file import StateFile, map_file, write_file
from penstock.state.notes import note_bytes, read_note
from penstock.state.ranges import KeyRanges
from penstock.storage import MemoryStorage

Target = Callable[[bytes], object]
REFUSED = (PenstockError, LogError, BadInput)
"""What a target may raise."""


@cache
def folder() -> Path:
    """Where targets put their files."""
    return Path(tempfile.mkdtemp(prefix="penstock-fuzz-"))


@cache
def _log() -> tuple[Path, bytes]:
    path = folder() / "log"
    with Log(path) as log:
        log.create_topic("t")
        with log.producer() as producer:
            producer.send_many("t", [b"one", b"two", b'{"n": 3}'])
    (segment,) = (path / "topics" / "t" / "0").glob("*.log")
    return segment, segment.read_bytes()


def log_segment(content: bytes) -> object:
    """A segment of the log, read from the beginning."""
    segment, _ = _log()
    segment.write_bytes(content)
    for beside in segment.parent.glob("damage.json"):
        beside.unlink()
    with Log(folder() / "log") as log:
        return [(r.offset, r.value) for r in log.read("t", 0, 0)]


def manifest(content: bytes) -> object:
    """A manifest of a version of the state."""
    storage = MemoryStorage()
    storage.write("1.json", content)
    return read_note(storage, "1.json")


def state_file(content: bytes) -> object:
    """A state file, whatever its manifest says of it."""
    storage = MemoryStorage()
    storage.write("1.arrow", content)
    return map_file(storage, replace(_state_file()[0], path="1.arrow", size=len(content))).whole()


@cache
def _state_file() -> tuple[StateFile, bytes]:
    storage, made = MemoryStorage(), pa.record_batch({"__key_hash": pa.array(range(9), pa.int64()), "t": ["text"] * 9})
    size, crc = write_file(storage, "0.arrow", made)
    return StateFile("0.arrow", size, crc, 9, KeyRanges(((0, 1),))), storage.read("0.arrow")


def savepoint(content: bytes) -> object:
    """The list of a savepoint."""
    made = folder() / "savepoint"
    made.mkdir(exist_ok=True)
    (made / NOTE).write_bytes(content)
    return load(made)


def configuration(content: bytes) -> object:
    """A properties file of Spark, options of a run, a job of the database, and what a driver says."""
    text = content.decode(errors="replace")
    read_properties(text)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(found, dict):
        heard(found)
        RunSpec.from_json(text)
    return found


def job(content: bytes) -> object:
    """A job, as a driver finds it in its directory."""
    try:
        return Job.from_json(content)
    except (ValueError, TypeError, AttributeError):  # what `records` and `directory` take for unreadable
        return None


def flow_file(content: bytes) -> object:
    """A flow as YAML, which names no function of anybody's."""
    file = folder() / "flow.yaml"
    file.write_bytes(content)
    return open_file(file)


def expression(content: bytes) -> object:
    """A filter, as it comes from a page."""
    return parse(content.decode(errors="replace"))


def request(content: bytes) -> object:
    """The headers and the body of a request for the bridge."""
    head, _, body = content.partition(b"\n\n")
    pairs = (line.partition(":") for line in head.decode("latin-1").split("\n"))
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    return RequestFormat("x-key", "", ("x-kept", "traceparent")).given(headers, body)


def bundle(content: bytes) -> object:
    """An archive of code."""
    return BundleStore(folder() / "bundles").put(content)


TARGETS: dict[str, Target] = {
    each.__name__: each
    for each in (
        log_segment,
        manifest,
        state_file,
        savepoint,
        configuration,
        job,
        flow_file,
        expression,
        request,
        bundle,
    )
}


def seeds(name: str) -> list[bytes]:
    """Inputs that are read well, to begin from."""
    code = folder() / "count.py"
    code.write_text("x = 1\n")
    return {
        "state_file": lambda: [_state_file()[1]],
        "log_segment": lambda: [_log()[1]],
        "manifest": lambda: [note_bytes({"version": 1, "files": {"count": [{"path": "a", "crc": 7}]}})],
        "savepoint": lambda: [
            note_bytes({"id": "a", "flow": "b", "version": 1, "made": "", "origin": "/a", "files": {}})
        ],
        "configuration": lambda: [
            b"spark.a=1\n# c\nspark.b  two words\n",
            b'{"mode": "batch", "conf": {"spark.a": "1"}}',
        ],
        "job": lambda: [Job("count", "ada", "0" * 64, "count.py").to_json()],
        "flow_file": lambda: [
            b"flow: hello\nsteps:\n  - {name: words, source: {items: {rows: [a, bb], schema: word string}}}\n"
            b"  - {name: out, from: words, sink: console}\n"
        ],
        "expression": lambda: [
            b"a > 3 and lower(b) = 'x' or c in (1, 2.5e3)",
            b"case when a then lower(b) else 'x' end",
        ],
        "request": lambda: [
            b'content-type: application/json\nx-key: a\nidempotency-key: k\n\n[{"user": {"id": 7}}, 1.50]'
        ],
        "bundle": lambda: [pack([("count.py", code)])],
    }.get(name, lambda: [b""])()


def run(name: str, content: bytes) -> None:
    """Has a target read some bytes; raises what it may not raise."""
    try:
        TARGETS[name](content)
    except REFUSED:
        return
