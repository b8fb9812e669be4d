"""Writes src/penstock/client/api.py from the OpenAPI of the server: a type for each answer, and a method for each route.

python scripts/client.py           writes the module
python scripts/client.py --check   says whether it is stale, and fails if it is
"""

from __future__ import annotations

import json
import keyword
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.jobs.manager.manager import Manager
from penstock.server.app import PREFIX, make_app
from penstock.server.contract import operations

FOLDER = Path(__file__).resolve().parents[1] / "src" / "penstock" / "client"
RUFF = Path(sys.executable).with_name("ruff")
MADE = "Made of the server's OpenAPI by scripts/client.py (`make reference`)."
ANSWERS = f'''"""What the server answers. {MADE}"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

'''
ROUTES = '''"""{about} {made}"""

# ruff: noqa: PLR0913 - as many arguments as a route has

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

{imports}

class {name}({base}):
    """{about}"""

{body}
'''
CLASSES = (
    ("job_views.py", "JobViews", "Connection", "What jobs are and do."),
    ("job_routes.py", "JobRoutes", "JobViews", "The routes that change jobs."),
    ("log_routes.py", "LogRoutes", "JobRoutes", "The routes of logs and their topics."),
    ("api.py", "Api", "LogRoutes", "All routes of the API, a method for each."),
)
"""Module, class, the class before it, and what it is."""
READ = {"json": "ask_json", "text": "ask_text", "nothing": "ask", "events": "follow"}
"""The method of a connection that reads an answer."""
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
Schema = dict[str, Any]


def type_of(schema: Schema) -> str:
    """The type of what a schema allows.

    >>> type_of({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]})
    'list[str] | None'
    """
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema or "const" in schema:
        return f"Literal[{', '.join(json.dumps(v) for v in schema.get('enum', [schema.get('const')]))}]"
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(type_of(each) for each in schema["anyOf"]))
    kind = schema.get("type")
    if kind == "array":
        return f"list[{type_of(schema.get('items', {})) if 'prefixItems' not in schema else 'Any'}]"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"dict[str, {type_of(values) if isinstance(values, dict) else 'Any'}]"
    return SCALARS.get(str(kind), "Any")


def class_of(name: str, schema: Schema) -> str:
    """The type of an answer."""
    required = schema.get("required", [])
    lines = [
        f"    {field}: {type_of(of) if field in required else f'NotRequired[{type_of(of)}]'}"
        for field, of in schema.get("properties", {}).items()
    ]
    about = " ".join(str(schema.get("description", "")).partition("\n\n")[0].split()) or f"{name}."
    return "\n".join([f"class {name}(TypedDict):", f'    """{about}"""', "", *lines])


@dataclass(frozen=True)
class Argument:
    """An argument of a method: a part of the path, the query, the headers or the body of its route."""

    name: str
    sent: str
    place: str
    type: str
    default: str | None = None
    about: str = ""

    @property
    def declared(self) -> str:
        """As it stands in the signature."""
        return f"{self.name}: {self.type}" + (f" = {self.default}" if self.default is not None else "")


@dataclass(frozen=True)
class Method:
    """A method for a route."""

    name: str
    verb: str
    path: str
    operation: dict[str, Any]
    schemas: dict[str, Schema]

    @property
    def module(self) -> str:
        """The module that has it."""
        first = self.path.removeprefix(PREFIX).split("/")[1]
        if first in ("logs", "topics"):
            return "log_routes.py"
        if first not in ("jobs", "live"):
            return "api.py"
        return "job_views.py" if self.verb == "get" else "job_routes.py"

    @property
    def body_kinds(self) -> dict[str, Any]:
        """The media types of the body, with their schemas."""
        found: dict[str, Any] = self.operation.get("requestBody", {}).get("content", {})
        return found

    @property
    def is_json(self) -> bool:
        """Whether the body has fields, which are arguments then."""
        return [*self.body_kinds] == ["application/json"]

    def arguments(self) -> list[Argument]:
        """Those that are needed first."""
        taken = {p["name"] for p in self.operation.get("parameters", ()) if p["in"] in ("path", "query")}
        found = [a for p in self.operation.get("parameters", ()) if (a := _parameter(p)) is not None]
        if self.is_json:
            found += self._fields(taken)
        elif self.body_kinds:
            kinds = [*self.body_kinds]
            about = self.operation["requestBody"].get("description", "the body of the request")
            found += [
                Argument("content", "", "content", "bytes", about=about),
                Argument("kind", "", "kind", "str", repr(kinds[0]), f"its media type: {', '.join(kinds)}"),
            ]
        return sorted(found, key=lambda a: a.default is not None)

    def _fields(self, taken: set[str]) -> Iterator[Argument]:
        schema = self.body_kinds["application/json"]["schema"]
        schema = self.schemas[type_of(schema)] if "$ref" in schema else schema
        for field, of in schema.get("properties", {}).items():
            name = f"new_{field}" if field in taken else field
            is_needed = field in schema.get("required", ())
            yield Argument(name, field, "body", *_typed(of, is_needed), of["description"])

    def answer(self) -> tuple[str, str]:
        """The type of the answer, and how it is read: json, text, events or nothing."""
        good = next(answer for status, answer in self.operation["responses"].items() if status.startswith("2"))
        content = good.get("content", {})
        if "application/json" in content:
            return type_of(content["application/json"]["schema"]), "json"
        if "text/event-stream" in content:
            return "Iterator[ServerEvent]", "events"
        return ("str", "text") if content else ("None", "nothing")

    def __str__(self) -> str:
        kind, how = self.answer()
        arguments = self.arguments()
        plain, headers = ([a for a in arguments if (a.place == "header") is is_header] for is_header in (False, True))
        declared = [[a.declared for a in some] for some in (plain, headers)]
        given = ", ".join(["self", *declared[0], *(["*", *declared[1]] if headers else [])])
        call = f"self.{READ[how]}({self._call()})"
        doc = _doc(self.operation, [*plain, *headers])
        body = f"return {call}" if how in ("text", "events") else call
        if how == "json":
            body = f"found: {kind} = {call}\n        return found"
        return f'    def {self.name}({given}) -> {kind}:\n        """{doc}"""\n        {body}\n'

    def _call(self) -> str:
        parts = [repr(self.verb.upper()), _path(self.path)]
        for place in ("query", "header", "body"):
            pairs = [f"{a.sent!r}: {a.name}" for a in self.arguments() if a.place == place]
            if pairs or (place == "body" and self.is_json):
                parts.append(f"{place}={{{', '.join(pairs)}}}")
        if self.body_kinds and not self.is_json:
            parts.append("content=content, kind=kind")
        return ", ".join(parts)


