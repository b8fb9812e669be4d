"""How many runs a pattern may have, as users write it."""

from __future__ import annotations

from penstock.errors import FlowError, nearest
from penstock.graph.patterns.pattern import Overflow, RunLimit

PER_KEY, PER_PATTERN = "key", "pattern"


def run_limit(runs: int, overflow: str = "drop", per: str = PER_KEY) -> RunLimit:
    """How many runs a pattern from text or JSON may have at a time, as `.limit(...)` says it of `ps.pattern`.

    Args:
        runs: the most that a key may have, or the pattern.
        overflow: what happens to the oldest runs above that: "drop", "aside" or "fail".
        per: "key" or "pattern".

    Returns:
        The limit, for `limit=` of `ps.sase_text`, `ps.pattern_json`, `ps.pattern_text` and `ps.pattern_reader`.

    Raises:
        FlowError: there is no such policy, it is per something else, or the limit is below one.

    >>> import penstock as ps
    >>> print(ps.run_limit(1_000, "fail"))
    1,000 runs for each key, fail
    """
    known = [each.value for each in Overflow]
    if overflow not in known:
        raise FlowError(f"limit: no policy {overflow!r}; {nearest(overflow, known)}")
    if not isinstance(runs, int) or isinstance(runs, bool) or runs < 1:
        raise FlowError(f"limit: a key may have one run or more, got {runs!r}")
    if per not in (PER_KEY, PER_PATTERN):
        raise FlowError(f"limit is per 'key' or per 'pattern', got {per!r}")
    return RunLimit(runs, Overflow(overflow), per == PER_PATTERN)


def limit_of(given: RunLimit | int | None) -> RunLimit | None:
    """The limit that is meant; a number is so many runs for each key, of which the oldest are dropped."""
    return given if given is None or isinstance(given, RunLimit) else run_limit(given)
