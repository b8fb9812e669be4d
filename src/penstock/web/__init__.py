"""The console: a page that shows jobs, made of files that the server sends as they are."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "static"
"""Where the files are."""
