"""All matches of a pattern by its definition: every way to choose events is tried. Slow, short, and apart from the engine.

A pattern is what `flink/generate.py` writes: a list of parts, each with the contiguity to the one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

Part = dict[str, Any]
Event = list[Any]
Taken = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Run:
    """Events chosen so far, and what must not happen until the next is chosen."""

    taken: Taken = ()
    absent: tuple[Part, ...] = ()

    @property
    def last(self) -> int:
        """The event chosen last; -1 before the first."""
        return self.taken[-1][1] if self.taken else -1


class Reference:
    """The matches of a case."""

    def __init__(self, case: Part) -> None:
        self.parts: list[Part] = case["parts"]
        self.events: list[Event] = case["events"]
        self.within: int | None = case.get("within")

    def matches(self) -> list[str]:
        """Each match as `stage=events stage=events`, in order of its text."""
        runs = self.sequence(self.parts, Run(), None)
        return sorted(written(run.taken) for run in runs if run.taken and self.may_end(run))

    def sequence(self, parts: list[Part], run: Run, link: str | None) -> Iterator[Run]:
        """Every way through the parts; `link` is that of the first."""
        if not parts:
            yield run
            return
        first, rest = parts[0], parts[1:]
        absent = tuple(part for part in rest[:1] if part["link"] == "not_followed_by")
        for after in self.part(first, run, link or first["link"], absent):
            yield from self.sequence(rest, after, None)

    def part(self, part: Part, run: Run, link: str, absent: tuple[Part, ...]) -> Iterator[Run]:
        """Every way through one part; `absent` must not happen once it has begun."""
        if link.startswith("not_"):
            yield replace(run, absent=(*run.absent, part))
            return
        least, most = part.get("times") or (1, 1)
        if part.get("optional") or least == 0:
            yield self.ended(part, run, most)
        yield from self.repeated(part, run, link, (max(least, 1), most), absent)

    def repeated(
        self, part: Part, run: Run, link: str, bounds: tuple[int, int | None], absent: tuple[Part, ...]
    ) -> Iterator[Run]:
        """Every way to take a part `least` to `most` times."""
        inner = {"strict": "next", "any": "followed_by_any"}.get(part.get("inner") or "", "followed_by")
        least, most = bounds
        for after in self.once(part, run, link):
            if least <= 1:
                yield self.ended(part, after, most)
            if most != 1 and after.taken != run.taken:
                onward = replace(after, absent=(*after.absent, *absent))
                yield from self.repeated(part, onward, inner, (least - 1, most and most - 1), absent)

    def ended(self, part: Part, run: Run, most: int | None) -> Run:
        """A greedy loop ends only where it could not take the next event that is taken."""
        if not part.get("greedy") or most == 1:
            return run
        return replace(run, absent=(*run.absent, {**part, "link": "not_followed_by"}))

    def once(self, part: Part, run: Run, link: str) -> Iterator[Run]:
        """Every way to take a part one more time."""
        if "group" in part:
            yield from self.sequence(part["group"], run, link)
            return
        for at in self.candidates(part, run, link):
            if self.may_take(part, run, at):
                yield Run((*run.taken, (part["name"], at)))

    def candidates(self, part: Part, run: Run, link: str) -> list[int]:
        """The events that the contiguity allows."""
        later = [at for at in range(run.last + 1, len(self.events)) if self.fits(part, at, run)]
        if not run.taken or link == "followed_by_any":
            return later
        return [at for at in later if at == run.last + 1] if link == "next" else later[:1]

    def fits(self, part: Part, at: int, run: Run) -> bool:
        """Whether an event satisfies the condition of a stage."""
        return self.events[at][0] in part["where"] and self.rule(part.get("rule"), at, run)

    def rule(self, rule: list[Any] | None, at: int, run: Run) -> bool:
        """Whether the condition on what was taken holds."""
        if not rule:
            return True
        value = self.events[at][1]
        taken = [self.events[one][1] for name, one in run.taken if name == rule[1]]
        if rule[0] == "sum_below":
            return bool(sum(taken) + value < rule[2])
        if rule[0] == "count_below":
            return bool(len(taken) < rule[2])
        return not taken or value > taken[-1 if rule[0] == "above_last" else 0]

    def may_take(self, part: Part, run: Run, at: int) -> bool:
        """Whether an event may be the next: it is in time, nothing that must not happen did, and no loop was ended before."""
        if run.taken and not (self.in_time(at, self.time(run.taken[0][1])) and self.is_near(part, at, run)):
            return False
        return self.is_absent(run, at) and not self.was_ended(part, run, at)

    def is_absent(self, run: Run, at: int) -> bool:
        """Whether nothing that must not happen is among the events after the last chosen, up to this one."""
        return not any(
            self.fits(part, one, run) and not self.was_ended(part, run, one)
            for part in run.absent
            for one in range(run.last + 1 if run.taken else at, at + 1)
            if part["link"] == "not_followed_by" or one == run.last + 1
        )

    def was_ended(self, part: Part, run: Run, at: int) -> bool:
        """Whether an event between the last chosen and this one says that the loop takes no more."""
        until = part.get("until")
        if not until:
            return False
        begun = run.taken and run.taken[-1][0] == part["name"]
        return any(self.events[one][0] in until for one in range(run.last + 1 if begun else at, at + 1))

    def is_near(self, part: Part, at: int, run: Run) -> bool:
        """Whether an event is soon enough after the one chosen last."""
        return "within" not in part or self.time(at) - self.time(run.last) < part["within"]

    def time(self, at: int) -> int:
        """When an event happened."""
        return int(self.events[at][2])

    def may_end(self, run: Run) -> bool:
        """Whether a run may end here: what must not happen at the end did not."""
        start = self.time(run.taken[0][1])
        for part in run.absent:
            in_time = [at for at in range(run.last + 1, len(self.events)) if self.in_time(at, start)]
            if part.get("greedy") and not _is_absence(self.parts[-1]):
                continue
            if part["link"] == "not_next":
                if not in_time or in_time[0] != run.last + 1 or self.fits(part, in_time[0], run):
                    return False
            elif any(self.fits(part, at, run) for at in in_time):
                return False
        return True

    def in_time(self, at: int, start: int) -> bool:
        """Whether an event is within the time of a run that began then."""
        return not self.within or self.time(at) - start < self.within


def is_defined(parts: list[Part], is_inner: bool = False) -> bool:
    """Whether the definition leaves no doubt. Left out is where engines differ: loops, groups and what may be empty inside of a group, greedy with an upper bound or an end,
    what may be empty beside an absence or a greedy loop, and an absence or a bound of time beside any of these."""
    return all(_is_clear(parts, at, is_inner) for at in range(len(parts)))


def _is_clear(parts: list[Part], at: int, is_inner: bool) -> bool:
    part, before, after = parts[at], parts[at - 1 : at] if at else [], parts[at + 1 :]
    if "group" in part or is_inner:
        simple = not may_be_empty(part) and not (is_inner and _is_loop(part))
        return simple and is_defined(part.get("group", []), is_inner=True)
    if part.get("greedy"):
        clear = part["times"][1] is None and not part.get("until") and not may_be_empty(part)
        ends = is_lost_by_flink(parts) and len(after) == 1
        return clear and (ends or not any(may_be_empty(each) or _is_absence(each) for each in after[:1]))
    if _is_absence(part):
        if is_lost_by_flink(parts[: at + 1]):
            clear = not after and "within" not in part
            return clear and not any(_is_doubtful(each) or set(part["where"]) & set(each["where"]) for each in before)
        beside = (*before, *after[:1])
        simple = not any(_is_absence(each) or _is_loop(each) or may_be_empty(each) for each in beside)
        apart = simple and not any(set(part["where"]) & set(each["where"]) for each in after[:1])
        return apart and not any(map(may_be_empty, after)) and "within" not in part
    return "within" not in part or not any(_is_loop(e) or may_be_empty(e) or _is_absence(e) for e in parts[:at])


def is_lost_by_flink(parts: list[Part]) -> bool:
    """Whether a pattern ends with an absence after a loop, of which Flink emits no match while nothing else comes; or after another absence, which Flink
    does not look at."""
    if len(parts) < 2 or parts[-1]["link"] != "not_followed_by":
        return False
    before = parts[-2]
    least, most = before.get("times") or (1, 1)
    return bool(before["link"] == "not_followed_by" or least != most)


def _is_doubtful(part: Part) -> bool:
    has_bound = (part.get("times") or [1, None])[1] is not None
    return "group" in part or bool(part.get("until")) or has_bound or may_be_empty(part)


def may_be_empty(part: Part) -> bool:
    """Whether a part may take no event."""
    return bool(part.get("optional")) or (part.get("times") or [1])[0] == 0


def _is_loop(part: Part) -> bool:
    return "group" in part or bool(part.get("times"))


def _is_absence(part: Part) -> bool:
    return bool(part["link"].startswith("not_"))


def written(taken: Taken) -> str:
    """A match as text: stages in order of their names, each with its events."""
    stages: dict[str, list[str]] = {}
    for name, at in taken:
        stages.setdefault(name, []).append(str(at))
    return " ".join(f"{name}={','.join(stages[name])}" for name in sorted(stages))
