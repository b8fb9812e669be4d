"""Makes `answers.jsonl`: patterns and inputs, each with the matches and timed-out runs that Flink CEP gives.

Needs a JDK and the jars of Flink 2.3 (the package `apache-flink` has them in `pyflink/lib`):

    python tests/patterns/flink/generate.py path/to/pyflink/lib
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
Case = dict[str, Any]
MOST_ANSWERS = 40
"""A case with more answers than this is left out: it would tell no more, and the file stays small."""


def part(name: str, link: str, where: str | None = None, **more: Any) -> Case:
    """A stage; without a condition of its own it takes events of its own name."""
    return {"name": name, "link": link, "where": where or name, **more}


def timed(text: str) -> list[list[Any]]:
    """Events of letters, a millisecond apart: `a c b1` is a with value 0, c with 0, b with 1."""
    return [[word[0].lower(), int(word[1:] or 0), at + 1] for at, word in enumerate(text.split())]


def case(parts: list[Case], events: list[list[Any]], skip: list[str] | None = None, within: int | None = None) -> Case:
    """A case without its answers."""
    given: Case = {"parts": parts, "skip": skip or ["no_skip"], "events": events}
    return {**given, "within": within} if within else given


def documented() -> Iterator[Case]:
    """The examples of Flink's own documentation."""
    for link in ("next", "followed_by", "followed_by_any"):
        yield case([part("a", "begin"), part("b", link)], timed("a c b1 b2"))
    for inner in ("strict", None, "any"):
        loop = part("b", "followed_by_any", times=[1, None], inner=inner)
        yield case([part("a", "begin"), loop, part("c", "followed_by")], timed("a b1 d1 b2 d2 b3 c"))
        loop = part("a", "followed_by", times=[1, None], inner=inner)
        yield case([part("c", "begin"), loop, part("b", "followed_by")], timed("c d a1 a2 a3 d a4 b"))
    for skip in (["no_skip"], ["to_next"], ["past_last"], ["to_first", "b"], ["to_last", "b"]):
        yield case([part("b", "begin", times=[1, None]), part("c", "followed_by")], timed("b1 b2 b3 c"), skip)
    for skip in (["no_skip"], ["to_next"]):
        yield case([part("a", "begin"), part("b", "followed_by", times=[1, None])], timed("a b1 b2 b3"), skip)
    yield case([part("a", "begin", times=[1, None], until="b")], timed("a1 c a2 b a3"))
    for skip in (["no_skip"], ["to_first", "z"]):
        stages = [part("x", "begin", "abc"), part("y", "followed_by", "bc")]
        greedy = part("z", "followed_by", "c", times=[1, None], greedy=True)
        yield case([*stages, greedy, part("d", "followed_by")], timed("a b c1 c2 c3 d"), skip)


def refused() -> Iterator[Case]:
    """What must be refused when the pattern is built."""
    events = timed("a b")
    a, b = part("a", "begin"), part("b", "followed_by")
    yield case([a, part("b", "not_followed_by")], events)
    yield case([part("a", "begin", optional=True), part("b", "not_followed_by"), part("c", "next")], events)
    yield case([part("a", "begin", optional=True), part("b", "not_next"), part("c", "next")], events)
    yield case([a, part("b", "not_followed_by", optional=True), part("c", "next")], events)
    yield case([a, part("b", "not_next", times=[1, None]), part("c", "next")], events)
    yield case([a, part("b", "not_next", times=[2, 2]), part("c", "next")], events)
    yield case([a, part("b", "not_followed_by", greedy=True), part("c", "next")], events)
    yield case([a, part("b", "followed_by", until="c")], events)
    yield case([a, part("b", "followed_by", times=[2, 3], until="c")], events)
    yield case([a, part("a", "followed_by")], events)
    yield case([a, {"group": [part("a", "begin")], "link": "next"}], events)
    yield case([a, b], events, ["to_first", "q"])
    yield case([a, b], events, ["to_last", "q"])
    yield case([part("a", "begin", inner="strict"), b], events)
    yield case([part("a", "begin", inner="any"), b], events)
    yield case([{"group": [a], "link": "begin", "times": [1, None], "greedy": True}, b], events)
    yield case([part("a", "begin", times=[1, None], greedy=True), part("b", "followed_by", optional=True)], events)
    yield case([a, part("b", "followed_by", within=20)], events, within=10)
    yield case([part("a", "begin", times=[0, 0]), b], events)


