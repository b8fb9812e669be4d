"""What a step keeps, as a text by which a changed flow is told from the one that wrote the state.

The text is the kind of step with its keys, a colon, and the fields of what it keeps: `reduce by word string: word string, n bigint`.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.graph.graph import Graph
from penstock.graph.nodes import AggregateBy, Fold, Keyed, Node, Process, Reduce, Window
from penstock.graph.schema import Schema


def shape_of_state(node: Node, graph: Graph, store: str = "") -> str:
    """The kind of step, its keys with their types, and what it keeps for each in one of its stores.

    What a bolt keeps is its own affair.
    """
    if not isinstance(node, Keyed):
        return _shape_of_rows(node, graph, store) if len(node.inputs) > 1 and node.stores else node.kind
    schema = graph.output(node.inputs[0]).schema
    keys = ", ".join(f"{k} {schema.field(k).type}" for k in node.keys)
    if isinstance(node, AggregateBy):
        return f"aggregate by {keys}: {', '.join(f'{a.name}={a} {a.type}' for a in node.aggregates)}"
    if isinstance(node, Reduce):
        return f"reduce by {keys}: {schema}"
    if isinstance(node, Fold):
        return f"fold by {keys}: {Schema(node.output().schema.fields[len(node.keys) :])}"
    if isinstance(node, Window):
        return f"{node.shape}; {keys}, {', '.join(node.stores.values())}"
    if isinstance(node, Process):
        return f"process by {keys}: {', '.join(map(str, node.logic.cells().values()))}"
    return f"{node.kind} by {keys}"


def _shape_of_rows(node: Node, graph: Graph, store: str) -> str:
    """Records of one side of a join."""
    side = 1 if store.endswith(("@right", "@last")) else 0
    schema = graph.output(node.inputs[side]).schema
    keys = ", ".join(f"{k} {schema.field(k).type}" for k in node.keys_of(side))
    return f"{node.kind} by {keys}: {schema}"


def fits(kept: str, wanted: str) -> bool:
    """Whether a step can go on with what it kept: fields may be gained, a process class may also give up cells.

    >>> fits("reduce by a int: a int", "reduce by a int: a int, b decimal(3,1)"), fits("reduce by a int: a int", "reduce by a int: a bigint")
    (True, False)
    """
    if kept == wanted:
        return True
    (head, _, before), (now, _, after) = kept.partition(": "), wanted.partition(": ")
    if head != now or head.partition(" ")[0] not in _MAY_GAIN:
        return False
    old, new = dict(_fields(before)), dict(_fields(after))
    if head.startswith("process"):
        return all(new[name] == old[name] for name in old.keys() & new.keys())
    gained = [form for name, form in new.items() if name not in old]
    own = head.startswith("aggregate") and any("(" not in form for form in gained)
    return not own and all(new.get(name) == form for name, form in old.items())


_MAY_GAIN = ("aggregate", "reduce", "process")


def _fields(text: str) -> Iterator[tuple[str, str]]:
    """The fields of a text, by name. Commas inside brackets belong to a type.

    >>> list(_fields("a decimal(3,1), n=sum(a, b) int"))
    [('a', 'decimal(3,1)'), ('n', 'sum(a, b) int')]
    """
    depth, begin = 0, 0
    for at, sign in enumerate(f"{text}, "):
        depth += (sign in "(<[") - (sign in ")>]")
        if sign == "," and depth == 0 and text[begin:at].strip():
            part = text[begin:at].strip()
            name = part.replace("=", " ", 1).split(" ", 1)[0]
            yield name, part[len(name) + 1 :]
            begin = at + 1
