"""Refuses functions that could not travel to a Spark worker, so that a test or a description finds them before a run does."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from penstock.errors import CaptureError
from penstock.graph.graph import Graph
from penstock.graph.nodes import Bolt, Node, Source

Copy = Callable[[object], object]
_NAME = "penstock_cloudpickle"


def check_capture(graph: Graph) -> None:
    """Sends the functions and classes of every Python step through the pickler that Spark uses, and back.

    Raises CaptureError for the first step with something in it that does not survive that, such as a lock or an open file.
    """
    copy = _copying()
    for node in graph.nodes if copy is not None else ():
        if (node.runs_python or node.has_functions) and copy is not None:
            _check(node, copy)


def _check(node: Node, copy: Copy) -> None:
    given: object = node.endpoint.options.get("function") if isinstance(node, Source) else node
    try:
        copy(given)
    except Exception as error:
        raise CaptureError(_text(node, error)) from error


def _text(node: Node, error: Exception) -> str:
    if isinstance(node, Bolt):
        return (
            f"bolt {node.name!r} ({node.line}) cannot be copied for its tasks: {error}. "
            f"Make such things in prepare(self, context)"
        )
    return (
        f"step {node.name!r} ({node.line}): its function cannot travel to a worker: {error}. "
        f"Make what it uses inside the function, or in on_open of a process step"
    )


@lru_cache(maxsize=1)
def _copying() -> Copy | None:
    """What sends a value through the pickler and back; None without pyspark.

    The pickler knows the classes that it has sent, and would fill the very class of the user with copies of what its methods hold. It is made
    to forget them, so that a test finds in its own list what its bolt put there.
    """
    module = _cloudpickle()
    if module is None:
        return None

    def copy(value: object) -> object:
        sent = module.dumps(value)
        module._DYNAMIC_CLASS_TRACKER_BY_ID.clear()
        return module.loads(sent)

    return copy


def _cloudpickle() -> ModuleType | None:
    """The pickler that pyspark carries, without the rest of pyspark, whose import takes longer than most tests; None without pyspark."""
    pyspark = importlib.util.find_spec("pyspark")
    if pyspark is None or not pyspark.submodule_search_locations:
        return None
    path = Path(pyspark.submodule_search_locations[0]) / "cloudpickle" / "cloudpickle.py"
    spec = importlib.util.spec_from_file_location(_NAME, path)
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    sys.modules[_NAME] = module
    spec.loader.exec_module(module)
    return module
