"""The API reference: every public name describes its arguments, result and errors, its example runs, and its page is as it says."""

from __future__ import annotations

import ast
import builtins
import doctest
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
import penstock.testing
import penstock.trident
from penstock import errors
from penstock.connectors import base
from scripts.reference import PAGES, RETURNED, Name, callables, parsed, stale

NAMES = {name.called: name for name in callables()}
STORAGE = {name for page in PAGES if page.module == "penstock.storage" for name in page.names}
"""What others than the project's own layers need of the package of storages."""
HAVE_EXAMPLES = ("Flow", "Stream", "KeyedStream", "WindowedStream", "Topology")
"""The classes of which each method has an example of its own."""


def helpers(name: Name, tree: ast.AST) -> Iterator[Name]:
    """The functions of the same module, and the private methods of the same class, that some code calls."""
    space = inspect.unwrap(name.of).__globals__ if inspect.isfunction(name.of) else {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found = space.get(node.func.id)
            if inspect.isfunction(found) and found.__globals__ is space:
                yield Name(node.func.id, found, name.owner)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.startswith("_"):
            found = getattr(name.owner, node.func.attr, None)
            if inspect.isfunction(found):
                yield Name(node.func.attr, found, name.owner)


def raised(name: Name, seen: set[str] | None = None) -> set[str]:
    """The exceptions that a function raises itself, or by a helper beside it which gets its arguments."""
    seen = set() if seen is None else seen
    seen.add(name.called)
    tree = name.source
    thrown = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    called = [e.func if isinstance(e, ast.Call) else e for e in thrown]
    found = {e.id for e in called if isinstance(e, ast.Name) and e.id[:1].isupper()}
    for helper in helpers(name, tree) if name.parameters else ():
        if helper.called not in seen:
            found |= raised(helper, seen)
    return found


def class_of(name: str) -> type[BaseException] | None:
    """The exception of a name."""
    made = getattr(errors, name, None) or getattr(builtins, name, None)
    return made if inspect.isclass(made) and issubclass(made, BaseException) else None


def is_said(name: str, said: list[str]) -> bool:
    """Whether an exception, or one that it is a kind of, is described."""
    kind = class_of(name)
    above = [made for made in map(class_of, said) if made is not None]
    return kind is None or name in said or any(issubclass(kind, each) for each in above)


def needs_example(name: Name) -> bool:
    owner, _, method = name.called.rpartition(".")
    return name.is_class or owner in ("", "ps", *HAVE_EXAMPLES) or not method


@pytest.mark.parametrize("name", NAMES.values(), ids=list(NAMES))
def test_a_public_name_describes_its_arguments_result_errors_and_has_an_example(name: Name) -> None:
    doc = name.doc
    assert doc.about, "no description"
    assert [p.name for p in name.parameters if not doc.args.get(p.name)] == [], "arguments without a description"
    known = {p.name for p in name.parameters}
    assert name.is_class or [arg for arg in doc.args if arg not in known] == [], "descriptions of no argument"
    assert doc.returns or not name.has_result, "no description of what is returned"
    if not name.is_class:
        assert [e for e in sorted(raised(name)) if not is_said(e, list(doc.raises))] == [], (
            "errors that are not described"
        )
    assert doc.example or not needs_example(name), "no example"


@pytest.mark.parametrize("name", [n for n in NAMES.values() if n.doc.example], ids=lambda n: n.called)
def test_the_example_of_a_public_name_runs(name: Name, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(name.doc.example, {}, name.called, None, None)
    said: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert said == []


def test_every_public_name_is_on_a_page() -> None:
    listed = {name for page in PAGES for name in page.names} - set(RETURNED)
    known = {*penstock.__all__, *penstock.testing.__all__, *penstock.trident.__all__, *base.__all__}
    assert listed - STORAGE == known - {"__version__", *RETURNED}


def test_the_pages_are_as_the_docstrings_say() -> None:
    assert stale() == [], "run `make reference`"


def test_an_argument_without_a_description_is_noticed() -> None:
    doc = parsed("Adds.\n\nArgs:\n    n: a number,\n        or two.\n\nReturns:\n    The sum.\n\n>>> 1 + 1\n2")
    assert (doc.args, doc.returns, doc.example) == ({"n": "a number, or two."}, "The sum.", ">>> 1 + 1\n2")


def test_an_error_of_a_helper_is_noticed() -> None:
    assert "FlowError" in raised(Name("ps.tumbling", penstock.tumbling))
