"""Protobuf values in the wire format of schema registries: after the id stands which message of the file it is.

Descriptors come from the registry in their serialized form, so no compiler of .proto files is needed.
"""

from __future__ import annotations

import base64
import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.connectors.kafka.schema_registry import RegisteredSchema, Registry
from penstock.errors import FlowError, RunError, SetupError
from penstock.graph import types as t
from penstock.graph.schema import Schema

if TYPE_CHECKING:
    from types import ModuleType

    from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message import Message as ProtoMessage

FRONT = 5
_TIMESTAMP = "google.protobuf.Timestamp"


def protobuf() -> ModuleType:
    """The package, or an error that says how to get it."""
    try:
        import google.protobuf.descriptor_pb2
        import google.protobuf.descriptor_pool
        import google.protobuf.message
        import google.protobuf.message_factory
    except ImportError:
        raise SetupError("Protobuf needs the package protobuf: pip install 'penstock[kafka]'") from None
    made: ModuleType = google.protobuf
    return made


class ProtobufReader:
    """Reads values with the descriptor each was written with."""

    def __init__(self, registry: Registry, schema: Schema) -> None:
        self.registry, self.schema, self.lib = registry, schema, protobuf()
        self._files: dict[int, Any] = {}
        self._classes: dict[tuple[int, tuple[int, ...]], Any] = {}

    def read(self, number: int, value: bytes) -> dict[str, Any]:
        """The record in a value."""
        self._load(number)
        path, at = indexes(value, FRONT)
        if (number, path) not in self._classes:
            self._classes[number, path] = self._class(number, path)
        message = self._classes[number, path]()
        try:
            message.ParseFromString(value[at:])
        except self.lib.message.DecodeError as error:
            raise RunError(f"a value cannot be read as Protobuf with the schema of id {number}: {error}") from None
        return _record(message, self.schema.fields)

    def _load(self, number: int) -> None:
        if number in self._files:
            return
        found = self.registry.schema(number, "serialized")
        if found.kind != "PROTOBUF":
            raise RunError(f"the schema with the id {number} is {found.kind}, not PROTOBUF")
        self._files[number] = _file(found)

    def _class(self, number: int, path: tuple[int, ...]) -> type[ProtoMessage]:
        messages = list(self._files[number].message_types_by_name.values())
        try:
            descriptor = messages[path[0]]
            for step in path[1:]:
                descriptor = descriptor.nested_types[step]
        except IndexError:
            raise RunError(f"a value names message {list(path)} of schema {number}, which has none there") from None
        made: type[ProtoMessage] = self.lib.message_factory.GetMessageClass(descriptor)
        return made


def _file(found: RegisteredSchema) -> FileDescriptor:
    """The descriptor of a file, with those it imports in a pool of their own."""
    lib = protobuf()
    pool = lib.descriptor_pool.DescriptorPool()

    def add(name: str, each: RegisteredSchema) -> str:
        proto = lib.descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(each.text))
        proto.name = name or proto.name or "value.proto"
        for other, registered in each.references:
            add(other, registered)
        for other in proto.dependency:
            _add_known(pool, other)
        pool.Add(proto)
        return str(proto.name)

    return pool.FindFileByName(add("", found))


def _add_known(pool: DescriptorPool, name: str) -> None:
    """Files that come with Protobuf itself, such as google/protobuf/timestamp.proto, are in no registry."""
    lib = protobuf()
    try:
        pool.FindFileByName(name)
        return
    except KeyError:
        pass
    module = importlib.import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
    proto = lib.descriptor_pb2.FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
    for other in proto.dependency:
        _add_known(pool, other)
    pool.Add(proto)


def indexes(value: bytes, at: int) -> tuple[tuple[int, ...], int]:
    """Which message of the file a value is, and where it begins; a single zero stands for the first.

    >>> indexes(bytes([0]), 0), indexes(bytes([4, 2, 0]), 0)
    (((0,), 1), ((1, 0), 3))
    """
    count, at = _zigzag(value, at)
    if count == 0:
        return (0,), at
    path = []
    for _ in range(count):
        step, at = _zigzag(value, at)
        path.append(step)
    return tuple(path), at


