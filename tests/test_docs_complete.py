"""The reference pages have an entry for everything they are a reference of, and every page can be found."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import penstock
import penstock.testing
from penstock import errors
from penstock.graph.aggregates.aggregate import RECIPES
from penstock.graph.expr import FUNCTIONS
from penstock.graph.run import Option, run_options

DOCS = Path(__file__).resolve().parents[1] / "docs"
REFERENCE = DOCS / "reference"
LINK = re.compile(r"\]\(([^)#\s]+\.md)[^)]*\)")


def text_of(page: Path) -> str:
    """A page without its code blocks."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def entries(page: Path) -> set[str]:
    """The names that have a heading or a bold entry of their own on a page."""
    text = text_of(page)
    headings = re.findall(r"^#+ `?([\w.]+)`?$", text, re.MULTILINE)
    bold = re.findall(r"\*\*`?([\w.]+)`?\*\*", text)
    return {*headings, *bold}


def words_in_code(page: Path) -> set[str]:
    """Every word and every operator that stands in code on a page."""
    spans = re.findall(r"`+([^`\n]+)`+", text_of(page).replace("\\|", "|"))
    words = {word.lower() for span in spans for word in re.findall(r"\w+", span)}
    signs = {sign for span in spans for sign in re.findall(r"[^\w\s'\"(),.]+", span)}
    return words | signs


def linked(page: Path) -> set[Path]:
    """The pages that a page links to."""
    return {(page.parent / target).resolve() for target in LINK.findall(text_of(page)) if "://" not in target}


def reachable(start: Path) -> set[Path]:
    """The pages that can be reached from one by links."""
    seen: set[Path] = set()
    waiting = [start.resolve()]
    while waiting:
        page = waiting.pop()
        if page not in seen and page.exists():
            seen.add(page)
            waiting += linked(page)
    return seen


def raised() -> list[str]:
    """The names of all exceptions in `penstock.errors`."""
    kinds = vars(errors).values()
    return sorted(k.__name__ for k in kinds if inspect.isclass(k) and issubclass(k, errors.PenstockError))


@pytest.mark.parametrize("name", penstock.__all__)
def test_every_public_name_is_in_the_api_reference(name: str) -> None:
    assert name in entries(REFERENCE / "api.md")


@pytest.mark.parametrize("name", penstock.testing.__all__)
def test_every_name_of_the_test_kit_is_in_the_api_reference(name: str) -> None:
    assert name in entries(REFERENCE / "api.md")


@pytest.mark.parametrize("name", ["Flow", "Stream"])
def test_every_method_of_a_flow_and_a_stream_is_in_the_api_reference(name: str) -> None:
    public = {n for n in vars(getattr(penstock, name)) if not n.startswith("_")} - {"add", "output", "flow", "port"}
    assert public - words_in_code(REFERENCE / "api.md") == set()


def test_every_exception_is_in_the_error_reference() -> None:
    assert [name for name in raised() if name not in entries(REFERENCE / "errors.md")] == []


def test_the_tree_of_exceptions_is_drawn_as_it_is() -> None:
    drawn = re.findall(r"^[│├└─ ]*(\w+)$", (REFERENCE / "errors.md").read_text(), re.MULTILINE)
    assert [name for name in raised() if name not in drawn] == []


def test_every_field_of_a_failure_is_in_the_error_reference() -> None:
    page = words_in_code(REFERENCE / "errors.md")
    assert [name for name in errors.Failure.__dataclass_fields__ if name not in page] == []


def test_every_function_is_in_the_expression_reference() -> None:
    assert [name for name in FUNCTIONS if name not in words_in_code(REFERENCE / "expressions.md")] == []


def test_every_aggregate_is_in_the_expression_reference() -> None:
    assert [name for name in RECIPES if name not in words_in_code(REFERENCE / "expressions.md")] == []


def test_every_setting_is_in_the_settings_reference_with_its_value() -> None:
    from penstock.spark.jvm.session import SETTINGS

    page = (REFERENCE / "settings.md").read_text()
    assert [f"{k} = {v}" for k, v in SETTINGS.items() if f"| `{k}` | `{v}` |" not in page] == []


def row_of(of: Option[object]) -> str:
    """The row of an option in the settings reference."""
    flag = f"`{f'{of.flag} {of.kind.metavar}'.strip()}`".replace("|", "\\|") if of.flag else ""
    shown = f"`{of.shown}`" if of.shown else ""
    return f"| {flag} | `{of.name}` | {shown} | {of.help} |"


def test_every_run_option_is_in_the_settings_reference_as_it_is_declared() -> None:
    page = (REFERENCE / "settings.md").read_text()
    assert [row for row in map(row_of, run_options().values()) if row not in page] == []


def test_every_variable_of_the_environment_is_in_the_settings_reference() -> None:
    source = "\n".join(p.read_text() for p in (DOCS.parent / "src").rglob("*.py"))
    read = set(re.findall(r"os\.environ(?:\.get\(|\.setdefault\(|\[)\s*f?[\"']([A-Z_]+)[\"']", source))
    assert len(read) > 5, "the pattern finds what is read"
    assert [name for name in sorted(read) if f"`{name}`" not in (REFERENCE / "settings.md").read_text()] == []


def test_every_page_can_be_reached_from_the_index() -> None:
    lost = {p.resolve() for p in DOCS.rglob("*.md")} - reachable(DOCS / "index.md")
    assert sorted(p.name for p in lost) == []


def test_every_benchmark_is_on_the_page_of_figures_and_no_other() -> None:
    from penstock.cli.tools.bench import find

    page = (DOCS / "guide" / "measured.md").read_text()
    table = page[page.index("| What |") :]
    assert set(re.findall(r"`penstock bench ([\w-]+)`", table)) == {m.NAME for m in find()}


def test_every_figure_has_its_command() -> None:
    lines = (DOCS / "guide" / "measured.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith("| What |")]
    assert len(rows) > 20
    assert [row for row in rows if "`penstock bench " not in row] == []


def test_every_decision_is_listed() -> None:
    pages = {p.resolve() for p in (DOCS / "decisions").glob("0*.md")}
    assert pages - linked(DOCS / "decisions" / "README.md") == set()


def test_every_guide_page_has_a_title_and_an_example() -> None:
    for page in sorted((DOCS / "guide").glob("*.md")):
        assert page.read_text().startswith("# "), page.name
        assert "```" in page.read_text(), page.name
