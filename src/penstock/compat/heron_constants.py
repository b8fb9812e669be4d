"""The names of settings, as heronpy has them in `api_constants`: `from penstock.compat import heron_constants as constants`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.graph.logic.topology.config import ACKERS, TIMEOUT


class TopologyReliabilityMode:
    """What a topology promises. Of ours only spouts that are to hear of acks and fails need the second; state is always exactly once."""

    ATMOST_ONCE = "ATMOST_ONCE"
    ATLEAST_ONCE = "ATLEAST_ONCE"
    EFFECTIVELY_ONCE = "EFFECTIVELY_ONCE"


TOPOLOGY_WORKER_CHILDOPTS = "topology.worker.childopts"
TOPOLOGY_COMPONENT_JVMOPTS = "topology.component.jvmopts"
TOPOLOGY_TICK_TUPLE_FREQ_SECS = "topology.tick.tuple.freq.secs"
TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS = "topology.enable.message.timeouts"
TOPOLOGY_DEBUG = "topology.debug"
TOPOLOGY_STMGRS = "topology.stmgrs"
TOPOLOGY_MESSAGE_TIMEOUT_SECS = "topology.message.timeout.secs"
TOPOLOGY_COMPONENT_PARALLELISM = "topology.component.parallelism"
TOPOLOGY_MAX_SPOUT_PENDING = "topology.max.spout.pending"
TOPOLOGY_AUTO_TASK_HOOKS = "topology.auto.task.hooks"
TOPOLOGY_SERIALIZER_CLASSNAME = "topology.serializer.classname"
TOPOLOGY_RELIABILITY_MODE = "topology.reliability.mode"
TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS = "topology.stateful.checkpoint.interval.seconds"
TOPOLOGY_STATEFUL_START_CLEAN = "topology.stateful.start.clean"
TOPOLOGY_CONTAINER_CPU_REQUESTED = "topology.container.cpu"
TOPOLOGY_CONTAINER_RAM_REQUESTED = "topology.container.ram"
TOPOLOGY_CONTAINER_DISK_REQUESTED = "topology.container.disk"
TOPOLOGY_CONTAINER_MAX_RAM_HINT = "topology.container.max.ram.hint"
TOPOLOGY_CONTAINER_MAX_CPU_HINT = "topology.container.max.cpu.hint"
TOPOLOGY_CONTAINER_MAX_DISK_HINT = "topology.container.max.disk.hint"
TOPOLOGY_CONTAINER_PADDING_PERCENTAGE = "topology.container.padding.percentage"
TOPOLOGY_CONTAINER_RAM_PADDING = "topology.container.ram.padding"
TOPOLOGY_COMPONENT_CPUMAP = "topology.component.cpumap"
TOPOLOGY_COMPONENT_RAMMAP = "topology.component.rammap"
TOPOLOGY_COMPONENT_DISKMAP = "topology.component.diskmap"
TOPOLOGY_NAME = "topology.name"
TOPOLOGY_TEAM_NAME = "topology.team.name"
TOPOLOGY_TEAM_EMAIL = "topology.team.email"
TOPOLOGY_CAP_TICKET = "topology.cap.ticket"
TOPOLOGY_PROJECT_NAME = "topology.project.name"
TOPOLOGY_ADDITIONAL_CLASSPATH = "topology.additional.classpath"
TOPOLOGY_COMPONENT_OUTPUT_BPS = "topology.component.output.bps"

_NEVER = 1e9


def settings_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a topology, with what those of Heron mean under the names that Storm has.

    Args:
        config: the settings as they were given.

    Returns:
        The settings. Where messages do not time out, their timeout is long; in the modes without replay messages are acked at once.

    >>> settings_of({TOPOLOGY_RELIABILITY_MODE: TopologyReliabilityMode.ATMOST_ONCE})[ACKERS]
    0
    """
    made = dict(config)
    if str(made.get(TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS, True)).lower() == "false":
        made[TIMEOUT] = _NEVER
    modes = (TopologyReliabilityMode.ATMOST_ONCE, TopologyReliabilityMode.EFFECTIVELY_ONCE)
    if made.get(TOPOLOGY_RELIABILITY_MODE) in modes:
        made.setdefault(ACKERS, 0)
    return made
