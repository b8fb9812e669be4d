"""What a program is sent before its first message: the settings, and its place in the topology."""

from __future__ import annotations

from typing import Any

from penstock.graph.logic.topology.task_context import TaskContext, grouping_parts


def handshake(context: TaskContext, pid_dir: str, config: dict[str, Any]) -> dict[str, Any]:
    """The first message to a program."""
    conf = {"topology.name": context.topology, **dict(context.config), **config}
    return {"pidDir": pid_dir, "conf": conf, "context": context_of(context)}


def context_of(context: TaskContext) -> dict[str, Any]:
    """The context, with the names of Storm's protocol."""
    name = context.component
    sources = context.sources() if context.layout.components else {}
    by_source: dict[str, dict[str, Any]] = {}
    fields: dict[str, dict[str, list[str]]] = {}
    for (source, stream), grouping in sources.items():
        by_source.setdefault(source, {})[stream] = grouping_of(grouping)
        fields.setdefault(source, {})[stream] = list(context.fields(stream, source))
    streams = context.streams() if context.layout.components else []
    targets = context.targets() if context.layout.components else {}
    return {
        "task->component": {str(task): component for task, component in context.task_to_component.items()},
        "taskid": context.task_id if context.layout.components else context.task + 1,
        "componentid": name,
        "stream->target->grouping": {s: {t: grouping_of(g) for t, g in targets.get(s, {}).items()} for s in streams},
        "streams": streams,
        "stream->outputfields": {s: list(context.fields(s)) for s in streams},
        "source->stream->grouping": by_source,
        "source->stream->fields": fields,
    }


def grouping_of(text: str) -> dict[str, Any]:
    """A grouping as programs get it.

    >>> grouping_of("fields(word, n)"), grouping_of("local_or_shuffle")
    ({'type': 'FIELDS', 'fields': ['word', 'n']}, {'type': 'LOCAL_OR_SHUFFLE'})
    """
    kind, fields = grouping_parts(text)
    made: dict[str, Any] = {"type": {"partial_key": "CUSTOM"}.get(kind, kind.upper())}
    return made | {"fields": list(fields)} if fields else made
