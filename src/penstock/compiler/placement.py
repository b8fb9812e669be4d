"""Where steps run, as a run asks for it: `together=A,B`, `apart=A,B`, `alone=A`. What cannot be kept is refused, with the reason.

Spark places tasks, and a task is all steps of a stage. So steps are together when the plan has them in one stage. Apart are a Python stage with Python workers of its own and whatever else: Spark
keeps a Python worker for tasks that have the same environment. Alone is a stage whose tasks ask for all cores of an executor, and have workers of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from penstock.compiler.compile import compile_graph
from penstock.compiler.plan import PYTHON, Plan, Stage
from penstock.errors import OptionError, UnknownName, nearest
from penstock.graph.graph import Graph
from penstock.graph.ids import parent_of
from penstock.graph.run.master import is_in_one_jvm

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


def check_placement(graph: Graph, rules: Iterable[str], *, live: bool = True, master: str = "") -> None:
    """Refuses rules that a run of a flow would not keep.

    Args:
        graph: the flow.
        rules: what is asked, as text.
        live: whether the run is a live one.
        master: where it runs, if that is known.

    Raises:
        OptionError: a rule is none, or cannot be kept.
        UnknownName: a step is not there.
    """
    wanted = tuple(rules)
    if wanted:
        plan = placed(compile_graph(graph, live=live), wanted)
        lonely = next((stage for stage in plan.stages if stage.alone), None)
        if lonely is not None and master and is_in_one_jvm(master):
            raise OptionError(
                f"--place alone: {lonely.name!r} would need executors whose cores a task can ask for, and {master} has one JVM for all. "
                f"Take a cluster (Standalone, YARN, Kubernetes). {_INSTEAD}"
            )


def placed(plan: Plan, rules: Iterable[str]) -> Plan:
    """The plan with what is asked of its stages.

    Args:
        plan: the plan.
        rules: what is asked, as text.

    Returns:
        The plan, whose stages say which have Python workers of their own, and which run alone.

    Raises:
        OptionError: a rule is none, or cannot be kept.
        UnknownName: a step is not there.
    """
    for rule in map(PlacementRule.of, rules):
        stages = {step: _stages_of(plan, rule, step) for step in rule.steps}
        if rule.kind == TOGETHER:
            _check_together(plan, rule)
        elif rule.kind == APART:
            plan = _apart(plan, rule, stages)
        else:
            plan = _alone(plan, rule, stages)
    return plan


def _stages_of(plan: Plan, rule: PlacementRule, step: str) -> list[Stage]:
    """The stages of a step, and of what the compiler made for it."""
    found = [stage for stage in plan.stages if any(step in (node.name, parent_of(node.name)) for node in stage.nodes)]
    if not found:
        known = [node.name for stage in plan.stages for node in stage.nodes]
        raise UnknownName(f"{rule}: there is no step {step!r}; {nearest(step, known)}")
    return found


def _check_together(plan: Plan, rule: PlacementRule) -> None:
    stages = {step: plan.stage_of(step) for step in rule.steps}
    first = stages[rule.steps[0]]
    other = next((step for step, stage in stages.items() if stage is not first), "")
    if other:
        raise OptionError(f"{rule}: {_why_not_together(plan, rule.steps[0], other)}")


def _why_not_together(plan: Plan, step: str, other: str) -> str:
    one, two = sorted((plan.stage_of(step), plan.stage_of(other)), key=plan.stages.index)
    hosts = f"{one.name!r} runs as {one.host}, {two.name!r} as {two.host}"
    moved = f", and records move before it ({two.shuffle})" if two.shuffle else ""
    return f"expected one stage, got two: {hosts}{moved}. `penstock describe` shows the stages of a flow"


def _apart(plan: Plan, rule: PlacementRule, stages: dict[str, list[Stage]]) -> Plan:
    """Gives the Python stages of the steps workers of their own; only one step may be without any."""
    for step, other in _pairs(rule.steps):
        shared = next((stage for stage in stages[step] if stage in stages[other]), None)
        if shared is not None:
            raise OptionError(
                f"{rule}: {step!r} and {other!r} are one pass over the records, in one task ({shared.name}), as nothing moves between them. "
                f"A repartition between them makes them two. {_INSTEAD}"
            )
    inside = [step for step in rule.steps if any(stage.host != PYTHON for stage in stages[step])]
    if len(inside) > 1:
        first, second = inside[:2]
        raise OptionError(
            f"{rule}: {first!r} and {second!r} run inside Spark, as {_hosts(stages[first])} and {_hosts(stages[second])}: every executor takes "
            f"tasks of both, in one JVM. {_INSTEAD}"
        )
    return _changed(plan, [stage for found in stages.values() for stage in found if stage.host == PYTHON])


def _alone(plan: Plan, rule: PlacementRule, stages: dict[str, list[Stage]]) -> Plan:
    wanted = [(step, stage) for step, found in stages.items() for stage in found]
    for step, stage in wanted:
        if stage.host != PYTHON:
            raise OptionError(
                f"{rule}: {step!r} runs inside Spark, as {stage.host}, where one task reads, computes and moves for several steps: what its tasks "
                f"ask for can be said of Python passes only. {_INSTEAD}"
            )
        beside = [node.name for node in stage.nodes if not {node.name, parent_of(node.name)} & set(rule.steps)]
        if beside:
            raise OptionError(
                f"{rule}: {step!r} is one pass over the records with {', '.join(map(repr, beside))}. Name them too, as alone={','.join((*rule.steps, *beside))}; "
                f"or make two passes of them, with a repartition between"
            )
    return _changed(plan, [stage for _, stage in wanted], alone=True)


def _pairs(steps: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(one, two) for at, one in enumerate(steps) for two in steps[at + 1 :]]


def _hosts(stages: list[Stage]) -> str:
    return " and ".join(dict.fromkeys(stage.host for stage in stages))


def _changed(plan: Plan, stages: list[Stage], *, alone: bool = False) -> Plan:
    made = tuple(
        replace(s, workers=s.name, alone=s.alone or alone) if any(s is each for each in stages) else s
        for s in plan.stages
    )
    return replace(plan, stages=made)
