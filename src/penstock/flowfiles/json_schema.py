"""The JSON Schema of flow files, made from the code, for editors that complete and check them as they are written."""

from __future__ import annotations

from typing import Any

from penstock.flowfiles import vocabulary as v
from penstock.flowfiles.reading import FLOW_KEYS, STEP_KEYS
from penstock.flowfiles.references import REFERENCE

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = {"type": "string", "pattern": f"^{REFERENCE.pattern}$"}
_NUMBERS = frozenset({"int"})
Schema = dict[str, Any]


def flow_schema() -> Schema:
    """The schema of a flow file.

    >>> flow_schema()["required"]
    ['flow', 'steps']
    """
    keys = {
        "flow": {"type": "string", "description": "The name of the flow."},
        "delivery": {"enum": ["exactly_once", "at_least_once", "at_most_once"]},
        "on_error": _value(v.Parameter("on_error", frozenset({"Policy"}), v.KEYWORD, False)),
        "functions": {"type": "array", "items": _REFERENCE},
        "steps": {"type": "array", "items": {"$ref": "#/$defs/step"}},
    }
    assert tuple(keys) == FLOW_KEYS
    return {
        "$schema": DRAFT,
        "title": "Penstock flow file",
        **_closed(keys, ["flow", "steps"]),
        "$defs": {"step": _step(), **_calls()},
    }


def _closed(properties: Schema, required: list[str]) -> Schema:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _step() -> Schema:
    streams = {"type": "string", "description": "A step above, or one of its outputs: 'words', 'size.large'."}
    about: Schema = {
        "name": {"type": "string", "description": "The name of the step."},
        "from": streams,
        **{name: _arguments([v.view(name)]) for name in v.VIEWS},
        "on_error": _value(v.Parameter("on_error", frozenset({"Policy"}), v.KEYWORD, False)),
        "parallelism": {"type": "integer", "minimum": 1},
    }
    assert tuple(about) == STEP_KEYS
    methods = {name: _arguments(list(owners.values())) for name, owners in sorted(v.steps().items())}
    one = [{"required": [name]} for name in methods]
    return {**_closed({**about, **methods}, []), "oneOf": one}


def _arguments(kinds: list[v.Vocable]) -> Schema:
    """What stands under a method or a function: its arguments by name, or the first one alone."""
    forms = [form for kind in kinds for form in _forms(kind)]
    unique = [form for at, form in enumerate(forms) if form not in forms[:at]]
    return {"description": kinds[0].doc, "anyOf": unique}


def _forms(kind: v.Vocable) -> list[Schema]:
    required = [p.name for p in kind.parameters if p.required]
    whole = _closed({name: _value(p) for name, p in kind.named.items()}, required)
    if kind.rest is not None:
        whole["additionalProperties"] = _value(kind.rest)
    alone = [] if required else [{"type": "null"}]
    first = kind.parameters[0] if kind.parameters else None
    if first is not None and not first.is_named and not set(required) - {first.name}:
        alone.append(_value(first))
    return [whole, *alone]


def _value(parameter: v.Parameter) -> Schema:
    one = _single(parameter)
    if parameter.is_many:
        return {"anyOf": [one, {"type": "array", "items": one}]}
    return one


def _single(parameter: v.Parameter) -> Schema:
    words, allows = parameter.words, parameter.allows
    if words <= {"int", "None"}:
        return {"type": ["integer", "null"] if "None" in words else "integer"}
    if words == {"bool"}:
        return {"type": "boolean"}
    calls: list[Schema] = [{"$ref": f"#/$defs/{_called(name)}"} for name in sorted(v.functions_for(words))]
    if allows & {v.PLAIN, v.EXPR}:
        return {}
    own = [{**_closed({}, []), "patternProperties": {f"^{REFERENCE.pattern}$": {}}}, _REFERENCE]
    texts: list[Schema] = [{"type": "string"}] if v.STREAM in allows else []
    names = [n for n, made in v.functions_for(words).items() if not any(p.required for p in made.parameters)]
    forms = [*calls, *texts, *(own if v.REFERENCE in allows else []), *([{"enum": sorted(names)}] if names else [])]
    return {"anyOf": [*forms, *([{"type": "null"}] if "None" in words else [])]}


def _called(name: str) -> str:
    return f"call-{name}"


def _calls() -> Schema:
    made = {name: kind for name, (_, kind) in sorted(v.functions().items())}
    return {_called(name): _closed({name: _arguments([kind])}, [name]) for name, kind in made.items()}
