"""What other processes do to a storage in tests."""

from __future__ import annotations

ADD = """
import sys
from penstock.storage import Conflict, storage_at
storage, done = storage_at(sys.argv[1]), 0
while done < int(sys.argv[2]):
    content, version = storage.read_versioned("count")
    try:
        storage.compare_and_swap("count", version, str(int(content) + 1).encode())
        done += 1
        print("added", flush=True)
    except Conflict:
        print("conflict", flush=True)
        if len(sys.argv) > 3: break
"""
"""Adds to a counter by compare and swap: at an address, so many times; with a third word it ends at the first conflict."""