def _parameter(found: dict[str, Any]) -> Argument | None:
    name, place, about = found["name"], found["in"], found["description"]
    if name == "If-None-Match":
        return None
    if place == "header":
        return Argument(name.lower().replace("-", "_"), name, "header", "str", '""', about)
    return Argument(_identifier(name), name, place, *_typed(found["schema"], found.get("required", False)), about)


def _typed(schema: Schema, is_needed: bool) -> tuple[str, str | None]:
    """The type of an argument, and its default; of lists and dicts, which would be shared, None: the server's own."""
    kind, default = type_of(schema), schema.get("default")
    if is_needed:
        return kind, None
    if default is None or isinstance(default, list | dict):
        return (kind if kind.endswith("None") else f"{kind} | None"), "None"
    return kind, repr(default)


def _identifier(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name


def _path(path: str) -> str:
    found = path.removeprefix(PREFIX)
    return f"self.path_of({found!r}{''.join(f', {name}={_identifier(name)}' for name in _names(found))})"


def _names(path: str) -> list[str]:
    return [part[1:-1] for part in path.split("/") if part.startswith("{")]


def _doc(operation: dict[str, Any], arguments: list[Argument]) -> str:
    about = " ".join(str(operation.get("description", "")).split())
    parts = [f"{operation['summary'].rstrip('.')}.", *([about] if about else [])]
    if arguments:
        parts.append("\n".join(["Args:", *(f"            {a.name}: {a.about}." for a in arguments)]))
    return "\n\n        ".join(parts) + ("\n        " if len(parts) > 1 else "")


def is_for_programs(operation: dict[str, Any]) -> bool:
    """Whether an operation answers; what only leads a browser elsewhere has no method."""
    return any(status.startswith("2") for status in operation["responses"])


def modules() -> dict[str, str]:
    """The texts of the modules, by name."""
    with tempfile.TemporaryDirectory() as folder:
        found = make_app(Manager(Path(folder) / "jobs")).openapi()
    schemas = {name: s for name, s in found["components"]["schemas"].items() if name != "Problem"}
    methods = [
        Method(operation["operationId"], verb, path, operation, schemas)
        for verb, path, operation in operations(found)
        if is_for_programs(operation)
    ]
    used = _used(methods, schemas)
    types = "\n\n\n".join(class_of(name, schemas[name]) for name in sorted(used))
    routes = {file: _routes(file, name, base, about, methods, used) for file, name, base, about in CLASSES}
    return {"answers.py": _formatted("answers.py", f"{ANSWERS}\n{types}\n"), **routes}


def _routes(file: str, name: str, base: str, about: str, methods: list[Method], answers: set[str]) -> str:
    body = "\n".join(str(method) for method in sorted(methods, key=lambda m: m.name) if method.module == file)
    text = ROUTES.format(about=about, made=MADE, imports=_imports(base, answers), name=name, base=base, body=body)
    return _formatted(file, text)


def _imports(base: str, answers: set[str]) -> str:
    """What a module may need; what it does not is taken out again."""
    module = next((file.removesuffix(".py") for file, name, *_ in CLASSES if name == base), "")
    found = [
        f"from penstock.client.answers import {', '.join(sorted(answers))}",
        "from penstock.client.connection import Connection, ServerEvent",
        *([f"from penstock.client.{module} import {base}"] if module else []),
    ]
    return "\n".join(found)


def _used(methods: list[Method], schemas: dict[str, Schema]) -> set[str]:
    """The schemas that answers have, and those in them."""
    waiting = [json.dumps(method.operation["responses"]) for method in methods]
    found: set[str] = set()
    while waiting:
        text = waiting.pop()
        for name, schema in schemas.items():
            if name not in found and f'"#/components/schemas/{name}"' in text:
                found.add(name)
                waiting.append(json.dumps(schema))
    return found


def _formatted(file: str, text: str) -> str:
    for command in (["check", "--fix", "--quiet", "--select", "F401,I,RUF100,PLR0913"], ["format", "--quiet"]):
        whole = [str(RUFF), *command, "--stdin-filename", str(FOLDER / file), "-"]
        text = subprocess.run(whole, input=text, capture_output=True, text=True, check=True).stdout
    return text


def main() -> int:
    """Writes the modules, or says which are stale."""
    made = modules()
    stale = [name for name, text in made.items() if not (FOLDER / name).exists() or (FOLDER / name).read_text() != text]
    if "--check" in sys.argv:
        for name in stale:
            sys.stderr.write(f"{name} is stale; `make reference` makes it anew\n")
        return int(bool(stale))
    for name in stale:
        (FOLDER / name).write_text(made[name])
    return 0


if __name__ == "__main__":
    sys.exit(main())
