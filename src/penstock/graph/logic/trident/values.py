"""Values of states with the transaction that wrote them: the rules by which a batch that runs again counts once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.errors import StateError


@dataclass(frozen=True)
class TransactionalValue:
    """A value and the transaction that wrote it. Right where a transaction always has the same tuples.

    Args:
        txid: the transaction.
        value: the value.

    >>> from penstock.trident import TransactionalValue
    >>> TransactionalValue(8, 5).update(8, lambda value: value + 1)
    TransactionalValue(txid=8, value=5)
    >>> TransactionalValue(8, 5).update(9, lambda value: value + 1)
    TransactionalValue(txid=9, value=6)
    """

    txid: int
    value: Any

    def update(self, txid: int, change: Any) -> TransactionalValue:
        """The value after a transaction: as it is where the transaction has written it already, else as `change` makes it.

        Args:
            txid: the transaction.
            change: a function from the value to the new one.

        Returns:
            The new value.
        """
        return self if txid == self.txid else TransactionalValue(txid, change(self.value))


@dataclass(frozen=True)
class OpaqueValue:
    """A value, the one before it, and the transaction that wrote it. Right where the tuples of a transaction may change on replay.

    Args:
        txid: the transaction.
        value: the value.
        previous: the value before the transaction.

    >>> from penstock.trident import OpaqueValue
    >>> stored = OpaqueValue(8, "v1", "v0")
    >>> stored.get(8), stored.get(9)
    ('v0', 'v1')
    >>> stored.update(8, "v2")
    OpaqueValue(txid=8, value='v2', previous='v0')
    >>> stored.update(9, "v2")
    OpaqueValue(txid=9, value='v2', previous='v1')
    """

    txid: int
    value: Any
    previous: Any = None

    def get(self, txid: int | None) -> Any:
        """The value from which a transaction begins.

        Args:
            txid: the transaction; None for whoever asks outside of one, and gets the value.

        Returns:
            The previous value where this transaction has written before, else the value.

        Raises:
            StateError: a later transaction has written.
        """
        if txid is None:
            return self.value
        self._check(txid)
        return self.previous if txid == self.txid else self.value

    def update(self, txid: int, value: object) -> OpaqueValue:
        """The stored value after a transaction.

        Args:
            txid: the transaction.
            value: the new value.

        Returns:
            What is stored.

        Raises:
            StateError: a later transaction has written.
        """
        return OpaqueValue(txid, value, self.get(txid))

    def _check(self, txid: int) -> None:
        if txid < self.txid:
            raise StateError(
                f"expected a transaction from {self.txid} on, which has written this value, got {txid}: the batch is behind the state. "
                f"The state belongs to a later run, or to another checkpoint; restore that one, or clear the state"
            )
