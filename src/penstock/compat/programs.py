"""Programs of any language in a topology of streamparse: `ShellBolt.spec(command="node", script="count.js", ...)`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.compat.components import DeclaredStream, declared_streams
from penstock.errors import FlowError
from penstock.graph.multilang.shell import ShellBolt, ShellSpout


@dataclass(frozen=True)
class Program:
    """A program, where a spec otherwise has a class."""

    command: str
    script: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    outputs: Any = None

    @property
    def words(self) -> list[str]:
        """The program and its arguments.

        Raises:
            FlowError: there is no program.
        """
        made = [*shlex.split(self.command or ""), *shlex.split(self.script or "")]
        if not made:
            raise FlowError(
                "expected a command, such as ShellBolt.spec(command='node', script='count.js', ...), got none"
            )
        return made

    @staticmethod
    def typed(config: Mapping[str, Any]) -> dict[str, Any]:
        """Settings as they are meant."""
        return dict(config)

    @staticmethod
    def needed(config: Mapping[str, Any]) -> dict[str, Any]:
        """Settings that follow from those that are given: none."""
        return {}


class ProgramSpout(Program):
    """A program as a spout."""

    def made(self, outputs: Any) -> ShellSpout:
        """The spout."""
        return ShellSpout(self.words, **_streams(declared_streams(outputs)))


class ProgramBolt(Program):
    """A program as a bolt."""

    def made(self, outputs: Any) -> ShellBolt:
        """The bolt."""
        return ShellBolt(self.words, **_streams(declared_streams(outputs)))


def _streams(declared: list[DeclaredStream]) -> dict[str, Any]:
    """The streams of a program, as the components of Penstock take them."""
    return {
        "outputs": {name: fields for name, fields, _ in declared} or None,
        "direct": [name for name, _, direct in declared if direct],
    }
