"""Writes dist/penstock.cdx.json: what Penstock is made of, as CycloneDX 1.6 (`make sbom`).

python scripts/sbom.py            writes the file
python scripts/sbom.py --print    prints it

In it are the packages of requirements.lock, the JARs that connectors fetch, and the libraries of the console, each with checksums and its licence as the package says it. The same
lock gives the same bytes: there is no time in it, and its serial number is made of what it says.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
import tomllib
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "penstock"
OUT = ROOT / "dist" / "penstock.cdx.json"
_PACKAGE = re.compile(r"^([A-Za-z0-9_.-]+)==([^\s;]+)(?: ; ([^\\]+))?")
_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_NAMESPACE = uuid.UUID("6f0c2f7e-6b1c-5b52-9b8c-0f6f1d2a7c11")
Component = dict[str, Any]


def sbom() -> dict[str, Any]:
    """The bill of materials of this tree."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    locked, version = [*packages(project)], importlib.metadata.version("penstock")
    made = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "penstock",
                "name": "penstock",
                "version": version,
                "purl": f"pkg:pypi/penstock@{version}",
                "licenses": [{"expression": project["license"]}],
            }
        },
        "components": [*locked, *jars(), *libraries()],
        "dependencies": [*dependencies(project, locked)],
    }
    return {**made, "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, json.dumps(made, sort_keys=True))}"}


def packages(project: Mapping[str, Any]) -> Iterator[Component]:
    """The packages of the lock: those of every installation, those of extras, and those that only build and test Penstock."""
    needed = reached(project["dependencies"])
    extra = reached([each for some in project["optional-dependencies"].values() for each in some])
    for entry in re.split(r"\n(?=\S)", (ROOT / "requirements.lock").read_text()):
        found = _PACKAGE.match(entry)
        if found is None:
            continue
        name, version, where = found[1].lower(), found[2], (found[3] or "").strip()
        scope = "required" if name in needed else "optional" if name in extra else "excluded"
        yield {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}@{version}",
            "name": name,
            "version": version,
            "purl": f"pkg:pypi/{name}@{version}",
            "scope": scope,
            "hashes": [sha256(digest) for digest in re.findall(r"sha256:([0-9a-f]{64})", entry)],
            **licences(name),
            **({"properties": [{"name": "penstock:where", "value": where}]} if where else {}),
        }


def jars() -> Iterator[Component]:
    """The JARs of Spark's connector for Kafka, and those of the broker for development."""
    lists = json.loads((SOURCE / "connectors" / "kafka_jars.json").read_text())
    used = [each["sha256"] for each in lists["connector"]]
    every = {json.dumps(each, sort_keys=True): each for some in lists.values() for each in some}
    for each in every.values():
        purl = f"pkg:maven/{each['org']}/{each['module']}@{each['revision']}"
        yield {
            "type": "library",
            "bom-ref": purl,
            "group": each["org"],
            "name": each["module"],
            "version": each["revision"],
            "purl": purl,
            "scope": "optional" if each["sha256"] in used else "excluded",
            "hashes": [sha256(each["sha256"])],
            **({"licenses": [{"license": {"id": "Apache-2.0"}}]} if each["org"].startswith("org.apache.") else {}),
        }


def libraries() -> Iterator[Component]:
    """The libraries of the console, which are in the wheel, with each of their files."""
    for each in json.loads((SOURCE / "web" / "vendored.json").read_text()):
        purl = f"pkg:npm/{each['npm'].replace('@', '%40')}@{each['version']}"
        files = sorted(each["files"].items())
        yield {
            "type": "library",
            "bom-ref": purl,
            "name": each["name"],
            "version": each["version"],
            "purl": purl,
            "scope": "required",
            "licenses": [{"license": {"id": each["licence"]}}],
            "components": [{"type": "file", "name": name, "hashes": [sha256(digest)]} for name, digest in files],
        }


def dependencies(project: Mapping[str, Any], locked: list[Component]) -> Iterator[dict[str, Any]]:
    """What needs what, as far as it is in the lock."""
    refs: dict[str, list[str]] = {}
    for each in locked:
        refs.setdefault(each["name"], []).append(each["bom-ref"])
    own = [*project["dependencies"], *(e for some in project["optional-dependencies"].values() for e in some)]
    for name, names in (("penstock", {_name(each) for each in own}), *((name, needs(name)) for name in sorted(refs))):
        on = sorted({ref for each in names for ref in refs.get(each, ())})
        for ref in refs.get(name, [name]):
            yield {"ref": ref, "dependsOn": on}


def reached(wanted: list[str]) -> set[str]:
    """The names of packages, with all that they need."""
    found: set[str] = set()
    rest = {_name(each) for each in wanted}
    while rest:
        found |= rest
        rest = {each for name in rest for each in needs(name)} - found
    return found


def needs(name: str) -> set[str]:
    """What a package that is installed needs in every installation."""
    try:
        wanted = importlib.metadata.requires(name) or []
    except importlib.metadata.PackageNotFoundError:
        return set()
    return {_name(each) for each in wanted if "extra ==" not in each}


def licences(name: str) -> dict[str, Any]:
    """The licence that a package says it has; nothing for one of another platform."""
    try:
        found = importlib.metadata.metadata(name)
    except importlib.metadata.PackageNotFoundError:
        return {}
    if "License-Expression" in found:
        return {"licenses": [{"expression": found["License-Expression"]}]}
    classes = [each for each in found.get_all("Classifier") or () if each.startswith("License :: OSI Approved ::")]
    said = [each.rpartition(" :: ")[2] for each in classes] or (found.get_all("License") or [""])[0].splitlines()[:1]
    return {"licenses": [{"license": {"name": each[:100]}} for each in said]} if said else {}


def sha256(digest: str) -> dict[str, str]:
    """A checksum."""
    return {"alg": "SHA-256", "content": digest}


def _name(wanted: str) -> str:
    found = _NAME.match(wanted)
    assert found is not None
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def main() -> None:
    """Writes or prints it."""
    text = json.dumps(sbom(), indent=1, sort_keys=True) + "\n"
    if "--print" in sys.argv[1:]:
        sys.stdout.write(text)
        return
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(text)
    sys.stdout.write(f"wrote {OUT.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
