"""Savepoints and changed flows, as far as files go: no JVM. What Spark makes of them is in test_savepoint_live.py."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import CheckpointError, PenstockError, StateError
from penstock.graph.logic.topology.acks import AckReport
from penstock.graph.state.schema import StateField, StateSchema
from penstock.kernels.topology.pending import AckLedger
from penstock.live.ack_log import AckLog
from penstock.location import Address
from penstock.spark.checkpoint.changes import FlowLayout
from penstock.spark.checkpoint.restart import Restart
from penstock.spark.checkpoint.savepoint import _Attempt, directory_of, find, load, saved, take
from penstock.spark.checkpoint.sparklog import SparkLog
from penstock.state.notes import put_note, read_note
from penstock.state.store import StateStore
from penstock.storage import Storage, copy_object, make_directory, mounted, names_under, open_storage
from tests.spark.checkpoints import SCHEMAS, WANTED, batch, begin, counts, is_there, put, remove, text, tree
from tests.storage.objects import ObjectStorage

DYING: tuple[tuple[object, str], ...] = (
    *((os, name) for name in ("link", "unlink", "rename", "replace", "rmdir")),
    *((ObjectStorage, name) for name in ("write", "put_if_absent", "compare_and_swap", "delete")),
)
BY_ID = StateSchema("count", "count", "values", (StateField("id", "int"),))


@pytest.fixture(params=["files", "objects"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Where checkpoints and savepoints are kept: files of this machine, or a store that has objects only."""
    if request.param == "files":
        yield tmp_path
        return
    with mounted(tmp_path / "bucket", ObjectStorage()) as there:
        yield there
    assert not there.exists(), "nothing was written beside the storage"


@pytest.fixture
def folder(root: Path) -> Path:
    """A flow that has run three batches and begun a fourth."""
    made = begin(root / "shop")
    for number, words in enumerate(({"a": 1}, {"a": 1, "b": 2}, {"c": 3})):
        batch(made, number, words)
    batch(made, 3, {"a": 100}, through=False)
    return made


def restored(folder: Path, name: str, wanted: FlowLayout = WANTED, drop: tuple[str, ...] = ()) -> Path:
    """A new folder that begins from a savepoint."""
    new = folder.parent / "new"
    make_directory(new)
    start = Restart(new, wanted, directory_of(name, folder), drop)
    start.check()
    start.settle()
    return new


def test_a_savepoint_holds_the_last_batch_that_is_through_and_the_one_that_has_begun(folder: Path) -> None:
    made = take(folder, directory_of("one", folder))
    assert made.version == 2
    assert counts(made.folder, 2) == {"a": 2, "b": 2, "c": 3}
    assert SparkLog(made.folder / "spark").committed() == [2]
    assert SparkLog(made.folder / "spark").begun() == 3
    assert [s.folder for s in saved(folder)] == [made.folder]
    made.verify()


def test_an_older_version_can_be_saved_and_has_not_read_what_came_later(folder: Path) -> None:
    made = take(folder, directory_of("old", folder), 0)
    assert counts(made.folder, 0) == {"a": 1}
    assert SparkLog(made.folder / "spark").begun() == 1
    assert open_storage(made.folder).children("spark/sources/0/") == ["0", "1"]


def test_what_is_saved_stays_although_the_flow_runs_on(folder: Path) -> None:
    made = take(folder, directory_of("one", folder))
    before = tree(made.folder)
    for number in range(3, 9):
        batch(folder, number, {"a": 1}, keep=2)
    assert tree(made.folder) == before
    remove(folder)
    made.verify()
    assert counts(made.folder, 2) == {"a": 2, "b": 2, "c": 3}


def test_a_flow_starts_from_a_savepoint_in_another_folder(folder: Path) -> None:
    """Files of the checkpoint itself are known to Spark by their whole path, which is that of the new folder now."""
    take(folder, directory_of("one", folder))
    new = restored(folder, "one")
    assert counts(new, 2) == {"a": 2, "b": 2, "c": 3}
    entry = json.loads(text(new / "spark/sources/1/2").split("\n")[1])
    assert entry["path"] == f"file://{new}/sources/two/feed/feed-000000002.parquet"
    assert is_there(new / "sources/two/feed/feed-000000003.parquet")
    assert json.loads(text(new / "flow.json"))["lineage"] == json.loads(text(folder / "flow.json"))["lineage"]
    assert "shop/" in text(folder / "spark/sources/1/2"), "the original is untouched"


