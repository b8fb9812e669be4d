"""A bolt that is a program: it speaks the multilang protocol over its standard input and output, without any library."""

import json
import os
import pathlib
import sys


def read():
    lines = []
    while (line := sys.stdin.readline()) != "end\n":
        if not line:
            sys.exit()
        lines.append(line)
    return json.loads("".join(lines))


def send(message):
    print(json.dumps(message), "end", sep="\n", flush=True)


setup = read()
pathlib.Path(setup["pidDir"], str(os.getpid())).touch()
send({"pid": os.getpid()})
while True:
    tup = read()
    if tup["stream"] == "__heartbeat":
        send({"command": "sync"})
        continue
    for word in tup["tuple"][0].split():
        send({"command": "emit", "anchors": [tup["id"]], "tuple": [word], "need_task_ids": False})
    send({"command": "ack", "id": tup["id"]})
