"""Whether this server's Python, which runs the drivers of jobs, has the packages that a flow imports."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from penstock.errors import OptionError


def check_packages(needed: Mapping[str, str]) -> None:
    """Raises OptionError for those that are missing, with the command that installs them.

    Args:
        needed: Top-level packages by their names, each with the extra of Penstock that installs it, or nothing.
    """
    missing = {name: extra for name, extra in needed.items() if not _is_here(name)}
    if missing:
        named = ", ".join(repr(name) for name in missing)
        install = " ".join(f"'penstock[{extra}]'" if extra else name for name, extra in missing.items())
        raise OptionError(
            f"the flow imports {named}, and the Python of the server does not have it; install it there: pip install {install}"
        )


def _is_here(name: str) -> bool:
    """Whether a package is there; it is not imported."""
    if not name.isidentifier():
        raise OptionError(f"expected the name of a package, got {name[:100]!r}")
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):  # a module without a spec is there
        return True
