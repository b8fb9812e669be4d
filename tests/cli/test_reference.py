"""The reference of the command line is complete, and so are the tables of metrics and of `ps.run`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer.main

from penstock.cli.main import make_app
from penstock.jobs.metrics import Metrics

DOCS = Path(__file__).resolve().parents[2] / "docs"


def leaves(command: Any, name: str = "") -> dict[str, Any]:
    """The commands that do something, by their full names: `run`, `topics create`."""
    if not hasattr(command, "commands"):
        return {name: command}
    inner = [leaves(c, f"{name} {n}".strip()) for n, c in command.commands.items()]
    return {n: c for found in inner for n, c in found.items()}


COMMANDS = leaves(typer.main.get_command(make_app()))


def section(name: str) -> str:
    text = (DOCS / "reference" / "cli.md").read_text()
    found = re.search(rf"^##+ {name}$(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, name
    return found[1]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_option_of_a_command_is_in_the_reference_and_no_other(name: str) -> None:
    flags = {o for p in COMMANDS[name].params if p.param_type_name == "option" for o in p.opts if o.startswith("--")}
    written = set(re.findall(r"^\| `(--[a-z-]+)", section(name), re.MULTILINE))
    assert written == flags - {"--help"}


def test_every_metric_is_in_the_guide() -> None:
    text = (DOCS / "guide" / "monitoring.md").read_text()
    families = {f.name for f in Metrics("x").registry.collect()}
    written = {name.removesuffix("_total") for name in re.findall(r"^\| `(penstock_\w+)`", text, re.MULTILINE)}
    assert written == families
