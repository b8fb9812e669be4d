"""The development broker and the JARs: pinned, checked, started and stopped without remains."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from penstock.connectors.kafka.jars import Jar, kafka_jars
from penstock.errors import SetupError
from penstock.jobs.broker import Broker, at
from penstock.jobs.ports import free_port
from penstock.spark.jvm.jars import get_jars, has_jars, is_good

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
SMALL = next(j for j in kafka_jars() if j.module == "commons-pool2")


def test_a_jar_is_fetched_once_checked_and_fetched_again_when_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    (path,) = get_jars([SMALL])
    assert path == tmp_path / "jars" / "commons-pool2-2.13.1.jar"
    assert is_good(path, SMALL)
    monkeypatch.setattr("penstock.spark.jvm.jars._fetch", lambda *_: pytest.fail("fetched again"))
    assert get_jars([SMALL]) == [path]
    monkeypatch.undo()
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    data = bytearray(path.read_bytes())
    data[1000] ^= 1
    path.write_bytes(data)
    assert not is_good(path, SMALL)
    assert is_good(get_jars([SMALL])[0], SMALL)
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_jar_with_another_checksum_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    with pytest.raises(SetupError, match="another SHA-256"):
        get_jars([Jar(SMALL.org, SMALL.module, SMALL.revision, "0" * 64)])
    with pytest.raises(SetupError, match=r"could not be fetched .*commons-pool2;9.9.9: not found"):
        get_jars([Jar(SMALL.org, SMALL.module, "9.9.9", "0" * 64)])
    assert list((tmp_path / "jars").iterdir()) == []


def test_a_connector_of_the_users_own_choice_is_left_alone() -> None:
    assert has_jars({"spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.1"}, kafka_jars())
    assert not has_jars({"spark.jars": "/x/other.jar"}, kafka_jars())


def test_the_command_starts_stops_and_keeps_the_data(tmp_path: Path) -> None:
    def call(*words: str) -> Any:
        command = [sys.executable, "-m", "penstock.cli.main", "kafka", *words, "--folder", str(tmp_path / "kafka")]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)

    assert call("status").returncode == 1
    port = str(free_port())
    try:
        started = call("start", "--port", port)
        assert f"127.0.0.1:{port}" in started.stdout, started.stderr
        assert "runs already" in call("start").stdout
        assert call("status").returncode == 0
        _send(f"127.0.0.1:{port}", "kept")
        assert "stopped" in call("stop").stdout
        assert call("status").returncode == 1
        assert "no broker" in call("stop").stdout
        assert call("start", "--port", port).returncode == 0
        assert "kept" in _topics(f"127.0.0.1:{port}")
    finally:
        call("stop")


def _send(servers: str, topic: str) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers, "log_level": 2})
    producer.produce(topic, b"x")
    assert producer.flush(300) == 0
    producer.close()


def _topics(servers: str) -> list[str]:
    from confluent_kafka.admin import AdminClient

    return list(AdminClient({"bootstrap.servers": servers, "log_level": 2}).list_topics(timeout=300).topics)


def test_a_taken_port_is_said_and_a_second_broker_in_a_folder_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(SetupError, match="is taken"):
        Broker(tmp_path, port=taken.getsockname()[1]).start()
    with Broker(tmp_path) as running:
        with pytest.raises(SetupError, match="already"):
            Broker(tmp_path).start()
        assert at(tmp_path) is not None
    assert at(tmp_path) is None
    assert not Path(f"/proc/{running.pid}").exists()


PROGRAM = """
import sys, time
from pathlib import Path
from penstock.jobs.broker import Broker
broker = Broker(Path(sys.argv[1])).start()
print(broker.pid, flush=True)
time.sleep(600)
"""


def test_a_broker_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    deadline = time.monotonic() + 300
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not Path(f"/proc/{pid}").exists()
