"""What the code of a bolt does with its tuples, as far as it shows without running it."""

from __future__ import annotations

import dis
import inspect
from functools import lru_cache
from types import CodeType

from penstock.graph.logic.topology.tuples import Tuple
from penstock.graph.row import Row

_VALUES = frozenset({"component", "stream", "task", "is_tick", "values"})
"""What a tuple tells of itself without handing itself or its roots out."""


def only_reads_fields(process: object) -> bool:
    """Whether a `process` does nothing with its tuple but read its fields. Then nobody keeps the tuple or asks it for its roots, and it can be made without them.

    >>> class Bolt:
    ...     def process(self, tup):
    ...         return [tup.word, tup[0]]
    ...     def keep(self, tup):
    ...         self.last = tup
    >>> only_reads_fields(Bolt().process), only_reads_fields(Bolt().keep)
    (True, False)
    """
    code = getattr(getattr(process, "__func__", None), "__code__", None)
    return isinstance(code, CodeType) and _only_reads(code)


@lru_cache(maxsize=1024)
def _only_reads(code: CodeType) -> bool:
    if code.co_argcount != 2 or code.co_flags & (inspect.CO_VARARGS | inspect.CO_GENERATOR | inspect.CO_COROUTINE):
        return False
    tup = code.co_varnames[1]
    if tup in code.co_cellvars or "locals" in code.co_names:
        return False
    steps = list(dis.get_instructions(code))
    uses = [at for at, step in enumerate(steps) if _names(step, tup)]
    return all(_reads_field(steps[at : at + 3]) for at in uses)


def records_given(process: object) -> int | None:
    """How many records a `process` gives for each tuple, where every way out of its code returns as many; None where only a run can tell.

    >>> class Bolt:
    ...     def process(self, tup):
    ...         return ((tup.word, 1),)
    ...     def words(self, tup):
    ...         return tup.line.split()
    >>> records_given(Bolt().process), records_given(Bolt().words)
    (1, None)
    """
    code = getattr(getattr(process, "__func__", None), "__code__", None)
    return _given(code) if isinstance(code, CodeType) else None


@lru_cache(maxsize=1024)
def _given(code: CodeType) -> int | None:
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return None
    steps = list(dis.get_instructions(code))
    found = {_returned(steps[at - 1], step) for at, step in enumerate(steps) if step.opname.startswith("RETURN_")}
    return found.pop() if len(found) == 1 else None


def _returned(before: dis.Instruction, step: dis.Instruction) -> int | None:
    """How many records one way out returns."""
    if step.opname == "RETURN_CONST":
        return _many(step.argval)
    if step.opname != "RETURN_VALUE" or step.is_jump_target:
        return None
    if before.opname in ("BUILD_TUPLE", "BUILD_LIST"):
        return before.arg
    return _many(before.argval) if before.opname == "LOAD_CONST" else None


def _many(constant: object) -> int | None:
    """How many records a constant is."""
    if constant is None:
        return 0
    return len(constant) if type(constant) is tuple else None


def _names(step: dis.Instruction, name: str) -> bool:
    """Whether a step of the code is about a local variable."""
    return "FAST" in step.opname and (step.argval == name or (isinstance(step.argval, tuple) and name in step.argval))


def _reads_field(steps: list[dis.Instruction]) -> bool:
    """Whether the code goes on to a field of the tuple that it has just taken."""
    match [step.opname for step in steps]:
        case ["LOAD_FAST", "LOAD_ATTR", *_]:
            name = steps[1].argval
            return name in _VALUES or not (hasattr(Tuple, name) or hasattr(Row, name))
        case ["LOAD_FAST", "LOAD_CONST", "BINARY_SUBSCR"]:
            return True
    return False
