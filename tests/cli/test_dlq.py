"""`penstock dlq` over dead letters on disk; no JVM."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock.graph.schema import schema_of
from penstock.kernels.errors.dead_letters import dead_letter_rows
from penstock.kernels.errors.guard import DeadLetter
from penstock.kernels.errors.payload import payload_of, raw_payload
from penstock.live.dead_letters.replay import RAW, Replays
from penstock.live.dead_letters.store import DeadLetterStore
from tests.command_line import make_app

runner = CliRunner()
TEXT = schema_of("text string, n bigint")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a bounded run leaves: letters of a step and of a source, and no note that a live flow has begun."""
    values = [
        DeadLetter("number", "ValueError: no number", "the traceback", "Row(text='x')", payload_of(("x", 1), TEXT))
    ]
    values += [DeadLetter("source", "not JSON", "", "{oops", raw_payload(b"{oops", {}, TEXT))]
    DeadLetterStore(tmp_path / "run").stage(dead_letter_rows(values, "parse", "bounded", 0, 0), 0).commit()
    DeadLetterStore(tmp_path / "run").hand_over(tmp_path / "kept" / "dead-letters")
    return tmp_path / "kept"


def dlq(*words: Any, code: int = 0, stdin: str = "") -> str:
    done = runner.invoke(make_app(), ["dlq", *map(str, words)], env={"COLUMNS": "300"}, input=stdin)
    assert done.exit_code == code, done.output
    return done.output


