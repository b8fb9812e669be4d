"""Objects of an object store: S3 and what speaks as it does, Google Cloud Storage, Azure Blob Storage.

A put is whole or not at all, and the store checks its condition: that there is no object (`If-None-Match`), or that it is the one that was read
(`If-Match` with an entity tag, or a generation).

**A refusal may be of one's own write.** The answer to a put can be lost on its way, and the repetition then meets what the first attempt has written. So each
conditional put carries a token in the object's metadata, and after a refusal or an error the object is looked at: if it has the token, the put was done. A swap also
passes on the tokens of the writers before it, so that one whose object has been swapped again since finds its token too.
"""

from __future__ import annotations

import builtins
import json
import os
import re
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, GenericError, PreconditionError
from obstore.store import from_url

from penstock.storage.base import (
    Bytes,
    Conflict,
    Data,
    Entry,
    NotFound,
    StorageError,
    Version,
    check_name,
    joined,
)
from penstock.storage.patience import patiently, pauses
from penstock.storage.spool import PART, Spool, repeatable

if TYPE_CHECKING:
    from obstore import GetOptions, GetResult, ObjectMeta, PutMode, UpdateVersion
    from obstore.store import ClientConfig, RetryConfig, S3Config
    from obstore.store import ObjectStore as Client

T = TypeVar("T")

