"""Rows that Redis refuses: without a key, larger than the server takes, or with a key that holds something of another kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.connectors.redis.wire import Layout, driver, packed, rows_of
from penstock.errors import RunError

if TYPE_CHECKING:
    import pyarrow as pa
    import redis

NUMBER = "__number"
"""The column with the number of a row, where rows that are refused are told."""
LARGEST = 512 * 1024 * 1024
"""The bytes of a value that every server takes by default."""

OTHER_KINDS = """
local wrong, seen = {}, {}
for i = 1, #KEYS do
  for _, text in ipairs(redis.call('LRANGE', KEYS[i], 0, -1)) do
    for _, command in ipairs(cmsgpack.unpack(text)) do
      local key = command[2]
      if not seen[key] and command[1] ~= 'SET' then
        seen[key] = true
        local kind = redis.call('TYPE', key)['ok']
        if kind ~= 'none' and kind ~= ARGV[1] then
          wrong[#wrong + 1] = key
          wrong[#wrong + 1] = kind
        end
      end
    end
  end
end
return wrong
"""
"""The keys of commands that wait aside which hold something of another kind, each followed by that kind."""


@dataclass(frozen=True)
class Limits:
    """What rows must keep to: the bytes of a value, and the keys that hold something of another kind, with what is said of each.

    With `tells` a row that does not is told, and left out; without it is an error.
    """

    largest: int = LARGEST
    other_kinds: dict[bytes, str] = field(default_factory=dict)
    tells: bool = False

    def commands(
        self, layout: Layout, batch: pa.RecordBatch, refused: dict[int, str]
    ) -> Iterator[tuple[list[list[bytes]], int]]:
        """The commands of each row with their size in bytes; rows that are refused are added to `refused`."""
        for row in rows_of(batch):
            number = row.pop(NUMBER, -1)
            try:
                yield self._checked(layout.commands_of(row))
            except RunError as error:
                if not self.tells:
                    raise
                refused[number] = str(error)

    def _checked(self, commands: list[list[bytes]]) -> tuple[list[list[bytes]], int]:
        for command in commands:
            if command[1] in self.other_kinds:
                raise RunError(self.other_kinds[command[1]])
        size = sum(len(word) + 5 for command in commands for word in command) + 5 * len(commands)
        if size + 5 > self.largest and len(packed(commands)) > self.largest:
            raise RunError(
                f"the row has {size} bytes as a command, and the server takes {self.largest} (its setting proto-max-bulk-len); make it smaller, "
                f"or raise that"
            )
        return commands, size


def largest_value(client: redis.Redis) -> int:
    """The bytes of a value that a server takes; the default where it does not tell."""
    try:
        found: Any = client.config_get("proto-max-bulk-len")
    except driver().ResponseError:
        return LARGEST
    return int(found.get("proto-max-bulk-len", LARGEST))


def other_kinds(client: redis.Redis, keys: list[str], layout: Layout) -> dict[bytes, str]:
    """The keys that hold something of another kind than is written, among those of commands that wait aside."""
    found: Any = client.register_script(OTHER_KINDS)(keys=keys, args=[layout.type]) if keys else []
    return {
        key: f"the key {key.decode(errors='replace')!r} holds a {kind.decode()}, not a {layout.kind}"
        for key, kind in zip(found[::2], found[1::2], strict=True)
    }
