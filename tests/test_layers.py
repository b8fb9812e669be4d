"""Imports go down only; the contracts stand in pyproject.toml."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src/penstock"
UPWARD = {("penstock.graph.expr.model", "penstock.graph.expr.build")}
"""Imports inside of functions that close a circle: `Call.where` takes a text, and what reads texts makes calls."""


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


def test_an_own_import_inside_of_a_function_says_why() -> None:
    """It has its reason behind it, or refuses with what is to be installed."""
    bare = [line for path in PACKAGE.rglob("*.py") for line in _without_reason(path)]
    assert bare == []


def test_no_imports_go_in_a_circle() -> None:
    """Neither those at the top nor those inside of functions; packages count with the modules they are loaded for."""
    names = {_name_of(path): path for path in PACKAGE.rglob("*.py")}
    graph = {name: _imported(name, path, names) for name, path in names.items()}
    for module, upper in UPWARD:
        graph[module].remove(upper)
    list(TopologicalSorter(graph).static_order())  # a circle is an error that names it


def _without_reason(path: Path) -> list[str]:
    """The imports of our own inside of functions, but for those with a comment and those that are tried."""
    found, outer, before = [], "", ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        outer = line if line[:1].strip() else outer
        is_inner = line.lstrip().startswith("from penstock") and line is not outer and outer != "if TYPE_CHECKING:"
        if is_inner and "#" not in line and before != "try:":
            found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
        before = line.strip()
    return found


def _name_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def _imported(name: str, path: Path, names: dict[str, Path]) -> set[str]:
    """The modules that a module imports, and the packages that they are in, but for those that it is in itself."""
    found: set[str] = set()
    for node in _run(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {m if m in names else node.module for m in (f"{node.module}.{a.name}" for a in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    parts = {tuple(module.split(".")) for module in found & set(names)}
    whole = {".".join(each[:n]) for each in parts for n in range(2, len(each) + 1)}
    return {each for each in whole if not f"{name}.".startswith(f"{each}.")}


def _run(tree: ast.AST) -> Iterator[ast.AST]:
    """All that is run, which what stands under TYPE_CHECKING is not."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.expr) and not (
            isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        ):
            yield node
            yield from _run(node)
