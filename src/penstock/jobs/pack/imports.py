"""The installed packages that the code of a flow imports whenever it is loaded: whoever runs the flow needs them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from penstock.jobs.ship import is_installed, path_of


def needed_packages(files: Iterable[Path]) -> set[str]:
    """The packages that modules of these files import, those alone that are loaded here and import them unconditionally.

    Imports inside a function, an `if` or a `try` are not counted: the flow may do without them.
    """
    loaded = {
        Path(file).resolve() for module in list(sys.modules.values()) if (file := getattr(module, "__file__", None))
    }
    names = {name for file in files if file.resolve() in loaded for name in imported(file.read_text())}
    return {name for name in names if name != "penstock" and _is_package(name)}


def imported(code: str) -> Iterator[str]:
    r"""The top-level names that a module imports whatever happens.

    >>> list(imported("import numpy as np\nfrom scipy.stats import norm\nfrom . import near\ntry:\n    import ujson\nexcept ImportError: pass"))
    ['numpy', 'scipy']
    """
    for statement in ast.parse(code).body:
        if isinstance(statement, ast.Import):
            yield from (each.name.partition(".")[0] for each in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            yield statement.module.partition(".")[0]


def _is_package(name: str) -> bool:
    path = path_of(sys.modules.get(name))
    return path is not None and name not in sys.stdlib_module_names and is_installed(path.resolve())
