"""Programs that do not behave: each way by its name. They speak the protocol without a library."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def read() -> Iterator[Any]:
    lines: list[str] = []
    for line in sys.stdin:
        if line == "end\n":
            yield json.loads("".join(lines))
            lines = []
        else:
            lines.append(line)


def send(message: Any) -> None:
    sys.stdout.write(json.dumps(message, indent=1) + "\nend\n")
    sys.stdout.flush()


def emit(value: Any, message: Any) -> None:
    send({"command": "emit", "tuple": [value], "anchors": [message["id"]], "need_task_ids": False})


def once(name: str) -> bool:
    """Whether this is the first process of the run."""
    mark = Path(os.environ["MARKS"]) / name
    if mark.exists():
        return False
    mark.touch()
    return True


def main(kind: str) -> None:  # noqa: C901 - one way to misbehave after the other
    messages = read()
    setup = next(messages)
    if kind == "silent":
        sys.stderr.write("I cannot start\n")
        sys.exit(3)
    if kind == "liar":
        send({"hello": 1})
    (Path(setup["pidDir"]) / str(os.getpid())).touch()
    send({"pid": os.getpid()})
    for count, message in enumerate(messages):
        if message.get("stream") == "__heartbeat":
            send({"command": "sync"})
            continue
        value = message["tuple"][0]
        if kind == "weak" and count % 7 == 6:
            os._exit(5)
        if kind == "dies" and count == 5 and once("died"):
            os._exit(9)
        if kind in ("half", "half-asks") and count == 5 and once("died"):
            for part in (0, 1):
                send(
                    {
                        "command": "emit",
                        "tuple": [f"{value}{part}"],
                        "anchors": [message["id"]],
                        "need_task_ids": kind == "half-asks",
                    }
                )
                if kind == "half-asks":
                    next(messages)
            os._exit(9)
        if kind == "always-dies":
            sys.stderr.write("out of luck\n")
            sys.exit(1)
        if kind == "hangs" and count == 5 and once("hung"):
            time.sleep(600)
        if kind == "babbles":
            sys.stdout.write("not json\nend\n")
            sys.stdout.flush()
        if kind == "loud":
            for _ in range(50):
                emit("x" * 2000, message)
        if kind == "typed":
            send(
                {
                    "command": "emit",
                    "tuple": [value],
                    "anchors": message["id"],
                    "stream": "",
                    "task": 0,
                    "need_task_ids": False,
                }
            )
        elif kind == "asks-late":
            send({"command": "emit", "tuple": [value], "anchors": [], "stream": "default"})
        elif kind == "direct":
            tasks = [int(t) for t, c in setup["context"]["task->component"].items() if c == "play"]
            send(
                {"command": "emit", "tuple": [value], "anchors": [message["id"]], "stream": "jobs", "task": max(tasks)}
            )
        elif kind == "env":
            emit([os.environ["COLOUR"], str(Path.cwd()), setup["conf"].get("own.key")], message)
        else:
            emit(value, message)
        send({"command": "log", "msg": f"saw {value}", "level": 3})
        send({"command": "error", "msg": "only a word"})
        send({"command": "metrics", "name": "seen", "params": 2})
        if kind != "keeps":
            send({"command": "ack", "id": message["id"]})


if __name__ == "__main__":
    main(sys.argv[1])
