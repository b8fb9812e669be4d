"""Word counts in Trident: a running count of words, and a function that asks how often the words of a sentence were seen.

penstock run examples/trident_word_count.py
penstock drpc call words "cat dog the man" --log .penstock/log
"""

from __future__ import annotations

import penstock as ps
from penstock import trident

SENTENCES = [
    "the cow jumped over the moon",
    "the man went to the store and bought some candy",
    "four score and seven years ago",
    "how many apples can you eat",
]

flow = ps.TridentTopology("trident-word-count")
lines = flow.new_stream("sentences", ps.items(SENTENCES, "sentence string"))
words = lines.each("sentence", trident.Split, "word string", name="split")
counts = words.group_by("word").persistent_aggregate(None, (), trident.Count, "n bigint", name="counts")
counts.new_values_stream().sink("out", ps.console())

asked = flow.new_drpc_stream("words").each("args", trident.Split, "word string", name="ask")
known = asked.group_by("word").state_query(counts, "word", trident.MapGet, "n bigint").each("n", trident.FilterNull)
known.aggregate("n", trident.Sum, "sum bigint", name="sum")
