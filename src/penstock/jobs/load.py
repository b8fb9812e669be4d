"""Finds the flow a user means: `flows/count.py`, `count.py:flow`, `shop.flows:orders`, `flow.yaml`, `count.sql`.

A flow is anything with a `graph`: a `Flow`, a `Topology`, a graph itself, or a function without arguments that makes one.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

from penstock.errors import FlowError, PenstockError, nearest
from penstock.flowfiles.load import SUFFIXES, flow_file
from penstock.graph.graph import Graph

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

    from penstock.jobs.sql.files import SqlFile

_MAKERS = ("flow", "topology", "build", "build_flow", "make_flow")
"""Functions of these names are called when a file has no flow of its own; others only when they are named."""
_is_loading: ContextVar[bool] = ContextVar("is_loading", default=False)


@dataclass(frozen=True)
class LoadedFlow:
    """A flow, and its module."""

    graph: Graph
    module: str
    path: Path | None
    flow: Any
    options: Mapping[str, object] = field(default_factory=dict)
    """Options of a run that the file itself sets, as SET in SQL does; those of the command go before them."""
    revise: Callable[[], Graph | None] | None = None
    """Says what the flow has become while it runs, as standing queries of a new shape make it; None while it is what it was."""

    @property
    def folder(self) -> Path:
        """Where the module's own imports come from."""
        return self.path.parent if self.path is not None else Path.cwd()


def load_flow(target: str, properties: Mapping[str, str] | None = None) -> LoadedFlow:
    """The flow that `FILE.py[:name]`, `package.module[:name]`, `FILE.yaml` or `FILE.sql` stands for."""
    if target.endswith(SUFFIXES):
        return _yaml_flow(Path(target), properties)
    where, name = _split(target)
    if where.endswith(".sql"):
        return _sql_file(Path(where), name)
    with _loading():
        module = _file_module(Path(where)) if _is_file(where) else _named_module(where)
        flow = _named(module, name) if name else _only(module)
        graph = _graph(flow)
    assert graph is not None
    file = getattr(module, "__file__", None)
    return LoadedFlow(graph, module.__name__, Path(file).absolute() if file else None, flow)


def _yaml_flow(path: Path, properties: Mapping[str, str] | None) -> LoadedFlow:
    if not path.is_file():
        raise FlowError(f"there is no file {path}{_files_near(path, '*.y*ml')}")
    flow = flow_file(path, properties)
    return LoadedFlow(flow.graph, "", path.absolute(), flow)


def _sql_file(path: Path, name: str) -> LoadedFlow:
    """The flow of a file of SQL; modules that its functions name are found beside it."""
    from penstock.jobs.sql.files import read_sql_file  # it loads SQL

    if name:
        raise FlowError(f"a file of SQL is one flow; give {path} alone, got {path}:{name}")
    if not path.is_file():
        raise FlowError(f"there is no file {path}{_files_near(path, '*.sql')}")
    path = path.absolute()
    _put_first(path.parent)
    with _loading():
        found = read_sql_file(path)
    return LoadedFlow(found.flow.graph, "", path, found.flow, found.options, _Revising(found))


@dataclass
class _Revising:
    """The file of a flow that goes on with what its topic has brought."""

    file: SqlFile

    def __call__(self) -> Graph | None:
        """The graph with the new plans; None while there are none."""
        with _loading():
            found = self.file.revised()
        if found is None:
            return None
        self.file = found
        return found.flow.graph


def _split(target: str) -> tuple[str, str]:
    """What to load, and the name in it.

    >>> _split("a/b.py:flow"), _split("shop.flows"), _split("b.py:parts.flow")
    (('a/b.py', 'flow'), ('shop.flows', ''), ('b.py', 'parts.flow'))
    """
    where, _, name = target.partition(":")
    return where, name


def _is_file(where: str) -> bool:
    return where.endswith((".py", ".sql")) or "/" in where or Path(where).is_file()


@contextmanager
def _loading() -> Iterator[None]:
    """While a file is loaded, a `ps.run(...)` in it runs nothing: the command line decides how the flow runs."""
    token = _is_loading.set(True)
    try:
        yield
    finally:
        _is_loading.reset(token)


def is_loading() -> bool:
    """Whether a user's file is being loaded right now, in this thread."""
    return _is_loading.get()


def _file_module(path: Path) -> ModuleType:
    if not path.is_file():
        raise FlowError(f"there is no file {path}{_files_near(path)}")
    path = path.absolute()
    package, root = _package_of(path)
    _put_first(root)
    if package:
        return _named_module(f"{package}.{path.stem}")
    return _execute(path, _free_name(path))


def _files_near(path: Path, kind: str = "*.py") -> str:
    folder = path.parent
    if not folder.is_dir():
        return f": there is no folder {folder}"
    found = sorted(p.name for p in folder.glob(kind))
    return f"; {nearest(path.name, found)}" if found else f"; {folder.absolute()} has no {kind} files"


def _package_of(path: Path) -> tuple[str, Path]:
    """The dotted package a file stands in, and the folder that package is imported from."""
    names: list[str] = []
    folder = path.parent
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        names.insert(0, folder.name)
        folder = folder.parent
    return ".".join(names), folder


def _put_first(folder: Path) -> None:
    if str(folder) in sys.path:
        sys.path.remove(str(folder))
    sys.path.insert(0, str(folder))


def _free_name(path: Path) -> str:
    """The file's stem as a module name, unless a module of another file has that name."""
    stem = "".join(c if c.isalnum() else "_" for c in path.stem)
    stem = stem if stem.isidentifier() else f"flow_{stem}"
    taken = stem in sys.modules or stem in sys.stdlib_module_names or _elsewhere(stem, path)
    return f"flow_file_{stem}" if taken else stem