class Draw:
    """Random patterns and inputs."""

    def __init__(self, chosen: random.Random) -> None:
        self.random = chosen

    def chance(self, share: float) -> bool:
        """Whether something that happens to this share of the cases happens here."""
        return self.random.random() < share

    def events(self, most: int = 8) -> list[list[Any]]:
        """Letters, mostly those of the stages, with values and times that may be equal."""
        time, found = 0, []
        for _ in range(self.random.randint(2, most)):
            time += self.random.choice((0, 1, 1, 1, 2, 3))
            found.append([self.random.choice("aaabbbccd"), self.random.randint(0, 5), time])
        return found

    def where(self) -> str:
        """The letters that a stage takes."""
        return self.random.choice(("a", "b", "c", "a", "b", "c", "ab", "bc", "abc"))

    def quantifier(self, group: bool = False) -> Case:
        """How often a stage may be taken."""
        if self.chance(0.45):
            return {"optional": True} if self.chance(0.25) else {}
        times = self.random.choice(([1, None], [1, None], [2, None], [2, 2], [1, 2], [2, 3], [0, 2], [3, 3]))
        found: Case = {"times": times}
        if self.chance(0.5):
            found["inner"] = self.random.choice(("strict", "any"))
        if not group and self.chance(0.25):
            found["greedy"] = True
        if not group and times[1] is None and self.chance(0.25):
            found["until"] = self.random.choice("abcd")
        if self.chance(0.25):
            found["optional"] = True
        return found

    def rule(self, name: str, before: list[str]) -> Case:
        """A condition that sees what was taken."""
        stage = self.random.choice([name, *before])
        rules = (["above_last", stage], ["above_first", stage], ["sum_below", stage, 7], ["count_below", stage, 2])
        return {"rule": self.random.choice(rules)}

    def stage(self, name: str, link: str, before: list[str], rules: bool) -> Case:
        """A stage that is no group."""
        if link.startswith("not_"):
            return part(name, link, self.random.choice("abc"))
        rule = self.rule(name, before) if rules and self.chance(0.5) else {}
        return part(name, link, self.where(), **self.quantifier(), **rule)

    def parts(self, names: list[str], kind: str, depth: int = 0) -> list[Case]:
        """A sequence of these stages."""
        found: list[Case] = []
        used: list[str] = []
        while names:
            link = "begin" if not found else self.link(kind)
            if kind == "groups" and depth < 2 and len(names) > 1 and self.chance(0.5) and not link.startswith("not_"):
                inner = names[: self.random.randint(1, len(names))]
                names = names[len(inner) :]
                group = {"group": self.parts(inner, kind, depth + 1), "link": link}
                found.append({**group, **self.quantifier(group=True)})
                used += inner
                continue
            name, names = names[0], names[1:]
            found.append(self.stage(name, link, used, kind == "rules"))
            used.append(name)
        return found

    def link(self, kind: str) -> str:
        """How a stage follows the one before."""
        links = ["next", "followed_by", "followed_by", "followed_by_any"]
        with_absence = [*links, "not_next", "not_followed_by"]
        return self.random.choice(with_absence if kind in ("absence", "gaps") else links)

    def skip(self, names: list[str]) -> list[str]:
        """What happens to other runs after a match."""
        kind = self.random.choice(("to_next", "past_last", "to_first", "to_last"))
        if not kind.startswith("to_f") and not kind.startswith("to_l"):
            return [kind]
        return [kind, self.random.choice(names), *(["fail"] if self.chance(0.1) else [])]

    def case(self, kind: str) -> Case:
        """A pattern of one to four stages, and an input."""
        names = [f"s{at}" for at in range(1, self.random.randint(1, 4) + 1)]
        if kind in ("absence", "groups") and len(names) < 2:
            names = ["s1", "s2", "s3"]
        found = case(self.parts(names, kind), self.events())
        if kind in ("times", "gaps") or self.chance(0.4) or found["parts"][-1]["link"] == "not_followed_by":
            found["within"] = self.random.choice((2, 3, 4, 5, 8))
        if kind == "gaps":
            self.gaps(found)
        if kind == "skips" or self.chance(0.15):
            found["skip"] = self.skip(names)
        return found

    def gaps(self, found: Case) -> None:
        """Bounds between a stage and the one before; where Flink looks at them, which it does not on repeated and optional stages."""
        found["within"] = self.random.choice((6, 8, None))
        for one in found["parts"]:
            if self.chance(0.7) and not {"times", "optional"} & set(one) and one["link"] != "not_next":
                one["within"] = self.random.choice((1, 2, 3))


KINDS = {"plain": 550, "times": 450, "skips": 800, "absence": 600, "groups": 650, "rules": 400, "gaps": 350}


def cases() -> Iterator[Case]:
    """All cases, without their answers."""
    yield from ({**one, "kind": "documented"} for one in documented())
    yield from ({**one, "kind": "refused"} for one in refused())
    for at, (kind, many) in enumerate(KINDS.items()):
        draw = Draw(random.Random(at))
        yield from ({**draw.case(kind), "kind": kind} for _ in range(many))


def useful(at: int, answered: Case) -> bool:
    """Whether a case says something that can be compared; of those without any match, a third is enough."""
    if answered["kind"] in ("documented", "refused") or "failed" in answered:
        return True
    if "matches" not in answered:
        return False
    many = len(answered["matches"]) + len(answered["timed_out"])
    return many <= MOST_ANSWERS if many else at % 3 == 0


def answers(jars: str) -> list[Case]:
    """What Flink says to each."""
    with tempfile.TemporaryDirectory() as made:
        subprocess.run(["javac", "-cp", f"{jars}/*", "-d", made, str(HERE / "Answers.java")], check=True)
        given = "\n".join(json.dumps({k: v for k, v in one.items() if v is not None}) for one in cases())
        command = ["java", "-cp", f"{made}:{jars}/*", "Answers"]
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def main() -> None:
    """Write the file anew."""
    kept = [one for at, one in enumerate(answers(sys.argv[1])) if useful(at, one)]
    lines = [json.dumps(one, separators=(",", ":")) for one in kept]
    (HERE / "answers.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