SENDERS = 4
"""How many parts of an object are under way at once; so many are in memory."""
PATIENCE = 60.0
"""How many seconds a request is repeated."""
REMEMBERED = 16
"""How many writers of a swapped object are known to it."""
SILENCE = timedelta(seconds=30)
"""How long a server may say nothing before the request is repeated."""
_WRITERS = "penstockwriters"  # Azure allows no hyphens
_STATUS = re.compile(r"status code: (\d{3})")
_AGAIN = ("408", "429")
_VARIABLES = ("AWS_", "AZURE_", "GOOGLE_")
_clients: dict[tuple[object, ...], Client] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class ObjectStore:
    """Objects of one bucket or container. Endpoint, region and credentials are those of the environment, on each machine its own.

    Attributes:
        url: The bucket or container, as `s3://bucket`.
        settings: Names and values of `obstore` that differ from the environment, such as `endpoint`; no secrets, they travel to workers.
    """

    url: str
    settings: tuple[tuple[str, str], ...] = ()

    def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes:
        """The bytes of an object from `begin`, at most `length` of them."""
        if length == 0:
            self.size(name)
            return b""
        if begin == 0 and length is None:
            return self._get(name, {}, lambda got: bytes(got.bytes()))
        wanted = (begin, begin + length) if length is not None else {"offset": begin}
        try:
            return self._get(name, {"range": wanted}, lambda got: bytes(got.bytes()))  # type: ignore[typeddict-item]
        except StorageError as error:
            if not isinstance(error, NotFound) and begin >= self.size(name):
                return b""  # a range that begins at the end of an object is refused
            raise

    def size(self, name: str) -> int:
        """How many bytes an object has."""
        return self._get(name, {"head": True}, lambda got: got.meta["size"])

    def modified(self, name: str) -> float:
        """When an object was written, in seconds since 1970 by the store's clock."""
        return self._get(name, {"head": True}, lambda got: got.meta["last_modified"].timestamp())

    def write(self, name: str, data: Data) -> None:
        """Writes an object as a whole; one of more than 8 MiB in parts, as they come."""
        with repeatable(data) as content:
            if not isinstance(content, Spool) and len(content) <= PART:
                self._ask(name, lambda: obstore.put(self._client, check_name(name), content, use_multipart=False))
            else:
                self._ask(name, lambda: self._upload(name, content))

    def put_if_absent(self, name: str, data: Data) -> bool:
        """Writes an object unless there is one of this name. Its content is sent as one, so it has to fit into memory."""
        check_name(name)
        with repeatable(data) as content:
            if not isinstance(content, Spool):
                return self._put(name, content, None) is not None
            return self._look(name) is None and self._put(name, b"".join(content.parts()), None) is not None

    def read_versioned(self, name: str) -> tuple[bytes, Version]:
        """An object and the version of what was read."""
        return self._get(name, {}, lambda got: (bytes(got.bytes()), _Tag.of(got).version_text))

    def compare_and_swap(self, name: str, expected: Version | None, data: Data) -> Version:
        """Replaces the content of an object if it is still the expected one."""
        tag = None if expected is None else _Tag.parsed(expected)
        put = None if expected is not None and tag is None else self._put(name, joined(data), tag)
        if put is None:
            raise Conflict(f"{name!r} was changed by another writer ({self.url})")
        return put.version_text

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """The objects whose names begin with a prefix, in order of their names."""
        above = prefix.rpartition("/")[0]
        found = self._ask(prefix, lambda: self._listed(check_name(above) if above else None))
        return iter(sorted(Entry(each["path"], each["size"]) for each in found if each["path"].startswith(prefix)))

    def children(self, prefix: str = "") -> builtins.list[str]:
        """The parts that follow a prefix in the names of objects, in order."""
        above = check_name(prefix.removesuffix("/")) if prefix else None
        found = self._ask(prefix, lambda: obstore.list_with_delimiter(self._client, above))
        paths = (*found["common_prefixes"], *(each["path"] for each in found["objects"]))
        return sorted({path.removeprefix(prefix).partition("/")[0] for path in paths if path.startswith(prefix)} - {""})

    def delete(self, *names: str) -> None:
        """Deletes objects, many with one request where the store can."""
        paths = [check_name(name) for name in names]
        if not paths:
            return
        try:
            self._ask(paths[0], lambda: obstore.delete(self._client, paths))
        except NotFound:
            for path in paths if len(paths) > 1 else ():
                self.delete(path)

    def copy(self, name: str, copied: str) -> None:
        """Has the store make a second object of the same content, in place of one that is there."""
        old, new = check_name(name), check_name(copied)
        self._ask(name, lambda: obstore.copy(self._client, old, new))

    def local_path(self, name: str) -> Path | None:
        """None: nothing here is a file."""
        check_name(name)
        return None

    @property
    def _client(self) -> Client:
        """The client of this process, for the environment as it is now."""
        variables = tuple(sorted((n, v) for n, v in os.environ.items() if n.startswith(_VARIABLES)))
        key = (self.url, os.getpid(), self.settings, variables)
        with _lock:
            if key not in _clients:
                _clients[key] = _opened(self.url, dict(self.settings))
            return _clients[key]

    def _listed(self, prefix: str | None) -> builtins.list[ObjectMeta]:
        return [each for page in obstore.list(self._client, prefix, chunk_size=1000) for each in page]

    def _get(self, name: str, options: GetOptions, take: Callable[[GetResult], T]) -> T:
        return self._ask(name, lambda: take(obstore.get(self._client, check_name(name), options=options)))

    def _ask(self, name: str, call: Callable[[], T]) -> T:
        try:
            return patiently(call, is_passing, PATIENCE)
        except FileNotFoundError as error:
            raise self._said(error, name) from None
        except BaseError as error:
            raise self._said(error, name) from None

    def _look(self, name: str) -> _Tag | None:
        """What identifies the object that is there now; None when there is none."""
        try:
            return self._get(name, {"head": True}, _Tag.of)
        except NotFound:
            return None

    def _put(self, name: str, content: Bytes, expected: _Tag | None) -> _Tag | None:
        """Puts an object if the expected one is there, or none; returns what identifies the new one, or None when another has written."""
        mode: PutMode = "create" if expected is None else expected.condition
        writer = uuid.uuid4().hex[:16]
        writers = (writer, *(expected.writers if expected is not None else ()))[:REMEMBERED]
        problem: Exception | None = None
        for _ in pauses(PATIENCE):
            try:
                return self._put_once(name, content, mode, writers)
            except (AlreadyExistsError, PreconditionError, FileNotFoundError) as error:
                problem = error
            except BaseError as error:
                if not is_passing(error):
                    raise self._said(error, name) from None
                problem = error
            found = self._look(name)
            if found is not None and writer in found.writers:
                return found.as_left_by(writer)
            if not _is_same(found, expected):
                return None
            # The object is as expected: the put did not arrive, or the store refused it while another put was under way.
        assert problem is not None
        raise self._said(problem, name)

    def _put_once(self, name: str, content: Bytes, mode: PutMode, writers: tuple[str, ...]) -> _Tag:
        marks: dict[str, str] = {_WRITERS: ".".join(writers)}
        done = obstore.put(
            self._client, check_name(name), content, attributes=marks, mode=mode, use_multipart=False
        )  # fmt: skip
        return _Tag(done["e_tag"], done["version"], writers)

    def _upload(self, name: str, content: Bytes | Spool) -> None:
        """Uploads in parts, which the store puts together at the end. If the answer to that is lost, the object is looked at."""
        writer = uuid.uuid4().hex[:16]
        marks: dict[str, str] = {_WRITERS: writer}
        parts = content.parts() if isinstance(content, Spool) else _cut(memoryview(content))
        try:
            obstore.put(
                self._client, check_name(name), parts, attributes=marks,
                use_multipart=True, chunk_size=PART, max_concurrency=SENDERS,
            )  # fmt: skip
        except (BaseError, FileNotFoundError) as error:
            found = self._look(name)
            if found is None or writer not in found.writers:
                # An upload that the store does not know any more was ended by a request whose answer was lost, or is given up: it is begun again.
                raise GenericError(str(error)) if isinstance(error, FileNotFoundError) else error from None

    def _said(self, error: Exception, name: str) -> StorageError:
        """An error of the library in words of the storage."""
        if isinstance(error, FileNotFoundError):
            return NotFound(f"there is no object {name!r} ({self.url})")
        return StorageError(f"{name!r} cannot be read or written ({self.url}): {_reason(error)}")


