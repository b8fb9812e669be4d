"""Rows that a sink refuses: found while the batch is staged, by trying beginnings of it where the sink does not tell them, and put aside as dead letters.

A trial writes and takes back, so it shows nothing. What was refused goes into the ledger with the batch, and is noted on disk before the sink commits: a batch
that runs again after that is skipped by its sink, and its dead letters are those that the ledger has, whichever driver wrote them, or else those of the note.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from penstock.connectors.base import REFUSED, Refusal, StagedBatch
from penstock.errors import RunError
from penstock.graph.nodes import Sink
from penstock.graph.row import row_class
from penstock.graph.schema import Schema
from penstock.kernels.base import short
from penstock.kernels.errors.guard import DeadLetter
from penstock.kernels.errors.payload import payload_of
from penstock.spark.failures import as_run_error
from penstock.storage import Storage, exists, names_under

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NUMBER = "__number"
MOST = 20
"""Rows that are looked for in one batch; if more are refused, it is the flow or the table that is wrong."""
LARGEST = 256 * 1024
"""Characters of dead letters that a ledger takes; more are noted in the checkpoint alone."""
Stage = Callable[["DataFrame"], StagedBatch]


@dataclass(frozen=True)
class Refusals:
    """The rows of one batch that a sink refuses. `stage` stages some rows; `note` is the object of `notes` that keeps the dead letters until the batch is
    through.
    """

    sink: Sink
    schema: Schema
    stage: Stage
    notes: Storage
    note: str

    def staged(self, frame: DataFrame) -> tuple[StagedBatch, list[DeadLetter]]:
        """The batch, staged without the rows that are refused, and those as dead letters."""
        try:
            made = self.stage(frame)
            said = made.rehearse()
        except Exception as error:
            made, said = StagedBatch(), self._refusal(error)
        if not said:
            return made, self._settled(made, [])
        made.abort()
        return self._without(frame)

    def of_rows(self, made: StagedBatch, refused: Sequence[Refusal]) -> list[DeadLetter]:
        """The dead letters of a batch whose sink has told the rows that it refuses."""
        _check_refusals(self.sink, made, refused)
        return self._settled(made, [_dead_letter_of(self.sink.name, self.schema, *refusal) for refusal in refused])

    def _settled(self, made: StagedBatch, dead_letters: list[DeadLetter]) -> list[DeadLetter]:
        """The dead letters of a batch: of one that is through those that were noted then, else these, which are noted now."""
        if made.through:
            return self._noted(made)
        text = json.dumps([asdict(each) for each in dead_letters])
        self._write(text if dead_letters else "")
        made.refused = text if len(text) <= LARGEST else ""
        return dead_letters

    def _without(self, frame: DataFrame) -> tuple[StagedBatch, list[DeadLetter]]:
        numbered = frame.selectExpr("*", f"monotonically_increasing_id() as {NUMBER}").persist()
        try:
            refused = self._search(numbered)
            made = self.stage(_part(numbered, refused))
            made.rehearse()  # of a batch that is through the trials did not find the rows that only the complete table refuses
            return made, self._settled(made, [self._dead_letter(numbered, *each) for each in refused.items()])
        finally:
            numbered.unpersist()

    def _search(self, numbered: DataFrame) -> dict[int, str]:
        """The rows, each with what the sink says: the last of the shortest beginning that is refused, then the next such."""
        numbers = sorted(int(row[0]) for row in numbered.select(NUMBER).collect())
        refused: dict[int, str] = {}
        while said := self._try(_part(numbered, refused)):
            if len(refused) == MOST:
                raise RunError(
                    f"sink {self.sink.name!r} refuses more than {MOST} rows of one batch, which is taken for a wrong table, not for bad records: {said}"
                )
            low, high = 0, len(numbers)
            while high - low > 1:
                middle = (low + high) // 2
                tried = self._try(_part(numbered, refused, numbers[middle - 1]))
                low, high, said = (low, middle, tried) if tried else (middle, high, said)
            refused[numbers[high - 1]] = said
        return refused

    def _try(self, frame: DataFrame) -> str:
        """What the sink says against some rows; empty when it takes them."""
        made = StagedBatch()
        try:
            made = self.stage(frame)
            return made.rehearse()
        except Exception as error:
            return self._refusal(error)
        finally:
            made.abort()

    def _refusal(self, error: Exception) -> str:
        """What a sink said that refuses rows already while they are staged; any other error goes on its way."""
        message = str(as_run_error(error))
        if REFUSED not in message:
            raise error
        return message.split(REFUSED, 1)[1].strip()

    def _dead_letter(self, numbered: DataFrame, number: int, said: str) -> DeadLetter:
        row = numbered.where(f"{NUMBER} = {number}").drop(NUMBER).collect()[0]
        made = tuple.__new__(row_class(tuple(row.__fields__)), tuple(row))
        return _dead_letter_of(self.sink.name, self.schema, number, made, said)

    def _write(self, text: str) -> None:
        """Notes the dead letters; what is noted of batches before is through by now, and of an earlier attempt at this one no longer true."""
        if text:
            self.notes.write(self.note, text.encode())
        self.notes.delete(*(name for name in names_under(self.notes, "") if not text or name != self.note))

    def _noted(self, made: StagedBatch) -> list[DeadLetter]:
        """What the ledger says of the rows that were refused when the batch was written, or else the note of this checkpoint."""
        text = made.refused or (self.notes.read(self.note) if exists(self.notes, self.note) else "[]")
        return [DeadLetter(**each) for each in json.loads(text)]


def _check_refusals(sink: Sink, staged: StagedBatch, refused: Sequence[Refusal]) -> None:
    """A sink that takes some rows and refuses others tells of bad records; one that refuses all of many is wrong itself."""
    if len(refused) > MOST and not staged.rows:
        raise RunError(
            f"sink {sink.name!r} refuses all {len(refused)} rows of one batch, which is taken for a wrong address, not for bad records: "
            f"{refused[0].said}"
        )


def _dead_letter_of(sink: str, schema: Schema, number: int, row: tuple[Any, ...], said: str) -> DeadLetter:
    """A row that a sink refuses as a dead letter."""
    return DeadLetter(sink, said.split("\n", 1)[0], said, short(row), payload_of(row, schema), 0, f"row {number}")


def _part(numbered: DataFrame, refused: dict[int, str], last: int | None = None) -> DataFrame:
    """The rows up to one, or all, without those that are refused."""
    some = numbered if last is None else numbered.where(f"{NUMBER} <= {last}")
    gone = ", ".join(map(str, sorted(refused)))
    return (some.where(f"{NUMBER} not in ({gone})") if gone else some).drop(NUMBER)
