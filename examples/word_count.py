"""Counts the words of text files; new files that are put into the folder are counted too.

penstock run examples/word_count.py          live, until Ctrl-C
penstock run --once examples/word_count.py   what is new since the last time
penstock run --batch examples/word_count.py  all of it, once
python examples/word_count.py
"""

from pathlib import Path

import penstock as ps

DATA = Path(__file__).parent / "data"

flow = ps.Flow("word-count")
lines = flow.source("lines", ps.files(DATA / "*.txt", format="text"))
words = lines.flat_map("split", lambda row: row.value.lower().split(), schema="word string")
counts = words.key_by("word").count("count")
counts.sink("out", ps.console())

if __name__ == "__main__":
    ps.run(flow, batch=True)
