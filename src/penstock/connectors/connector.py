"""A connector as its package declares it: the record by which the rest of Penstock finds its parts."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True)
class Connector:
    """How one kind of endpoint is read, written and checked.

    A package below `penstock.connectors` lists its connectors in `CONNECTORS`. Each part is `module:name` in that package, and is imported when it
    is first used: some need libraries of their own. What a connector can do is in the `Capabilities` of its endpoint.

    Attributes:
        kind: The kind of the endpoint.
        package: The package that declares it, `__name__`.
        source: A `SourceConnector`, for sources.
        sink: A `SinkConnector`, for sinks.
        local_reader: A function that reads all records of a `LocalSource`, without a JVM.
        local_writer: A function that writes rows to a `LocalSink`, without a JVM.
        check: A function that takes a `Preflight` and raises SetupError when something outside is missing.
        makes: A function of the options of a sink that names what the sink makes when it is not there.
        check_sent: A function that takes a `Submission` and returns what the job of a flow will hardly find, or nothing; raises SetupError for what it cannot find.

    >>> Connector("console", "penstock.connectors.process", sink="console:ConsoleSink").part("sink").__name__
    'ConsoleSink'
    """

    kind: str
    package: str
    source: str = ""
    sink: str = ""
    local_reader: str = ""
    local_writer: str = ""
    check: str = ""
    makes: str = ""
    check_sent: str = ""

    def has(self, part: str) -> bool:
        """Whether it declares a part."""
        return bool(getattr(self, part))

    def part(self, part: str) -> object:
        """A part, imported now."""
        module, _, name = str(getattr(self, part)).partition(":")
        return getattr(import_module(f"{self.package}.{module}"), name)
