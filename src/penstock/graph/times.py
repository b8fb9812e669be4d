"""The times a kernel works with: where event time stands, and processing time. Microseconds since 1970, as integers.

Event time moves between batches only. A batch comes with two watermarks: `previous`, where event time stood when the batch
began (a record before it is late), and `watermark`, to which it moves when the batch's records are all in (timers and
windows up to it fire then). So what a step emits when time moves reaches the next step as records that are not late,
and any number of steps in a row move together.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass

NEVER = -(1 << 62)
"""Before all times: no watermark yet."""
FOREVER = 1 << 62
"""After all times: the input has ended."""
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Times:
    """The times of one batch."""

    previous: int = NEVER
    watermark: int = NEVER
    before: int = NEVER
    """Processing time at the last batch: its timers up to it have fired."""
    now: int = 0
    """The processing time of this batch; it does not move while the batch runs."""
    timeless: bool = False
    """Whether no event time reaches the step, so that its watermark moves only when the input is over."""

    def held(self, by: int) -> Times:
        """The same after steps that emit records up to `by` before their own watermark.

        >>> Times(previous=10, watermark=FOREVER).held(4)
        Times(previous=6, watermark=4611686018427387904, before=-4611686018427387904, now=0, timeless=False)
        """
        return Times(_less(self.previous, by), _less(self.watermark, by), self.before, self.now)


def _less(time: int, by: int) -> int:
    return time if time in (NEVER, FOREVER) else time - by


def to_micros(moment: datetime.datetime) -> int:
    """A moment as microseconds; one without a time zone is meant in UTC.

    >>> to_micros(datetime.datetime(1970, 1, 1, 0, 0, 1))
    1000000
    """
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)
    return (aware - _EPOCH) // datetime.timedelta(microseconds=1)


def to_moment(time: int) -> datetime.datetime:
    """Microseconds as a moment in UTC; times before or after what a datetime can say are cut to it."""
    try:
        return _EPOCH + datetime.timedelta(microseconds=time)
    except OverflowError:
        year = datetime.MINYEAR if time < 0 else datetime.MAXYEAR
        return datetime.datetime(year, 1, 1, tzinfo=datetime.UTC)
