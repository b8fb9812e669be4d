"""Parsers of bytes that others may have written never fail in words that are not ours, never hang and never end the process.

`python -m tests.fuzz.atheris_run TARGET SECONDS` looks further, guided by coverage, where `atheris` is installed.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.errors import PenstockError
from tests.breadth import some_now
from tests.fuzz.targets import REFUSED, TARGETS, run, seeds

LONGEST = 20.0
"""Seconds that no input of some hundred bytes may take."""


def changed(content: bytes, chance: random.Random) -> bytes:
    """An input with some bytes changed, cut out, doubled or put in."""
    made = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(made) + 1)
        until = min(len(made), at + chance.randint(0, 8))
        new = (b"", bytes(made[at:until]) * 2, chance.randbytes(chance.randint(1, 4)), chance.choice(TOKENS))
        made[at:until] = chance.choice(new)
    return bytes(made)


TOKENS = (
    b"\0",
    b"\xff\xff\xff\xff",
    b"-1",
    b"9" * 30,
    b"1e999",
    b"null",
    b"[" * 50,
    b"{}",
    b"'",
    b'"',
    b"\r\n",
    b"\xed\xa0\x80",
    b"&a *a",
    b"!!python/object:os.system",
)


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_right_is_read(name: str) -> None:
    for seed in seeds(name):
        if seed:
            assert TARGETS[name](seed) is not None or name == "configuration"


@pytest.mark.parametrize("many", some_now((60, 20_000), 1))
@pytest.mark.parametrize("name", TARGETS)
def test_changes_of_what_is_right_are_read_or_refused(name: str, many: int) -> None:
    chance = random.Random(f"{name} {many}")
    for seed in seeds(name):
        for _ in range(many):
            content = changed(seed, chance)
            began = time.process_time()
            try:
                run(name, content)
            except Exception as error:
                raise AssertionError(f"{name} cannot read {content!r}") from error
            assert time.process_time() - began < LONGEST, content


@pytest.mark.parametrize("many", some_now((25, 5_000), 1))
@pytest.mark.parametrize("name", TARGETS)
def test_any_bytes_are_read_or_refused(name: str, many: int) -> None:
    @settings(max_examples=many, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.binary(max_size=300) | st.text(max_size=100).map(lambda text: text.encode(errors="surrogatepass")))
    def check(content: bytes) -> None:
        run(name, content)

    check()


def test_the_harness_sees_what_may_not_be_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(content: bytes) -> object:
        raise IndexError

    monkeypatch.setitem(TARGETS, "job", broken)
    with pytest.raises(IndexError):
        run("job", b"x")
    assert not issubclass(IndexError, REFUSED)


@pytest.mark.parametrize(
    "payload",
    [
        "!!python/object/apply:os.system ['touch {canary}']",
        "!!python/object/new:subprocess.check_output [['touch', '{canary}']]",
        "!!python/name:os.system",
        "!!python/module:os",
    ],
)
def test_yaml_that_makes_objects_makes_none(tmp_path: Path, payload: str) -> None:
    canary = tmp_path / "canary"
    rows = f"flow: hello\nsteps:\n  - {{name: words, source: {payload.format(canary=canary)}}}\n"
    for text in (rows, payload.format(canary=canary)):
        with pytest.raises(PenstockError):
            TARGETS["flow_file"](text.encode())
    assert not canary.exists()
