"""A bolt in plain Python, without any library: reads in large pieces, emits each tuple anchored, and acks it."""

from __future__ import annotations

import json
import os


def main() -> None:
    rest, end = b"", b"\nend\n"
    first = True
    while data := os.read(0, 1 << 20):
        *messages, rest = (rest + data).split(end)
        out = []
        for message in json.loads(b"[" + b",".join(messages) + b"]") if messages else ():
            if first:
                first = False
                (open(f"{message['pidDir']}/{os.getpid()}", "w")).close()  # noqa: PTH123
                out.append(f'{{"pid":{os.getpid()}}}\nend\n')
            elif message["stream"] == "__heartbeat":
                out.append('{"command":"sync"}\nend\n')
            else:
                number = message["id"]
                out.append(
                    f'{{"command":"emit","anchors":["{number}"],"tuple":{json.dumps(message["tuple"])},"need_task_ids":false}}\nend\n'
                )
                out.append(f'{{"command":"ack","id":"{number}"}}\nend\n')
        view = memoryview("".join(out).encode())
        while view:
            view = view[os.write(1, view) :]


if __name__ == "__main__":
    main()
