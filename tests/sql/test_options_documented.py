"""Every option that a table takes in WITH stands in the reference of SQL."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from penstock.frontends.sql.catalog import connectors
from penstock.frontends.sql.catalog.options import _IGNORES, ON_ERROR, PARTITION_OPTION

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "sql.md"
ASKS = ("get", "need", "number", "flag")


def options() -> set[str]:
    """The names by which the makers of endpoints ask for options: in calls, and in loops over several."""
    tree = ast.parse(Path(connectors.__file__).read_text())
    return {*asked(tree), *_IGNORES, ON_ERROR, PARTITION_OPTION}


def asked(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ASKS:
            yield from texts(node.args)
        elif isinstance(node, ast.For) and isinstance(node.iter, ast.Tuple):
            yield from texts(node.iter.elts)


def texts(nodes: list[ast.expr]) -> Iterator[str]:
    return (n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value)


def test_every_option_of_a_table_is_in_the_reference() -> None:
    page = PAGE.read_text()
    found = options()
    assert {"topic", "scan.startup.mode", "sink.delivery-guarantee", "on-error"} <= found
    assert sorted(name for name in found if f"`{name}`" not in page and f"`'{name}'" not in page) == []
