"""Imports go down only; the contracts stand in pyproject.toml."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_layer_contracts_hold() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_no_module_is_too_long() -> None:
    long = {
        str(p.relative_to(ROOT)): n
        for p in (ROOT / "src").rglob("*.py")
        if (n := len(p.read_text().splitlines())) > 500
    }
    assert long == {}


def test_the_page_of_the_architecture_names_all_packages() -> None:
    package = ROOT / "src/penstock"
    page = (ROOT / "docs/architecture.md").read_text()
    layers, folders = page.partition("## Layers")[2].partition("## Folders")[::2]
    tops = {path.stem for path in package.iterdir() if not path.name.startswith("_")}
    assert {name for name in tops if not re.search(rf"\b{name}\b", layers)} == set()
    inner = {path.name for part in ("frontends", "graph") for path in (package / part).glob("[!_]*/")}
    table = folders.partition("\n## ")[0]
    assert {name for name in inner if not re.search(rf"[`/]{name}[`/]", table)} == set()
