"""The bill of materials names everything that is in the lock, fetched or shipped, with checksums, and is the same each time."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]


def printed() -> str:
    command = [sys.executable, str(ROOT / "scripts" / "sbom.py"), "--print"]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd="/").stdout


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    made: dict[str, Any] = json.loads(printed())
    return made


def test_the_same_tree_gives_the_same_bytes(found: dict[str, Any]) -> None:
    assert json.loads(printed()) == found
    assert "timestamp" not in json.dumps(found)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", found["serialNumber"])
    assert (found["bomFormat"], found["specVersion"], found["version"]) == ("CycloneDX", "1.6", 1)


def test_every_package_of_the_lock_is_there_with_all_its_checksums(found: dict[str, Any]) -> None:
    lock = (ROOT / "requirements.lock").read_text()
    locked = set(re.findall(r"^([a-z0-9_.-]+)==([^\s;]+)", lock, re.MULTILINE))
    python = [each for each in found["components"] if each["purl"].startswith("pkg:pypi/")]
    assert {(each["name"], each["version"]) for each in python} == locked
    digests = [digest["content"] for each in python for digest in each["hashes"]]
    assert sorted(digests) == sorted(re.findall(r"sha256:([0-9a-f]{64})", lock))
    assert all(each["hashes"] for each in python)
    assert {each["name"] for each in python if not each.get("licenses")} <= {"async-timeout", "colorama", "hdfs-native"}


def test_jars_and_the_libraries_of_the_console_are_there_as_they_are_pinned(found: dict[str, Any]) -> None:
    pinned = json.loads((ROOT / "src/penstock/connectors/kafka_jars.json").read_text())
    jars = {e["purl"].rpartition("/")[2]: e for e in found["components"] if e["purl"].startswith("pkg:maven/")}
    for each in (*pinned["connector"], *pinned["broker"]):
        assert {"alg": "SHA-256", "content": each["sha256"]} in jars[f"{each['module']}@{each['revision']}"][
            "hashes"
        ], each
    assert all(jars[f"{each['module']}@{each['revision']}"]["licenses"] for each in pinned["connector"])
    vendored = json.loads((ROOT / "src/penstock/web/vendored.json").read_text())
    web = {e["name"]: e for e in found["components"] if e["purl"].startswith("pkg:npm/")}
    assert {n: {f["name"]: f["hashes"][0]["content"] for f in e["components"]} for n, e in web.items()} == {
        each["name"]: each["files"] for each in vendored
    }
    assert all(each["licenses"] for each in web.values())


def test_scopes_say_what_an_installation_has(found: dict[str, Any]) -> None:
    scopes = {each["name"]: each["scope"] for each in found["components"]}
    assert {scopes[name] for name in ("pyspark", "py4j", "pyarrow", "typer", "sqlglot")} == {"required"}
    assert {scopes[name] for name in ("fastapi", "starlette", "redis", "h11", "spark-sql-kafka-0-10_2.13")} == {
        "optional"
    }
    assert {scopes[name] for name in ("pytest", "mypy", "duckdb")} == {"excluded"}


def test_references_are_unique_and_lead_somewhere(found: dict[str, Any]) -> None:
    refs = [each["bom-ref"] for each in found["components"]]
    assert len(refs) == len(set(refs))
    known = {*refs, "penstock"}
    assert {each["ref"] for each in found["dependencies"]} <= known
    assert {on for each in found["dependencies"] for on in each["dependsOn"]} <= known
    (own,) = [each["dependsOn"] for each in found["dependencies"] if each["ref"] == "penstock"]
    assert any(ref.startswith("pkg:pypi/pyspark@") for ref in own)
