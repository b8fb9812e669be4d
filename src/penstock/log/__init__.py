"""The embedded log: topics, partitions and consumer groups in a directory of one machine; usable alone.

>>> from penstock.log import Log
"""

from penstock.log.consume.consumer import Consumer
from penstock.log.consume.groups import GroupInfo, GroupOffset, Groups
from penstock.log.consume.predicate import predicate
from penstock.log.errors import (
    BadPredicate,
    BadRecord,
    BadSetting,
    Damage,
    LogClosed,
    LogDamaged,
    LogError,
    NotAssigned,
    OffsetOutOfRange,
    OutOfOrderSequence,
    ProducerFenced,
    TopicExists,
    UnknownTopic,
)
from penstock.log.produce.buffer import Ack
from penstock.log.produce.producer import Producer
from penstock.log.record import AppendResult, Record, TopicPartition
from penstock.log.storage.quarantine import Skip
from penstock.log.store import Log, PartitionInfo, TopicInfo
from penstock.log.topic import TopicConfig

__all__ = [
    "Ack",
    "AppendResult",
    "BadPredicate",
    "BadRecord",
    "BadSetting",
    "Consumer",
    "Damage",
    "GroupInfo",
    "GroupOffset",
    "Groups",
    "Log",
    "LogClosed",
    "LogDamaged",
    "LogError",
    "NotAssigned",
    "OffsetOutOfRange",
    "OutOfOrderSequence",
    "PartitionInfo",
    "Producer",
    "ProducerFenced",
    "Record",
    "Skip",
    "TopicConfig",
    "TopicExists",
    "TopicInfo",
    "TopicPartition",
    "UnknownTopic",
    "predicate",
]
