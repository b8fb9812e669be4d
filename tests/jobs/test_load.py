"""Finding the flow a user means, and saying clearly what is wrong when there is none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import FlowError, SchemaError
from penstock.jobs.load import load_flow

FLOW = """
import penstock as ps
{name} = ps.Flow("{name}")
{name}.source("names", ps.items(["ada"], "name string")).sink("out", ps.console())
"""


@pytest.fixture(autouse=True)
def _clean_imports(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leaves the import system as it was."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def test_the_one_flow_of_a_file_is_found(tmp_path: Path) -> None:
    loaded = load_flow(write(tmp_path, "greet.py", FLOW.format(name="greet")))
    assert (loaded.graph.name, loaded.module, loaded.folder) == ("greet", "greet", tmp_path)


def test_a_flow_is_found_by_name_among_several(tmp_path: Path) -> None:
    file = write(tmp_path, "two.py", FLOW.format(name="one") + FLOW.format(name="other"))
    assert load_flow(f"{file}:other").graph.name == "other"
    with pytest.raises(FlowError, match=r"two.py has several flows: one, other. Say which: two.py:one"):
        load_flow(file)


def test_a_flow_with_two_names_is_one_flow(tmp_path: Path) -> None:
    file = write(tmp_path, "alias.py", FLOW.format(name="one") + "\nsame = one\n")
    assert load_flow(file).graph.name == "one"


def test_a_wrong_name_lists_the_nearest(tmp_path: Path) -> None:
    file = write(tmp_path, "near.py", FLOW.format(name="orders"))
    with pytest.raises(FlowError, match=r"near.py has no 'order'; did you mean 'orders'"):
        load_flow(f"{file}:order")


def test_a_name_that_is_no_flow_says_what_it_is(tmp_path: Path) -> None:
    file = write(tmp_path, "kind.py", FLOW.format(name="orders") + "\nlimit = 5\n")
    with pytest.raises(FlowError, match="'limit' is a int, not a flow; there are: 'orders'"):
        load_flow(f"{file}:limit")


def test_a_function_without_arguments_makes_a_flow(tmp_path: Path) -> None:
    body = "import penstock as ps\ndef orders() -> ps.Flow:\n    flow = ps.Flow('made')\n"
    body += "    flow.source('s', ps.items([1], 'n int')).sink('o', ps.console())\n    return flow\n"
    file = write(tmp_path, "maker.py", body)
    assert load_flow(f"{file}:orders").graph.name == "made"
    assert load_flow(file).graph.name == "made"


def test_a_function_that_nobody_named_and_that_promises_no_flow_is_not_called(tmp_path: Path) -> None:
    file = write(tmp_path, "danger.py", "def wipe_disk():\n    raise SystemExit('called')\n")
    with pytest.raises(FlowError, match=r"danger.py has no flow. .* It has: wipe_disk"):
        load_flow(file)


def test_a_function_with_arguments_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path, "needs.py", "def make(rate):\n    return rate\n")
    with pytest.raises(FlowError, match=r"make\(rate\) must take no arguments"):
        load_flow(f"{file}:make")


def test_a_missing_file_names_the_nearest(tmp_path: Path) -> None:
    write(tmp_path, "orders.py", "")
    with pytest.raises(FlowError, match=r"did you mean 'orders.py'"):
        load_flow(str(tmp_path / "order.py"))
    with pytest.raises(FlowError, match="there is no folder"):
        load_flow(str(tmp_path / "nowhere" / "order.py"))


def test_an_error_in_the_file_is_the_users_own_traceback(tmp_path: Path) -> None:
    file = write(tmp_path, "broken.py", "def helper():\n    return 1 / 0\nhelper()\n")
    with pytest.raises(FlowError) as caught:
        load_flow(file)
    text = str(caught.value)
    assert "broken.py could not be loaded" in text
    assert 'broken.py", line 2, in helper' in text
    assert text.endswith("ZeroDivisionError: division by zero")
    assert "importlib" not in text
    assert "jobs/load.py" not in text


def test_a_syntax_error_shows_the_line(tmp_path: Path) -> None:
    file = write(tmp_path, "syntax.py", "flow = (\n")
    with pytest.raises(FlowError, match=r"(?s)syntax.py.*line 1.*SyntaxError"):
        load_flow(file)


def test_an_error_of_the_flow_itself_comes_through_as_it_is(tmp_path: Path) -> None:
    body = 'import penstock as ps\nflow = ps.Flow("f")\nflow.source("s", ps.items([1], "n int")).key_by("m")\n'
    with pytest.raises(SchemaError, match=r"key_by \(schema.py:3\)"):
        load_flow(write(tmp_path, "schema.py", body))


def test_a_module_is_found_by_its_dotted_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "shopx/__init__.py", "")
    write(tmp_path, "shopx/flows.py", FLOW.format(name="orders"))
    loaded = load_flow("shopx.flows:orders")
    assert (loaded.graph.name, loaded.module) == ("orders", "shopx.flows")
    with pytest.raises(FlowError, match=r"there is no module 'shopx.flow'"):
        load_flow("shopx.flow")
    with pytest.raises(FlowError, match=r"there is no module 'shopy.flows'"):
        load_flow("shopy.flows")


def test_a_file_inside_a_package_may_import_its_siblings(tmp_path: Path) -> None:
    write(tmp_path, "market/__init__.py", "")
    write(tmp_path, "market/names.py", "NAME = 'from-sibling'\n")
    body = "from market.names import NAME\nfrom . import names\nimport penstock as ps\nflow = ps.Flow(NAME)\n"
    file = write(
        tmp_path, "market/flows.py", body + "flow.source('s', ps.items([1], 'n int')).sink('o', ps.console())\n"
    )
    loaded = load_flow(file)
    assert (loaded.graph.name, loaded.module) == ("from-sibling", "market.flows")


def test_a_file_named_like_a_known_module_does_not_replace_it(tmp_path: Path) -> None:
    import random

    loaded = load_flow(write(tmp_path, "random.py", FLOW.format(name="dice")))
    assert loaded.module != "random"
    assert sys.modules["random"] is random


def test_a_run_in_the_file_runs_nothing_while_it_is_loaded(tmp_path: Path) -> None:
    file = write(tmp_path, "eager.py", FLOW.format(name="eager") + "\nps.run(eager)\n")
    assert load_flow(file).graph.name == "eager"


def test_an_exit_in_the_file_is_an_error_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(FlowError, match="ended the program"):
        load_flow(write(tmp_path, "leaves.py", "raise SystemExit(3)\n"))