@dataclass(frozen=True)
class _Tag:
    """What identifies the content of an object, and who has swapped it last, the newest first."""

    e_tag: str | None
    version: str | None
    writers: tuple[str, ...]

    @classmethod
    def of(cls, got: GetResult) -> _Tag:
        writers = got.attributes.get(_WRITERS, "")
        return cls(got.meta["e_tag"], got.meta["version"], tuple(writers.split(".")) if writers else ())

    @classmethod
    def parsed(cls, version: Version) -> _Tag | None:
        """What a version says; None for one that is of no object store."""
        try:
            e_tag, number, writers = json.loads(version)
        except ValueError:
            return None
        return cls(e_tag, number, tuple(writers))

    @property
    def condition(self) -> UpdateVersion:
        found: UpdateVersion = {}
        if self.e_tag is not None:
            found["e_tag"] = self.e_tag
        if self.version is not None:
            found["version"] = self.version
        return found

    @property
    def version_text(self) -> Version:
        return Version(json.dumps([self.e_tag, self.version, self.writers]))

    def as_left_by(self, writer: str) -> _Tag:
        """What identifies the content that a writer has left; where others have swapped it since, no content does."""
        if self.writers[0] == writer:
            return self
        return _Tag('"replaced"', "0", self.writers[self.writers.index(writer) :])


def _reason(error: Exception) -> str:
    reason = " ".join(str(error).partition("Debug source:")[0].split())[:500]
    return f"{reason}. {_NO_KEYS}" if any(host in reason for host in _KEY_SERVERS) else reason


_KEY_SERVERS = ("169.254.169.254", "169.254.170.2", "metadata.google.internal")
"""What is asked for keys where the environment has none; only machines of the cloud have it."""
_NO_KEYS = (
    "No keys were found in the environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, with AWS_ENDPOINT_URL for a server of your own; "
    "GOOGLE_APPLICATION_CREDENTIALS; AZURE_STORAGE_ACCOUNT_KEY), and this machine has no role"
)


def _is_same(found: _Tag | None, expected: _Tag | None) -> bool:
    if found is None or expected is None:
        return found is expected
    return (found.e_tag, found.version) == (expected.e_tag, expected.version)


def _cut(data: memoryview) -> Iterator[Bytes]:
    return (data[begin : begin + PART] for begin in range(0, len(data), PART))


def is_passing(error: Exception) -> bool:
    """Whether an error may go away: no connection, no answer, a server that is overloaded; not a refusal.

    >>> is_passing(GenericError("Server returned non-2xx status code: 503 Service Unavailable"))
    True
    >>> is_passing(GenericError("Server returned non-2xx status code: 400 Bad Request"))
    False
    """
    if not isinstance(error, GenericError):
        return isinstance(error, TimeoutError | ConnectionError)
    status = _STATUS.search(str(error))
    return status is None or status[1].startswith("5") or status[1] in _AGAIN


def _opened(url: str, settings: dict[str, str]) -> Client:
    retries: RetryConfig = {
        "max_retries": 4,
        "retry_timeout": timedelta(seconds=PATIENCE / 2),
        "backoff": {"init_backoff": timedelta(milliseconds=50), "max_backoff": timedelta(seconds=5), "base": 2},
    }
    client: ClientConfig = {
        "allow_http": True,  # an endpoint that is not encrypted is named by the user, or is a metadata service
        "connect_timeout": timedelta(seconds=5),
        "read_timeout": SILENCE,
        "timeout": timedelta(minutes=10),
    }
    try:
        return from_url(url, client_options=client, retry_config=retries, config=cast("S3Config", settings))
    except (BaseError, ValueError) as error:
        raise StorageError(f"{url} cannot be opened: {_reason(error)}") from None