def _elsewhere(name: str, path: Path) -> bool:
    spec = importlib.util.find_spec(name)
    return spec is not None and spec.origin != str(path)


def _execute(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise FlowError(f"{path} is not a Python file; a flow file ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    loader = spec.loader
    try:
        _shielded(str(path), lambda: loader.exec_module(module))
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _named_module(name: str) -> ModuleType:
    if str(Path.cwd()) not in sys.path:
        _put_first(Path.cwd())
    if _shielded(name, lambda: _spec_of(name)) is None:
        raise FlowError(
            f"there is no module {name!r} on the path and no file of that name; give FILE.py[:flow] or package.module[:flow]"
        )
    module: ModuleType = _shielded(name, lambda: importlib.import_module(name))
    return module


def _spec_of(name: str) -> ModuleSpec | None:
    """How Python would import a module; None when it, or a package it stands in, is not there."""
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if f"{name}.".startswith(f"{error.name}."):
            return None
        raise


def _shielded(where: str, action: Callable[[], Any]) -> Any:
    """Runs the user's code; an error in it comes back as their own traceback."""
    try:
        return action()
    except PenstockError:
        raise
    except SystemExit as stop:
        raise FlowError(f"{where} ended the program with exit({stop.code!r}) while it was loaded") from None
    except Exception as error:
        raise FlowError(f"{where} could not be loaded:\n{user_traceback(error)}") from error


def user_traceback(error: BaseException) -> str:
    """The traceback of an error, without the frames of Penstock and of Python's import machinery."""
    frames = [f for f in traceback.walk_tb(error.__traceback__) if not _is_ours(f[0])]
    if isinstance(error, SyntaxError):
        frames = []
    lines = traceback.StackSummary.extract(iter(frames)).format()
    head = ["Traceback (most recent call last):\n"] if lines else []
    return "".join([*head, *lines, *traceback.format_exception_only(error)]).rstrip()


_HERE = str(Path(__file__).resolve().parents[1])


def _is_ours(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return "importlib" in file or (file.startswith(_HERE) and not file.startswith(f"{_HERE}/demo"))


def _named(module: ModuleType, name: str) -> object:
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise FlowError(f"{_shown(module)} has no {name!r}; {nearest(name, _flows_and_makers(module))}")
        found = getattr(found, part)
    made = _made(module, name, found)
    if _graph(made) is None:
        kind = type(made).__name__
        raise FlowError(
            f"{_shown(module)}: {name!r} is a {kind}, not a flow; {nearest(name, _flows_and_makers(module))}"
        )
    return made


def _made(module: ModuleType, name: str, found: object) -> object:
    """What a name stands for: itself, or what it returns when it is a function without arguments."""
    if not inspect.isfunction(found):
        return found
    if _needs_arguments(found):
        raise FlowError(
            f"{_shown(module)}: {name}{inspect.signature(found)} must take no arguments to be run as a flow"
        )
    return _shielded(f"{_shown(module)}: {name}()", found)


def _only(module: ModuleType) -> object:
    """The one flow of a module."""
    flows = _flows(module)
    if len(flows) == 1:
        return next(iter(flows.values()))
    if len(flows) > 1:
        listed = ", ".join(flows)
        first = next(iter(flows))
        raise FlowError(f"{_shown(module)} has several flows: {listed}. Say which: {_shown(module)}:{first}")
    makers = [name for name in _makers(module) if name in _MAKERS or _returns_flow(getattr(module, name))]
    if len(makers) == 1:
        return _named(module, makers[0])
    names = ", ".join(n for n in vars(module) if not n.startswith("_")) or "nothing"
    raise FlowError(
        f"{_shown(module)} has no flow. It must hold one, such as flow = ps.Flow('name'), or a function without arguments "
        f"that returns one, named after a colon: {_shown(module)}:make_flow. It has: {names}"
    )


def _flows(module: ModuleType) -> dict[str, Any]:
    """The flows among a module's names; one that has several names counts once."""
    found: dict[int, tuple[str, Any]] = {}
    for name, value in vars(module).items():
        if not name.startswith("__") and _graph(value) is not None:
            found.setdefault(id(value), (name, value))
    return dict(found.values())


def _makers(module: ModuleType) -> list[str]:
    """The module's own functions that need no arguments."""
    own = [(n, v) for n, v in vars(module).items() if inspect.isfunction(v) and v.__module__ == module.__name__]
    return [n for n, v in own if not n.startswith("_") and not _needs_arguments(v)]


def _flows_and_makers(module: ModuleType) -> list[str]:
    return [*_flows(module), *_makers(module)]


def _needs_arguments(function: Callable[..., object]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return any(p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)


def _returns_flow(function: object) -> bool:
    said = getattr(function, "__annotations__", {}).get("return")
    name = said if isinstance(said, str) else getattr(said, "__name__", "")
    return name.rsplit(".", 1)[-1] in ("Flow", "Topology", "Graph")


def _graph(value: Any) -> Graph | None:
    """The graph of a value, if it is a flow. A flow that is wrong says so here."""
    if isinstance(value, Graph):
        return value
    if isinstance(value, ModuleType) or not hasattr(type(value), "graph"):
        return None
    try:
        graph = value.graph
    except PenstockError:
        raise
    except Exception:
        return None
    return graph if isinstance(graph, Graph) else None


def _shown(module: ModuleType) -> str:
    file = getattr(module, "__file__", None)
    return Path(file).name if file and not module.__name__.count(".") else module.__name__
