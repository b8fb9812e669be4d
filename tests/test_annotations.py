"""Annotations say what a value is: a bare `Any` is the exception."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "penstock"
BARE = ("Any", "Any | None", "None | Any", "Optional[Any]")
MOST = 0.03
"""The largest share of annotated slots that may be a bare `Any`."""


def slots(tree: ast.AST) -> Iterator[str]:
    """The annotations of the parameters and results of all functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            yield from (ast.unparse(a.annotation) for a in given if a.annotation is not None)
            if node.returns is not None:
                yield ast.unparse(node.returns)


def aliases_of_any(tree: ast.Module) -> list[str]:
    """Names that a module gives to `Any`."""
    assigned = [n for n in ast.walk(tree) if isinstance(n, ast.Assign | ast.AnnAssign) and n.value is not None]
    imported = [a for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module == "typing" for a in n.names]
    return [ast.unparse(n) for n in assigned if isinstance(n.value, ast.Name) and n.value.id == "Any"] + [
        str(a.asname) for a in imported if a.name == "Any" and a.asname
    ]


def test_few_annotations_are_a_bare_any() -> None:
    found = {p: list(slots(ast.parse(p.read_text()))) for p in sorted(SOURCE.rglob("*.py"))}
    bare = {p: sum(each in BARE for each in many) for p, many in found.items()}
    share = sum(bare.values()) / sum(map(len, found.values()))
    worst = sorted(bare, key=lambda p: -bare[p])[:5]
    shown = ", ".join(f"{p.relative_to(SOURCE)} {bare[p]}" for p in worst)
    assert share <= MOST, (
        f"{share:.1%} of the annotations are a bare Any, at most {MOST:.0%} may be; most are in {shown}"
    )


def test_any_has_no_other_name() -> None:
    assert [name for p in SOURCE.rglob("*.py") for name in aliases_of_any(ast.parse(p.read_text()))] == []


def test_a_bare_any_is_counted() -> None:
    text = "def f(a: Any, b: list[Any], *, c: Any | None = None) -> Any: ..."
    assert [each in BARE for each in slots(ast.parse(text))] == [True, False, True, True]
