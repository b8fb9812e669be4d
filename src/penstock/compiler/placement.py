"""Where steps run, as a run asks for it: `together=A,B`, `apart=A,B`, `alone=A`. What the plan does not do is refused, with the reason.

Spark places tasks, and a task is all steps of a stage. So steps are together when the plan has them in one stage. Nothing keeps the tasks of two stages in different executors, but executors of a
resource profile of their own, which need dynamic allocation; a run of Penstock does not ask for those.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.compiler.compile import compile_graph
from penstock.compiler.plan import Plan
from penstock.errors import OptionError, UnknownName, nearest
from penstock.graph.graph import Graph

TOGETHER, APART, ALONE = "together", "apart", "alone"
_LEAST = {TOGETHER: 2, APART: 2, ALONE: 1}
_INSTEAD = (
    "Make it a job of its own, with a topic between: a job has its own driver, and on a cluster its own executors"
)


@dataclass(frozen=True)
class PlacementRule:
    """What is asked of some steps."""

    kind: str
    steps: tuple[str, ...]

    def __str__(self) -> str:
        return f"--place {self.kind}={','.join(self.steps)}"

    @classmethod
    def of(cls, text: str) -> PlacementRule:
        """The rule of a text.

        >>> PlacementRule.of("together=split, count")
        PlacementRule(kind='together', steps=('split', 'count'))
        """
        kind, _, named = text.partition("=")
        steps = tuple(dict.fromkeys(step.strip() for step in named.split(",") if step.strip()))
        if kind not in _LEAST or len(steps) < _LEAST[kind]:
            raise OptionError(f"--place: expected together=STEP,STEP, apart=STEP,STEP or alone=STEP, got {text!r}")
        return cls(kind, steps)


def check_placement(graph: Graph, rules: Iterable[str], *, live: bool = True) -> None:
    """Refuses rules that a run of a flow would not keep.

    Args:
        graph: the flow.
        rules: what is asked, as text.
        live: whether the run is a live one.

    Raises:
        OptionError: a rule is none, or cannot be kept.
        UnknownName: a step is not there.
    """
    wanted = [PlacementRule.of(text) for text in rules]
    if wanted:
        plan = compile_graph(graph, live=live)
        for rule in wanted:
            _check(plan, rule)


def _check(plan: Plan, rule: PlacementRule) -> None:
    known = [node.name for stage in plan.stages for node in stage.nodes]
    for step in rule.steps:
        if step not in known:
            raise UnknownName(f"{rule}: there is no step {step!r}; {nearest(step, known)}")
    stages = {step: plan.stage_of(step) for step in rule.steps}
    first = stages[rule.steps[0]]
    other = next((step for step, stage in stages.items() if stage is not first), "")
    if rule.kind == TOGETHER and other:
        raise OptionError(f"{rule}: {_why_not_together(plan, rule.steps[0], other)}")
    if rule.kind == APART and not other:
        raise OptionError(
            f"{rule}: they are one pass over the records, in one task ({first.name}), as nothing moves between them. {_INSTEAD}"
        )
    if rule.kind in (APART, ALONE):
        raise OptionError(
            f"{rule}: Spark places tasks, not steps, and every executor takes tasks of every stage; only executors of a resource profile of "
            f"their own would keep them apart, which need dynamic allocation and which a run does not ask for. {_INSTEAD}"
        )


def _why_not_together(plan: Plan, step: str, other: str) -> str:
    one, two = sorted((plan.stage_of(step), plan.stage_of(other)), key=plan.stages.index)
    hosts = f"{one.name!r} runs as {one.host}, {two.name!r} as {two.host}"
    moved = f", and records move before it ({two.shuffle})" if two.shuffle else ""
    return f"expected one stage, got two: {hosts}{moved}. `penstock describe` shows the stages of a flow"