def test_a_restart_with_the_same_savepoint_goes_on(folder: Path) -> None:
    take(folder, directory_of("one", folder))
    new = restored(folder, "one")
    batch(new, 3, {"z": 1})
    restored(folder, "one")
    assert counts(new, 3)["z"] == 1


def test_another_savepoint_does_not_silently_replace_what_is_there(folder: Path) -> None:
    take(folder, directory_of("one", folder))
    take(folder, directory_of("two", folder))
    restored(folder, "one")
    with pytest.raises(CheckpointError, match=r"did not begin from the savepoint.*--fresh"):
        restored(folder, "two")


def test_sources_are_matched_by_name_wherever_they_stand(folder: Path) -> None:
    take(folder, directory_of("one", folder))
    new = restored(folder, "one", replace(WANTED, sources=(("new", "files"), ("two", "spout"), ("one", "files"))))
    log = SparkLog(new / "spark")
    assert log.offsets(2) == ["-", '{"logOffset":2}', '{"logOffset":2}']
    assert log.offsets(3) == ["-", '{"logOffset":3}', '{"logOffset":3}']
    assert "/sources/two/" in text(new / "spark/sources/1/2")
    assert "/sources/one/" in text(new / "spark/sources/2/2")
    assert not is_there(new / "spark/sources/0")


@pytest.mark.parametrize(
    "wanted, says",
    [
        (
            replace(WANTED, schemas={"rows": SCHEMAS["rows"]}),
            "step 'count' is gone, and keeps state .*--drop-state count",
        ),
        (replace(WANTED, schemas={"counts": SCHEMAS["count"], "rows": SCHEMAS["rows"]}), "--rename-state count=counts"),
        (
            replace(WANTED, schemas=SCHEMAS | {"count": BY_ID}),
            "keeps count by word string; now it wants count by id int: its key was word string, and is now id int",
        ),
        (replace(WANTED, sources=(("one", "files"),)), "source 'two' .spout. is gone.*--drop-state two"),
        (
            replace(WANTED, sources=(("one", "kafka"), ("two", "spout"))),
            "source 'one' was of the kind files.*now kafka",
        ),
        (replace(WANTED, flow="other"), "belongs to the flow 'shop', not to 'other'"),
    ],
)
def test_what_would_be_lost_is_refused_and_named(folder: Path, wanted: FlowLayout, says: str) -> None:
    """By a start from a savepoint and by an ordinary restart alike, and nothing has changed then."""
    take(folder, directory_of("one", folder))
    before = tree(folder)
    for start in (Restart(folder.parent / "new", wanted, directory_of("one", folder)), Restart(folder, wanted)):
        with pytest.raises(PenstockError, match=f"(?s){says}"):
            start.check()
        with pytest.raises(PenstockError, match=f"(?s){says}"):
            start.settle()
    assert tree(folder) == before


RENAMED = replace(WANTED, schemas={"totals": SCHEMAS["count"], "rows": SCHEMAS["rows"]})


def test_a_renamed_step_keeps_its_state(folder: Path) -> None:
    before = counts(folder, 2)
    with pytest.raises(StateError, match="--rename-state count=totals"):
        Restart(folder, RENAMED).check()
    start = Restart(folder, RENAMED, rename={"count": "totals"})
    start.check()
    start.settle()
    store = StateStore(open_storage(folder / "state"))
    assert set(store.read(2)) == set(store.kept_schemas(2)) == {"totals", "rows"}
    assert counts(folder, 2, "totals") == before
    start.check()
    start.settle()
    Restart(folder, RENAMED).settle()


def test_a_renamed_step_keeps_its_state_from_a_savepoint_and_with_moved_sources(folder: Path) -> None:
    before = counts(folder, 2)
    take(folder, directory_of("x", folder))
    wanted = replace(RENAMED, sources=(("new", "files"), *WANTED.sources))
    new = folder.parent / "new"
    make_directory(new)
    start = Restart(new, wanted, directory_of("x", folder), rename={"count": "totals"})
    start.check()
    start.settle()
    assert counts(new, 2, "totals") == before
    assert set(StateStore(open_storage(folder / "state")).read(2)) == {"count", "rows"}, (
        "the folder of the savepoint's flow is left alone"
    )


