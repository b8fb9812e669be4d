"""Finds the user's own error inside the wall of text that a worker's failure becomes on its way."""

from __future__ import annotations

import re

from penstock.errors import DeliveryError, Failure, PenstockError, RunError, SetupError, StateError, StepError
from penstock.kernels.errors.marks import decode

_OWN: dict[str, type[PenstockError]] = {e.__name__: e for e in (StateError, RunError, DeliveryError, SetupError)}
"""Errors of Penstock's own that a worker may raise beside those of steps."""
_JAVA = re.compile(r"^(?:org|java|scala|py4j)\.[\w.$]+(?:Exception|Error): ?", re.MULTILINE)


def as_run_error(error: BaseException) -> PenstockError:
    """The error to show: the failed step, if a step failed; else Spark's first sentence."""
    if isinstance(error, PenstockError):
        return error
    text = str(error)
    found = decode(text)
    if found is not None:
        return StepError(Failure(**found))
    own = re.search(r"penstock\.errors\.(StateError|RunError|DeliveryError|SetupError): (.+)", text)
    if own:
        return _OWN[own.group(1)](own.group(2))
    return RunError(f"Spark stopped the flow: {_with_cause(error, headline(text))}")


def _with_cause(error: BaseException, shown: str) -> str:
    """Spark's sentence, and that of the innermost cause where it says more."""
    cause = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    last = ""
    while cause is not None:
        last = str(cause.getMessage() or "")
        cause = cause.getCause()
    deepest = headline(last) if last else ""
    return shown if not deepest or deepest in shown else f"{shown}\n  because: {deepest}"


def headline(text: str) -> str:
    """The part of Spark's error text that says what went wrong."""
    condition = re.search(r"\[[A-Z][A-Z0-9_.]+\].*?(?=\n\s*at |\n\nJVM|\nJVM|\n==|\Z)", text, re.DOTALL)
    if condition:
        return condition.group().strip()
    lines = [line for line in _JAVA.sub("", text).splitlines() if line.strip() and not line.strip().startswith("at ")]
    return "\n".join(lines[:8]) if lines else text[:500]
