"""Finds the user's own error inside the wall of text that a worker's failure becomes on its way."""

from __future__ import annotations

import itertools
import re

from penstock.errors import DeliveryError, Failure, PenstockError, RunError, SetupError, StateError, StepError
from penstock.kernels.errors.marks import decode

_OWN: dict[str, type[PenstockError]] = {e.__name__: e for e in (StateError, RunError, DeliveryError, SetupError)}
"""Errors of Penstock's own that a worker may raise beside those of steps."""
_JAVA = re.compile(r"^(?:org|java|scala|py4j)\.[\w.$]+(?:Exception|Error): ?", re.MULTILINE)
_FRAME = re.compile(
    r"\s+at |\s*\.\.\. \d+ more|[\w.$/<>]+\((?:[\w$]+\.(?:java|scala):\d+|Native Method|Unknown Source)\)"
)


def as_run_error(error: BaseException) -> PenstockError:
    """The error to show: the failed step, if a step failed; else Spark's first sentence."""
    if isinstance(error, PenstockError):
        return error
    text = str(error)
    found = decode(text)
    if found is not None:
        return StepError(Failure(**found))
    known = _of_the_machine(error, text)
    if known is not None:
        return known
    own = re.search(r"penstock\.errors\.(StateError|RunError|DeliveryError|SetupError): (.+)", text)
    if own:
        return _OWN[own.group(1)](own.group(2))
    return RunError(f"Spark stopped the flow: {_with_cause(error, headline(text))}")


def _of_the_machine(error: BaseException, text: str) -> PenstockError | None:
    """What has happened to the machine rather than to the flow: the JVM is gone, a disk is full."""
    if _DISK_FULL.search(text):
        where = re.search(r"No space left on device: '([^']+)'", text)
        return RunError(f"a disk is full{f' (writing {where[1]})' if where else ''}. {_DISK_ADVICE}")
    if type(error).__name__ in _GONE or _JVM_GONE.search(text):
        return RunError(_JVM_ADVICE)
    return None


_DISK_FULL = re.compile(r"\[Errno 28\]|No space left on device|not enough space", re.IGNORECASE)
_DISK_ADVICE = (
    "The batch was not committed and nothing is lost: make room, then start the flow again, and it runs the same batch once more. "
    "Disks to look at: the checkpoint directory, those of file sinks and topics, and Spark's own (spark.local.dir, by default the temporary directory)"
)
_GONE = ("Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError", "BrokenPipeError")
_JVM_GONE = re.compile(
    r"Answer from Java side is empty|Error while (?:sending|receiving)|while trying to connect to the Java server"
    r"|\AAn error occurred while calling [\w.$]+\Z"  # all that py4j raises where its connection breaks within a call
)
_JVM_ADVICE = (
    "Spark's JVM has ended while the flow ran: it was killed (by hand, or by the system for want of memory) or it crashed. What was "
    "committed is safe, and nothing is lost: start the flow again, and it continues from its checkpoint. If memory was short, give it "
    "more (--conf spark.driver.memory=4g) or let a batch take less (--max-rows)"
)


def is_passing(error: BaseException) -> bool:
    """Whether an error of Spark's is only that the machine was too busy: Spark gives a Python process ten seconds to start, and no setting changes that.

    >>> is_passing(RuntimeError("org.apache.spark.SparkException: Python worker failed to connect back."))
    True
    """
    return "Python worker failed to connect back" in str(error)


def _with_cause(error: BaseException, shown: str) -> str:
    """Spark's sentence, and that of the innermost cause where it says more."""
    cause = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    last = ""
    while cause is not None:
        try:
            last = str(cause.getMessage() or "")
            cause = cause.getCause()
        except Exception:  # the JVM that knows it is gone
            break
    deepest = headline(last) if last else ""
    return shown if not deepest or deepest in shown else f"{shown}\n  because: {deepest}"


def start_failure(error: Exception, master: str = "") -> SetupError:
    """The error to show where Spark does not start.

    >>> start_failure(ValueError("Cannot call methods on a stopped SparkContext."), "spark://host:7077")
    SetupError('Spark did not start: no master answers at spark://host:7077; is it up, and does this machine reach it?')
    """
    if "stopped SparkContext" in str(error) and master:
        return SetupError(
            f"Spark did not start: no master answers at {master}; is it up, and does this machine reach it?"
        )
    return SetupError(f"Spark did not start: {headline(str(error))}")


def headline(text: str) -> str:
    """The part of Spark's error text that says what went wrong."""
    condition = re.search(r"\[[A-Z][A-Z0-9_.]+\].*?(?=\n\s*at |\n\nJVM|\nJVM|\n==|\Z)", text, re.DOTALL)
    if condition:
        return condition.group().strip()
    lines = [line for line in _JAVA.sub("", text).splitlines() if line.strip()]
    first = list(itertools.takewhile(lambda line: not _FRAME.match(line), lines))
    causes = [line for line in lines[len(first) :] if line.startswith("Caused by: ")]
    return "\n".join([*first[:8], *causes[-1:]]) if first else text[:500]