def test_all_stores_of_a_renamed_step_go_with_it(root: Path) -> None:
    wanted = FlowLayout("shop", WANTED.sources, {"count": SCHEMAS["count"], "count@last": SCHEMAS["count"]})
    made = begin(root / "shop", wanted)
    batch(made, 0, {"a": 1})
    after = replace(wanted, schemas={"n": SCHEMAS["count"], "n@last": SCHEMAS["count"]})
    Restart(made, after, rename={"count": "n"}).settle()
    assert set(StateStore(open_storage(made / "state")).read(0)) == {"n", "n@last"}


@pytest.mark.parametrize(
    "rename, says",
    [
        ({"cuont": "totals"}, "keeps no state of a step 'cuont'; did you mean 'count'"),
        ({"count": "total"}, "the flow has no step 'total' that keeps state; did you mean 'totals'"),
        ({"count": "rows"}, "has state of step 'rows' already"),
        ({"rows": "totals"}, "step 'rows' is still in the flow"),
    ],
)
def test_a_rename_that_cannot_be_is_refused_and_changes_nothing(
    folder: Path, rename: dict[str, str], says: str
) -> None:
    before = tree(folder)
    with pytest.raises(StateError, match=re.escape(says)):
        Restart(folder, RENAMED, rename=rename).check()
    assert tree(folder) == before


def test_a_renamed_step_of_another_form_is_refused(folder: Path) -> None:
    wanted = replace(RENAMED, schemas={"totals": BY_ID, "rows": SCHEMAS["rows"]})
    with pytest.raises(StateError, match="step 'totals' keeps count by word string; now it wants count by id int"):
        Restart(folder, wanted, rename={"count": "totals"}).check()


def test_what_is_given_up_goes_and_the_rest_stays(folder: Path) -> None:
    wanted = replace(WANTED, schemas=SCHEMAS | {"count": BY_ID})
    start = Restart(folder, wanted, drop=("count",))
    start.check()
    start.settle()
    assert set(StateStore(open_storage(folder / "state")).read(2)) == {"rows"}
    start.settle()
    Restart(folder, wanted).settle()


def test_giving_up_what_fits_gives_up_nothing(folder: Path) -> None:
    """So that a supervisor which starts a flow again with the same words does not empty it."""
    Restart(folder, WANTED, drop=("count", "rows")).settle()
    assert counts(folder, 2) == {"a": 2, "b": 2, "c": 3}


def test_an_ordinary_restart_may_move_and_gain_sources(folder: Path) -> None:
    wanted = replace(WANTED, sources=(("two", "spout"), ("one", "files"), ("new", "files")))
    put(folder / "letters" / "1", b"")
    Restart(folder, wanted).settle()
    assert is_there(folder / "letters" / "1"), "what is no part of a savepoint stays"
    assert SparkLog(folder / "spark").offsets(2) == ['{"logOffset":2}', '{"logOffset":2}', "-"]
    assert "/sources/two/" in text(folder / "spark/sources/0/2")
    assert counts(folder, 2) == {"a": 2, "b": 2, "c": 3}
    assert not is_there(folder / "changing")
    before = tree(folder)
    Restart(folder, wanted).settle()
    assert tree(folder) == before