def _zigzag(value: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(value):
            raise RunError("a Protobuf value ends before its message begins")
        byte = value[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7


def _record(message: ProtoMessage, fields: Iterable[t.Field]) -> dict[str, Any]:
    known = message.DESCRIPTOR.fields_by_name
    return {f.name: _value(message, known[f.name], f.type) for f in fields if f.name in known}


def _value(message: ProtoMessage, field: FieldDescriptor, kind: t.DataType) -> object:
    if field.has_presence and not message.HasField(field.name):
        return None
    value = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        inner = field.message_type.fields_by_name["value"]
        item = kind.value if isinstance(kind, t.Map) else kind
        return {k: _plain(v, inner, item) for k, v in value.items()}
    if field.is_repeated:
        item = kind.item if isinstance(kind, t.Array) else kind
        return [_plain(v, field, item) for v in value]
    return _plain(value, field, kind)


def _plain(value: Any, field: FieldDescriptor, kind: t.DataType) -> object:
    if field.message_type is not None:
        if field.message_type.full_name == _TIMESTAMP:
            import datetime

            return value.ToDatetime(tzinfo=datetime.UTC)
        return _record(value, kind.fields if isinstance(kind, t.Struct) else ())
    if field.enum_type is not None and kind == t.STRING:
        known = field.enum_type.values_by_number
        return known[value].name if value in known else str(value)
    return value


@dataclass(frozen=True)
class Message:
    """A message class in a form that travels: the files it needs, itself last, its name, and its path in the file."""

    files: tuple[bytes, ...]
    name: str
    path: tuple[int, ...]

    @property
    def text(self) -> str:
        """What the registry takes as the schema."""
        return base64.b64encode(self.files[-1]).decode()


def message_of(named: str) -> Message:
    """The message class that `module:Class` names."""
    module, _, name = named.partition(":")
    try:
        made = getattr(importlib.import_module(module), name)
        descriptor = made.DESCRIPTOR
    except (ImportError, AttributeError, ValueError) as error:
        raise FlowError(
            f"value_schema={named!r} of a Protobuf sink is 'module:Message', a generated class: {error}"
        ) from None
    files: dict[str, bytes] = {}

    def add(file: FileDescriptor) -> None:
        for other in file.dependencies:
            add(other)
        files[file.name] = file.serialized_pb

    add(descriptor.file)
    foreign = [name for name in list(files)[:-1] if not name.startswith("google/")]
    if foreign:
        raise FlowError(
            f"value_schema={named!r}: its file imports {foreign[0]}; only a file that stands alone can be registered"
        )
    return Message(tuple(files.values()), descriptor.full_name, _path(descriptor))


def _path(descriptor: Descriptor) -> tuple[int, ...]:
    parent = descriptor.containing_type
    others = list(descriptor.file.message_types_by_name.values()) if parent is None else parent.nested_types
    at = [d.name for d in others].index(descriptor.name)
    return (at,) if parent is None else (*_path(parent), at)


def protobuf_writer(front: bytes, message: Message) -> Callable[[Any], bytes]:
    """Makes bytes of records; the class is made where they are."""
    whole = front + _written(message.path)
    ready: list[Any] = []

    def write(record: Any) -> bytes:
        if not ready:
            ready.append(_class_of(message))
        made = ready[0]()
        try:
            _fill(made, record)
        except Exception as error:  # whatever gets out of the writer makes a bad record
            raise RunError(f"a record does not fit the Protobuf message {message.name}: {error}") from None
        return whole + bytes(made.SerializeToString())

    return write


def _written(path: tuple[int, ...]) -> bytes:
    """Where the message is in its file, as numbers in zigzag form; one byte stands for the first message."""
    if path == (0,):
        return b"\0"
    return b"".join(_varint(n << 1) for n in (len(path), *path))


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def _class_of(message: Message) -> type[ProtoMessage]:
    lib = protobuf()
    pool = lib.descriptor_pool.DescriptorPool()
    for file in message.files:
        pool.AddSerializedFile(file)
    made: type[ProtoMessage] = lib.message_factory.GetMessageClass(pool.FindMessageTypeByName(message.name))
    return made


def _fill(message: ProtoMessage, record: dict[str, Any]) -> None:
    """Sets the fields that the message has; what is null stays unset."""
    known = message.DESCRIPTOR.fields_by_name
    for name, value in record.items():
        if value is None:
            continue
        if name not in known:
            raise KeyError(f"it has no field {name!r}")
        _set(message, known[name], value)


def _set(message: ProtoMessage, field: FieldDescriptor, value: Any) -> None:
    target = getattr(message, field.name)
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        for key, item in value.items():
            if inner.fields_by_name["value"].message_type is not None:
                _fill(target[key], item)
            else:
                target[key] = item
    elif field.is_repeated and inner is not None:
        for item in value:
            _fill(target.add(), item)
    elif field.is_repeated:
        target.extend(value)
    elif inner is not None and inner.full_name == _TIMESTAMP:
        target.FromDatetime(value)
    elif inner is not None:
        _fill(target, value)
    elif field.enum_type is not None and isinstance(value, str):
        setattr(message, field.name, field.enum_type.values_by_name[value].number)
    else:
        setattr(message, field.name, value)
