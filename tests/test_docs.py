"""Every example in the docs and in the docstrings runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import types
from pathlib import Path

import pytest

import penstock

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```python([^\n]*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
MODULES = [m.name for m in pkgutil.walk_packages(penstock.__path__, "penstock.") if not m.name.endswith("__main__")]


def blocks(page: Path) -> list[str]:
    """The Python blocks of a page; one that says `no-run` after the language is only read."""
    return [code for words, code in BLOCK.findall(page.read_text()) if "no-run" not in words]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page run in order, in one namespace, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    space = types.ModuleType("page")
    monkeypatch.setitem(__import__("sys").modules, "page", space)
    for number, code in enumerate(blocks(page), 1):
        exec(compile(code, f"{page.name}, block {number}", "exec", dont_inherit=True), space.__dict__)


def anchors(page: Path) -> set[str]:
    """What a link may name after `#`: the headings of a page, as GitHub makes anchors of them."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    headings = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", h) for h in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]
    return {re.sub(r"[^\w\- ]", "", h.strip().lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", [ROOT / "CHANGELOG.md", *PAGES], ids=lambda p: str(p.relative_to(ROOT)))
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?[^)]*\)", text):
        if "://" in target:
            continue
        to = page.parent / target if target else page
        assert to.exists(), target
        assert not anchor or to.suffix != ".md" or anchor in anchors(to), f"{target}#{anchor}"


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str) -> None:
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0