def listed(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(dlq("list", folder, "--json"))
    return found


def test_letters_of_a_bounded_run_are_listed_shown_and_sent_back(folder: Path) -> None:
    letter, other = listed(folder)
    assert (letter["step"], letter["record"], letter["replayed"]) == ("number", "Row(text='x')", False)
    shown = dlq("show", folder, letter["id"])
    assert "the traceback" in shown
    assert '{"schema": "text string, n bigint", "record": {"text": "x", "n": 1}}' in shown
    assert "2 dead letters will go back" in dlq("replay", folder)
    assert [m["waits"] for m in listed(folder)] == [True, True]
    assert dlq("list", folder).count(" waits") == 2
    assert "0 dead letters will go back" in dlq("replay", folder)
    Replays(folder / "replay").claim(0)
    assert [m["waits"] for m in listed(folder)] == [False, False]
    assert [m["replayed"] for m in listed(folder)] == [True, True]
    assert "0 dead letters will go back" in dlq("replay", folder)
    assert "1 dead letter will go back" in dlq("replay", folder, other["id"], "--again")


def test_a_terminal_obeys_no_record(tmp_path: Path) -> None:
    """A record that cannot be read is what a stranger has sent: it may hold what renames a window, or writes to its clipboard."""
    hostile = "\x1b]52;c;eA==\x07\u3000{\n"
    value = DeadLetter(
        "source", f"not JSON: {hostile}", f"line\n{hostile}", hostile, raw_payload(hostile.encode(), {}, TEXT)
    )
    DeadLetterStore(tmp_path / "run").stage(dead_letter_rows([value], "parse", "bounded", 0, 0), 0).commit()
    DeadLetterStore(tmp_path / "run").hand_over(tmp_path / "kept" / "dead-letters")
    shown = [dlq("list", tmp_path / "kept"), dlq("show", tmp_path / "kept", listed(tmp_path / "kept")[0]["id"])]
    assert all(r"\x1b]52;c;eA==\x07" + "\u3000{" in text for text in shown)
    assert not any(c in text for text in shown for c in "\x1b\x07")


def test_a_letter_is_edited_field_by_field_and_replayed_changed(folder: Path) -> None:
    letter = listed(folder)[0]["id"]
    assert "changed" in dlq("edit", folder, letter, "--set", "text=7", "--set", "n=2")
    dlq("replay", folder, letter)
    assert Replays(folder / "replay").claim(0) == {("number", 0): [{"text": "7", "n": 2}]}
    assert listed(folder)[0]["edited"]


def test_the_list_shows_an_edited_record_as_it_will_go_back(folder: Path) -> None:
    first, second = (m["id"] for m in listed(folder))
    dlq("edit", folder, first, "--set", "text=7")
    dlq("edit", folder, second, "--raw", '{"text": "y"}')
    shown = dlq("list", folder)
    assert 'edited: {"text": "7", "n": 1}' in shown
    assert 'edited: {"text": "y"}' in shown
    assert "Row(text='x')" not in shown
    assert "{oops" not in shown
    detail = dlq("show", folder, first)
    assert "record    Row(text='x')" in detail
    assert "edited    20" in detail


def test_a_field_of_a_record_that_could_not_be_read_cannot_be_set_and_the_message_says_what_can(folder: Path) -> None:
    letter = listed(folder)[1]["id"]
    said = dlq("edit", folder, letter, "--set", "text=y", code=2)
    assert "--set: the record could not be read, so it has no field 'text'" in said
    assert "--raw TEXT" in said
    assert "edited" not in listed(folder)[1]


def test_a_letter_that_waits_goes_back_as_it_was_edited_or_not_at_all(folder: Path) -> None:
    first, second = (m["id"] for m in listed(folder))
    dlq("replay", folder)
    dlq("edit", folder, first, "--set", "text=new")
    dlq("drop", folder, second)
    assert "1 dead letter will go back" in dlq("replay", folder)
    assert Replays(folder / "replay").claim(0) == {("number", 0): [{"text": "new", "n": 1}]}


def test_an_unreadable_record_is_mended_and_replayed(folder: Path) -> None:
    letter = listed(folder)[1]["id"]
    dlq("edit", folder, letter, "--raw", '{"text": "y"}')
    dlq("replay", folder, letter)
    assert Replays(folder / "replay").claim(3) == {("source", RAW): [{"value": b'{"text": "y"}'}]}


def test_a_whole_payload_may_come_from_a_file(folder: Path) -> None:
    letter = listed(folder)[0]["id"]
    dlq("edit", folder, letter, "--file", "-", stdin='{"schema": "n int", "record": {"n": 5}}')
    assert listed(folder)[0]["payload"] == {"schema": "n int", "record": {"n": 5}}


def test_the_editor_opens_when_nothing_else_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def changed(text: str, **_: Any) -> str:
        seen.append(text)
        return text.replace('"x"', '"ten"')

    monkeypatch.setattr("click.edit", changed)
    dlq("edit", folder, listed(folder)[0]["id"])
    assert '"text": "x"' in seen[0]
    assert listed(folder)[0]["payload"]["record"]["text"] == "ten"


@pytest.mark.parametrize(
    "words, says",
    [
        (["--set", "n=seven"], "field 'n': bigint needs a whole number, got 'seven'"),
        (["--set", "m=5"], "the schema has no field 'm'; it has text, n"),
        (["--set", "n"], "--set takes FIELD=VALUE"),
        (["--raw", "x"], "use --set"),
        (["--file", "gone.json"], "--file gone.json: No such file"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused_and_changes_nothing(folder: Path, words: list[str], says: str) -> None:
    before = listed(folder)
    said = dlq("edit", folder, before[0]["id"], *words, code=2)
    assert says in said
    assert listed(folder) == before


def test_letters_are_dropped_for_good(folder: Path) -> None:
    assert "say which dead letters" in dlq("drop", folder, code=2)
    assert "dropped: 1 dead letter" in dlq("drop", folder, listed(folder)[0]["id"])
    assert [m["step"] for m in listed(folder)] == ["source"]
    assert "dropped: 1 dead letter" in dlq("drop", folder, "--step", "source")
    assert listed(folder) == []


def test_letters_are_exported_as_lines(folder: Path, tmp_path: Path) -> None:
    printed = [json.loads(line) for line in dlq("export", folder).splitlines()]
    assert [m["step"] for m in printed] == ["number", "source"]
    assert "exported: 1 dead letter" in dlq("export", folder, "--step", "source", "-o", tmp_path / "x.jsonl")
    assert json.loads((tmp_path / "x.jsonl").read_text())["payload"] == {"raw": "{oops"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["list", "{}", "--step", "numbr"], "did you mean 'number'"),
        *((([verb, "{}", "run-1"]), "no dead letter 'run-1'") for verb in ("show", "replay", "drop", "export", "edit")),
    ],
)
def test_a_wrong_name_is_wrong_usage_and_the_nearest_is_named(folder: Path, given: list[str], said: str) -> None:
    out = dlq(*(word.format(folder) for word in given), code=2)
    assert said in out
    assert "Wrong usage" in out
    assert "flow cannot run" not in out


def test_a_directory_without_letters_and_flow_is_told(tmp_path: Path) -> None:
    out = dlq("list", tmp_path, code=1)
    assert "is no checkpoint folder" in out
    assert "The flow stopped" not in out


def test_looking_runs_nothing_that_stands_in_a_letter(folder: Path) -> None:
    """A payload that is no JSON object of ours is shown as it is, and refused when it is to be replayed."""
    path = next((folder / "dead-letters").glob("*.jsonl"))
    letter = json.loads(path.read_text().splitlines()[0]) | {"payload": "gASVHQAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOU"}
    path.write_text(json.dumps(letter) + "\n")
    assert "gASV" in dlq("show", folder, letter["id"])
    assert dlq("list", folder)
    assert "not JSON" in dlq("edit", folder, letter["id"], "--raw", "x", code=2)


@pytest.mark.parametrize("damage", ["cut", "other", "deep"])
def test_a_damaged_file_is_named_with_its_line(folder: Path, damage: str) -> None:
    (kept,) = (folder / "dead-letters").glob("*.jsonl")
    whole = kept.read_text()
    bad = {"cut": whole[:-9], "other": whole + '{"id": "x"}\n', "deep": whole + "[" * 100_000}[damage]
    kept.write_text(bad)
    line = len(bad.splitlines())
    for command in (["list"], ["export"], ["drop", "--all"], ["replay"]):
        said = dlq(command[0], folder, *command[1:], code=1)
        assert f"{kept}, line {line}, is damaged" in said
        assert "Unexpected" not in said
    assert kept.read_text() == bad


def test_a_damaged_request_for_a_replay_is_named(folder: Path) -> None:
    dlq("replay", folder)
    (kept,) = (folder / "replay" / "pending").glob("*.json")
    kept.write_text("[[")
    assert f"{kept} is damaged" in dlq("replay", folder, code=1)
