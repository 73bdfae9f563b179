"""The journal: one line a finished request, appended when its answer arrives, the only truth of a run.

A line is written in one piece to an unbuffered file, so a killed process leaves at most a torn last line, which
is dropped when the journal is opened again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from tinyeval.errors import RunError
from tinyeval.records import Request, Response


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One finished request: its answer, or the reason why there is none.

    Attributes:
        doc: the Doc's id.
        index: the request's place among those of its Doc; UNPREPARED when no request could be made.
        key: fingerprint of the request as planned.
        prompt: as it was sent.
        continuation: what was scored after it, for a log-likelihood.
        removed: tokens that truncation took out.
        response: what came back.
        error: why nothing did.
        attempts: how often it was asked.
        seconds: from the first attempt to the answer, own waiting included.
    """

    doc: str
    index: int
    key: str
    prompt: str = ""
    continuation: str | None = None
    removed: int = 0
    response: Response | None = None
    error: str | None = None
    attempts: int = 1
    seconds: float = 0.0


UNPREPARED = -1
"""The index of an entry that says why a Doc's requests could not be made."""

VERDICTS = (-2, -3)
"""The indexes that the judge's two entries have when a Doc is scored; its own journal numbers them otherwise."""


class Place(NamedTuple):
    """Where an entry belongs: Doc and request index."""

    doc: str
    request: int


_decoder = msgspec.json.Decoder(Entry)
_encoder = msgspec.json.Encoder()


def request_key(request: Request) -> str:
    """A fingerprint of all that shapes a request."""
    return hashlib.sha256(_encoder.encode(request)).hexdigest()[:24]


class Journal:
    """An open journal.

    Args:
        path: the file; created with its folder if missing.
        retry_failed: forget recorded failures, so that they are asked again.

    Attributes:
        done: the keys of the requests already finished.

    Raises:
        RunError: the file is damaged before its last line, or can't be written.
    """

    def __init__(self, path: Path, *, retry_failed: bool = False) -> None:
        self.done: dict[Place, str] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o644)
        except OSError as e:
            raise RunError(f"{path} can't be written: {e.strerror}; choose another folder with -o.") from e
        whole = 0
        found: dict[Place, Entry] = {}
        try:
            for entry, whole in lines(path):  # noqa: B007
                _place(found, entry)
        except RunError:
            self.close()
            raise
        if whole < os.fstat(self._fd).st_size:
            os.ftruncate(self._fd, whole)
        self.done = {p: e.key for p, e in found.items() if e.error is None or not retry_failed}

    def append(self, entry: Entry) -> None:
        """Writes an entry; it survives the process from here on.

        Raises:
            RunError: the disk refuses.
        """
        data = _encoder.encode(entry) + b"\n"
        try:
            written = os.write(self._fd, data)
        except OSError as e:
            raise RunError(
                f"the journal can't be written: {e.strerror}. Make room and run the same command again."
            ) from e
        if written != len(data):
            os.ftruncate(self._fd, os.fstat(self._fd).st_size - written)  # another answer may follow at once
            raise RunError("the disk is full: an answer was written only in part. Make room and run the command again.")
        self.done[Place(entry.doc, entry.index)] = entry.key

    def close(self) -> None:
        """Closes the file."""
        os.close(self._fd)


def read(path: Path) -> dict[Place, Entry]:
    """The entries of a journal, the last one where a request was asked again; nothing if there is no file.

    Raises:
        RunError: a line before the last is damaged.
    """
    found: dict[Place, Entry] = {}
    if path.exists():
        for entry, _ in lines(path):
            _place(found, entry)
    return found


class Spots:
    """Where the entries of each Doc are in a journal, so that a long one need not be held in memory.

    A context manager. Nothing is found if there is no file.

    Args:
        path: the journal.

    Raises:
        RunError: a line before the last is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._found: dict[str, dict[int, tuple[int, int]]] = {}
        start = 0
        for entry, end in lines(path) if path.exists() else ():
            spots = self._found.setdefault(entry.doc, {})
            if entry.index >= 0:
                spots.pop(UNPREPARED, None)
            spots[entry.index] = start, end - start
            start = end
        self._file = path.open("rb") if self._found else None

    def __enter__(self) -> Spots:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()

    def entries(self, doc: str) -> list[bytes]:
        """The lines of a Doc's entries, the last one where a request was asked again."""
        found: list[bytes] = []
        for start, length in self._found.get(doc, {}).values():
            assert self._file
            self._file.seek(start)
            found.append(self._file.read(length))
        return found


def _place(found: dict[Place, Entry], entry: Entry) -> None:
    """The last entry of a place counts, and a Doc either could be prepared or could not, whichever came last."""
    if entry.index >= 0:
        found.pop(Place(entry.doc, UNPREPARED), None)
    found[Place(entry.doc, entry.index)] = entry


def lines(path: Path) -> Iterator[tuple[Entry, int]]:
    """Whole entries in the order of their writing and the offset behind each; a torn last line is left out.

    Raises:
        RunError: a line before the last is damaged, or the file can't be read.
    """
    at = 0
    try:
        opened = path.open("rb")
    except OSError as e:
        raise RunError(f"{path} can't be read: {e.strerror}.") from e
    with opened as file:
        for number, line in enumerate(file, 1):
            at += len(line)
            try:
                entry = _decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as e:
                if not file.read(1):
                    return
                raise RunError(f"{path}, line {number} is damaged ({e}); restore the file or start a new run.") from e
            if not line.endswith(b"\n"):
                return
            yield entry, at
