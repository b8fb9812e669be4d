"""Functions and classes by reference, `module:name`, and back.

>>> referenced("posixpath:join")("a", "b")
'a/b'
>>> reference_to(referenced("json:dumps"))
'json:dumps'
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

from penstock.errors import FlowError, nearest

REFERENCE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


def is_reference(text: object) -> bool:
    """Whether a text is of the form `module:name`."""
    return isinstance(text, str) and REFERENCE.fullmatch(text) is not None


def referenced(text: str) -> Any:
    """What a reference stands for.

    Raises:
        FlowError: it is none, the module cannot be imported, or has no such name.
    """
    if not is_reference(text):
        raise FlowError(f"expected a reference such as 'shop.text:split' (module:name), got {text!r}")
    module, _, name = text.partition(":")
    found: Any = _module(module, text)
    for part in name.split("."):
        if not hasattr(found, part):
            public = [n for n in dir(found) if not n.startswith("_")]
            raise FlowError(f"{text!r}: module {module!r} has no {name!r}; {nearest(part, public)}")
        found = getattr(found, part)
    return found


def _module(name: str, text: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if f"{name}.".startswith(f"{error.name}."):
            raise FlowError(f"{text!r}: there is no module {name!r} beside the file or on the path") from None
        raise FlowError(f"{text!r}: module {name!r} could not be imported: {error}") from error
    except Exception as error:
        raise FlowError(f"{text!r}: module {name!r} could not be imported: {type(error).__name__}: {error}") from error


def use_folder(folder: Path) -> None:
    """Modules beside a file are found first, as they are for a Python program."""
    named = str(folder.absolute())
    if named in sys.path:
        sys.path.remove(named)
    sys.path.insert(0, named)


def reference_to(value: object) -> str | None:
    """The reference of a function or a class; None when it has none, as a lambda or what stands in a function."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    text = f"{module}:{name}"
    if not module or not name or not is_reference(text) or module == "__main__":
        return None
    try:
        return text if referenced(text) is value else None
    except FlowError:
        return None
