"""The manifests of Kubernetes: its own schemas accept them, they fit together, and what they start exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer.main
from kubernetes_validate import ValidationError, validate
from yaml import safe_load, safe_load_all

from penstock.cli.main import make_app
from penstock.graph.run import RunSpec

FOLDER = Path(__file__).parents[1] / "deploy" / "kubernetes"
RELEASES = ("1.28", "1.33", "1.37")


def objects() -> list[tuple[str, dict[str, Any]]]:
    """Everything in the files, and the pod template inside the ConfigMap, each with its file."""
    found = [(path.name, each) for path in sorted(FOLDER.glob("*.yaml")) for each in safe_load_all(path.read_text())]
    inside = [
        (name, safe_load(text))
        for _, each in found
        if each["kind"] == "ConfigMap"
        for name, text in each["data"].items()
    ]
    return found + inside


def drivers() -> list[dict[str, Any]]:
    """The pods of drivers."""
    made = {
        "Deployment": lambda o: o["spec"]["template"],
        "CronJob": lambda o: o["spec"]["jobTemplate"]["spec"]["template"],
    }
    return [made[each["kind"]](each)["spec"] for _, each in objects() if each["kind"] in made]


@pytest.mark.parametrize("release", RELEASES)
def test_the_schemas_accept_every_object(release: str) -> None:
    kinds = []
    for name, each in objects():
        try:
            validate(each, release, strict=True)
        except ValidationError as error:
            pytest.fail(f"{name}: {each['kind']}: {error.message} at {list(error.path)}")
        kinds.append(each["kind"])
    assert {"Deployment", "CronJob", "Role", "RoleBinding", "ServiceAccount", "Secret", "ConfigMap", "Pod"} <= set(
        kinds
    )


def test_the_schemas_refuse_what_is_wrong() -> None:
    deployment = next(each for _, each in objects() if each["kind"] == "Deployment")
    with pytest.raises(ValidationError):
        validate({**deployment, "spec": {**deployment["spec"], "replica": 2}}, RELEASES[-1], strict=True)


def test_what_is_referred_to_is_there() -> None:
    names = {(each["kind"], each["metadata"].get("name")) for _, each in objects()}
    for pod in drivers():
        assert ("ServiceAccount", pod["serviceAccountName"]) in names
        assert {("ConfigMap", v["configMap"]["name"]) for v in pod["volumes"] if "configMap" in v} <= names
        assert {("Secret", e["secretRef"]["name"]) for c in pod["containers"] for e in c["envFrom"]} <= names


def test_the_commands_are_ones_that_penstock_takes() -> None:
    group: Any = typer.main.get_command(make_app(["run"]))
    known = {o for p in group.commands["run"].params for o in p.opts}
    for pod in drivers():
        container = pod["containers"][0]
        assert container["command"][:2] == ["penstock", "run"]
        flags = [argument.partition("=")[0] for argument in container["args"]]
        assert [flag for flag in flags if flag not in known] == []
        variables = set(re.findall(r"\$\((\w+)\)", " ".join(container["args"])))
        assert variables == {"NAMESPACE", "POD_NAME", "POD_IP"} <= {e["name"] for e in container["env"]}
        given = [
            argument.removeprefix("--conf=").partition("=")
            for argument in container["args"]
            if argument.startswith("--conf=")
        ]
        assert all(key.startswith("spark.") and value for key, _, value in given)


def test_the_options_make_a_run() -> None:
    arguments = drivers()[1]["containers"][0]["args"]
    given = {
        a[2:].partition("=")[0].replace("-", "_"): a.partition("=")[2] or True for a in arguments if "--conf" not in a
    }
    spec = RunSpec.of(**given)
    assert spec.standby
    assert str(spec.checkpoint) == "s3://flows/word-count"