@pytest.mark.parametrize("deaths", [1, 4, 9, 16, 25, 40, 60, 90, 130, 180])
def test_a_change_that_dies_in_the_middle_is_done_again(
    folder: Path, deaths: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies at the n-th file or object it links, removes or writes while the folder is rearranged."""
    wanted = replace(WANTED, sources=(("two", "spout"), ("one", "files"), ("new", "files")))
    left = [deaths]

    def dying(action: object) -> object:
        def act(*args: object, **more: object) -> object:
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
            return action(*args, **more)  # type: ignore[operator]

        return act

    with monkeypatch.context() as patched:
        for where, name in DYING:
            patched.setattr(where, name, dying(getattr(where, name)))
        with contextlib.suppress(KeyboardInterrupt):
            Restart(folder, wanted).settle()
    start = Restart(folder, wanted)
    start.check()
    start.settle()
    assert SparkLog(folder / "spark").offsets(2) == ['{"logOffset":2}', '{"logOffset":2}', "-"]
    assert "/sources/two/" in text(folder / "spark/sources/0/2")
    assert counts(folder, 2) == {"a": 2, "b": 2, "c": 3}


def test_a_flow_without_state_may_gain_a_first_keyed_step(root: Path) -> None:
    plain = replace(WANTED, schemas={})
    folder = begin(root / "shop", plain)
    for number in range(3):
        batch(folder, number, {})
    Restart(folder, WANTED).settle()
    assert counts(folder, 2) == {}
    batch(folder, 3, {"a": 1})
    assert counts(folder, 3) == {"a": 1}


def test_state_that_is_missing_is_not_taken_for_a_flow_without_state(folder: Path) -> None:
    remove(folder / "state")
    with pytest.raises(StateError, match="state version 2 is not there"):
        Restart(folder, WANTED).check()


@pytest.mark.parametrize("name", ["state/versions/2.json", "spark/offsets/2", "sources/two/stand-000000003.pickle"])
@pytest.mark.parametrize("damage", ["flip", "cut", "gone"])
def test_a_damaged_savepoint_is_refused_before_anything_starts(folder: Path, name: str, damage: str) -> None:
    made = take(folder, directory_of("one", folder), copy=True)
    path = made.folder / name
    data = open_storage(made.folder).read(name)
    remove(path)
    if damage != "gone":
        put(path, data[:-1] if damage == "cut" else data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(CheckpointError, match=f"{name} is missing or damaged"):
        Restart(folder.parent / "new", WANTED, made.folder).check()


def test_a_wrong_name_says_which_there_are(folder: Path) -> None:
    take(folder, directory_of("before", folder))
    with pytest.raises(CheckpointError, match="did you mean 'before'"):
        load(directory_of("befor", folder))
    with pytest.raises(CheckpointError, match="is there already"):
        take(folder, directory_of("before", folder))
    with pytest.raises(CheckpointError, match="there are 0 to 2"):
        take(folder, directory_of("x", folder), 9)


def test_a_name_is_found_from_a_run_in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = begin(tmp_path / "shop")
    batch(folder, 0, {"a": 1})
    made = take(folder, directory_of("before", folder)).folder
    assert find("before", folder.parent / "shop-2", "shop") == made
    monkeypatch.chdir(folder.parent)
    folder.parent.joinpath("savepoints").rename(folder.parent / ".penstock")
    (folder.parent / ".penstock" / "savepoints").mkdir()
    (folder.parent / ".penstock" / "shop").rename(folder.parent / ".penstock" / "savepoints" / "shop")
    assert (
        find("before", Path("/elsewhere/x"), "shop") == folder.parent / ".penstock" / "savepoints" / "shop" / "before"
    )
    assert find("some/path", folder, "shop") == Path("some/path")


def test_a_flow_that_has_not_finished_a_batch_cannot_be_saved(root: Path) -> None:
    with pytest.raises(CheckpointError, match="has not finished a batch"):
        take(begin(root / "shop"), root / "sp")
    with pytest.raises(CheckpointError, match="is no checkpoint folder"):
        take(root / "nowhere", root / "sp")
    assert not is_there(root / "sp"), "an attempt that failed leaves nothing"


def unfinished(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Address:
    """A savepoint whose maker died before its list was finished."""
    target = directory_of("died", folder)
    with monkeypatch.context() as patched:
        patched.setattr(_Attempt, "finish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        patched.setattr(_Attempt, "give_up", lambda _: None)
        with pytest.raises(KeyboardInterrupt):
            take(folder, target)
    assert is_there(target / "state")
    return target


def test_an_attempt_that_died_is_no_savepoint_and_is_taken_over(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = unfinished(folder, monkeypatch)
    assert saved(folder) == []
    with pytest.raises(CheckpointError, match="is no savepoint: it is being made, or whoever made it has died"):
        load(target)
    batch(folder, 3, {"a": 1})
    take(folder, target)
    load(target).verify()
    assert load(target).version == 3
    assert set(tree(target)) == {*load(target).files, "savepoint.json"}, "what the dead attempt left is gone"


def test_of_two_that_make_the_same_savepoint_one_does(folder: Path) -> None:
    target = directory_of("both", folder)
    first = _Attempt.begin(target)
    made = take(folder, target)
    with pytest.raises(CheckpointError, match="was replaced by another meanwhile"):
        first.finish({"files": {}})
    first.give_up()
    made.verify()
    assert load(target) == made


def test_the_number_of_key_groups_is_chosen_once_and_anew_from_a_savepoint(folder: Path) -> None:
    """A run that names none goes on with the one that is kept; another one is refused, with the way to it."""
    more = replace(WANTED, key_groups=4096)
    for start in (Restart(folder, more).check, Restart(folder, more).settle):
        with pytest.raises(CheckpointError, match=r"has 128 key groups.*got 4,096.*take a savepoint"):
            start()
    Restart(folder, replace(WANTED, key_groups=128)).check()
    take(folder, directory_of("one", folder))
    new = restored(folder, "one", more)
    assert json.loads(text(new / "flow.json"))["key_groups"] == 4096
    Restart(new, WANTED).settle()
    Restart(new, more).settle()
    assert json.loads(text(new / "flow.json"))["key_groups"] == 4096
    with pytest.raises(CheckpointError, match=r"has 4,096 key groups.*got 128"):
        Restart(new, replace(WANTED, key_groups=128)).check()
    assert counts(new, 2) == {"a": 2, "b": 2, "c": 3}


def test_messages_that_are_held_go_along(folder: Path) -> None:
    log = AckLog(open_storage(folder / "acks"))
    for number in range(3):
        log.stage(number, number - 1, AckReport({number: 1}))
        log.commit(number)
    log.stage(3, 2, AckReport(failed={0}))
    take(folder, directory_of("one", folder))
    take(folder, directory_of("old", folder), 1)
    for name, held in (("one", {0: 1, 1: 1, 2: 1}), ("old", {0: 1, 1: 1})):
        new = restored(folder, name)
        kept = AckLog(open_storage(new / "acks"))
        kept.load(2)
        assert kept.ledger == AckLedger(held)
        remove(new)


def test_messages_of_what_stood_there_before_do_not_mix_with_those_of_a_savepoint(folder: Path) -> None:
    take(folder, directory_of("one", folder))
    new = folder.parent / "new"
    make_directory(new)
    put(new / "acks" / "acks-000000001.json", b'{"open": [[9, 1]], "failed": []}')
    restored(folder, "one")
    assert not is_there(new / "acks")


def test_a_savepoint_of_a_spout_that_goes_on_meanwhile_begins_where_it_stood(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While four files are copied the spout writes another, and keeps where it stood at the last three."""
    made = begin(root / "shop")
    for number in range(12):
        batch(made, number, {"a": 1})
    stand = made / "sources" / "two"
    for each in (stand, made / "sources" / "one"):
        open_storage(each).delete(*(f"stand-{n:09d}.pickle" for n in range(9)))
    calls = iter(range(1000))

    def copied(*args: Any, **more: Any) -> None:
        copy_object(*args, **more)
        number, is_next = divmod(next(calls), 4)
        if not is_next:
            put(stand / "feed" / f"feed-{12 + number:09d}.parquet", b"tuples")
            put(stand / f"stand-{12 + number:09d}.pickle", b"stand")
            open_storage(stand).delete(f"stand-{9 + number:09d}.pickle")

    monkeypatch.setattr("penstock.spark.checkpoint.savepoint.copy_object", copied)
    for name in ("one", "two"):
        take(made, directory_of(name, made)).verify()


def test_what_acks_have_changed_since_the_newest_tuples_is_there_or_the_savepoint_is_taken_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The spout drops messages when it has written that it did: a savepoint with neither could not be started."""
    stand = folder / "sources" / "two"
    put(stand / "ids-000000003.pickle", b"messages")
    asked: list[str] = []

    def listed(storage: Storage, prefix: str) -> list[str]:
        found = names_under(storage, prefix)
        if prefix == "sources/" and prefix not in asked:
            put(stand / "settled-000000003.pickle", b"acked")
            open_storage(stand).delete("ids-000000003.pickle")
            found.remove("sources/two/ids-000000003.pickle")
        asked.append(prefix)
        return found

    monkeypatch.setattr("penstock.spark.checkpoint.savepoint.names_under", listed)
    made = take(folder, directory_of("one", folder))
    assert "sources/two/settled-000000003.pickle" in made.files


def test_a_batch_that_runs_again_from_a_savepoint_is_not_taken_for_that_of_a_later_driver(folder: Path) -> None:
    """Drivers of another URL count their epochs anew."""
    path = StateStore.manifest(3)
    state = open_storage(folder / "state")
    put_note(state, path, read_note(state, path) | {"epoch": 7})
    take(folder, directory_of("one", folder))
    new = restored(folder, "one")
    store = StateStore(open_storage(new / "state"), run="n", schemas=SCHEMAS, epoch=1)
    store.begin(3, {}, 2)
    store.publish(3)
    assert read_note(store.storage, path)["epoch"] == 1
    assert read_note(state, path)["epoch"] == 7
