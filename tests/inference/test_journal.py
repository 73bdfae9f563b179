"""The journal: whatever happens to the file, whole answers are kept and damage is told."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyeval.errors import RunError
from tinyeval.inference.journal import Entry, Journal, Place, read, request_key
from tinyeval.records import Grammar, GreedyUntil, Loglikelihood, Response

texts = st.text(st.characters(codec="utf-8"), max_size=12)
responses = st.builds(
    Response, text=texts, finish_reason=st.sampled_from(["stop", "length", "stop_string", None]),
    prompt_tokens=st.none() | st.integers(0, 2048), logprob=st.none() | st.floats(-1e6, 0),
)  # fmt: skip
entries = st.builds(
    Entry, doc=texts, index=st.integers(-1, 3), key=texts, prompt=texts, continuation=st.none() | texts,
    removed=st.integers(0, 9), response=st.none() | responses, error=st.none() | texts,
)  # fmt: skip
journals = st.lists(entries, min_size=1, max_size=6, unique_by=lambda e: (e.doc, e.index))


def entry(doc: str, index: int = 0, **more: object) -> Entry:
    return Entry(doc=doc, index=index, key=f"key of {doc}", response=Response(text="好"), **more)  # type: ignore[arg-type]


def write(path: Path, written: list[Entry]) -> bytes:
    with closing(Journal(path)) as journal:
        for e in written:
            journal.append(e)
    return path.read_bytes()


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def standing(written: list[Entry]) -> dict[Place, Entry]:
    """What counts of a journal: a Doc that could be prepared at last was not unprepared."""
    return {
        Place(e.doc, e.index): e
        for i, e in enumerate(written)
        if e.index >= 0 or not any(later.doc == e.doc and later.index >= 0 for later in written[i:])
    }


def fresh(folder: Path) -> Path:
    path = folder / "model" / "task.jsonl"
    path.unlink(missing_ok=True)
    return path


@given(written=journals)
@settings(max_examples=60, deadline=None)
def test_what_is_appended_is_read_again(folder: Path, written: list[Entry]) -> None:
    data = write(fresh(folder), written)
    assert read(folder / "model" / "task.jsonl") == standing(written)
    assert data.count(b"\n") == len(written)  # a line each, whatever the texts hold


@given(written=journals, more=entries, data=st.data())
@settings(max_examples=150, deadline=None)
def test_a_journal_cut_at_any_byte_loses_at_most_its_torn_last_line(
    folder: Path, written: list[Entry], more: Entry, data: st.DataObject
) -> None:
    path = fresh(folder)
    whole = write(path, written)
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    kept = written[: whole[:cut].count(b"\n")]
    assert read(path) == standing(kept)  # also before it is opened for writing
    assert path.stat().st_size == cut  # reading changes nothing
    with closing(Journal(path)) as journal:
        assert journal.done == {place: e.key for place, e in standing(kept).items()}
        assert path.read_bytes() == b"".join(whole.splitlines(keepends=True)[: len(kept)])
        journal.append(more)
    assert read(path) == standing([*kept, more])


def test_every_cut_of_one_journal_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    written = [entry("甲"), entry("b", 1), Entry(doc="c", index=-1, key="", error="too long")]
    path = tmp_path / "task.jsonl"
    whole = write(path, written)
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        with closing(Journal(path)) as journal:
            for e in written:
                if Place(e.doc, e.index) not in journal.done:
                    journal.append(e)
        assert path.read_bytes() == whole, cut


@given(written=journals.filter(lambda j: len(j) > 1), data=st.data())
@settings(max_examples=80, deadline=None)
def test_damage_before_the_last_line_is_an_error_that_names_the_line_and_touches_nothing(
    folder: Path, written: list[Entry], data: st.DataObject
) -> None:
    path = fresh(folder)
    lines = write(path, written).splitlines(keepends=True)
    number = data.draw(st.integers(1, len(lines) - 1))
    junk = data.draw(st.sampled_from([b"\n", b"{\n", b"null\n", b"\x00\x00\n", b"\xff\n", b"[1]\n", b'{"doc": 1}\n']))
    lines[number - 1] = data.draw(st.sampled_from([junk, lines[number - 1][:-2] + b"\n", b"x" + lines[number - 1]]))
    damaged = b"".join(lines)
    path.write_bytes(damaged)
    for act in (read, Journal):
        with pytest.raises(
            RunError, match=rf"task\.jsonl, line {number} is damaged \(.+\); restore the file or start a new"
        ):
            act(path)
    assert path.read_bytes() == damaged


def test_a_journal_that_is_refused_is_left_closed(tmp_path: Path) -> None:
    path = tmp_path / "task.jsonl"
    path.write_bytes(b"damaged\n" + write(tmp_path / "other.jsonl", [entry("a")]))
    before = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0
    for _ in range(3):
        with pytest.raises(RunError, match="line 1 is damaged"):
            Journal(path)
    if before:
        assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_the_last_answer_counts_where_a_request_was_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "task.jsonl"
    failed = Entry(doc="a", index=0, key="key of a", error="500")
    write(path, [failed, entry("b")])
    with closing(Journal(path)) as journal:
        assert Place("a", 0) in journal.done  # a failure is an end, too
    with closing(Journal(path, retry_failed=True)) as journal:
        assert list(journal.done) == [Place("b", 0)]
        journal.append(entry("a"))
    assert read(path)[Place("a", 0)] == entry("a")
    assert len(path.read_bytes().splitlines()) == 3


def test_no_journal_yet_is_an_empty_one(tmp_path: Path) -> None:
    assert read(tmp_path / "nowhere.jsonl") == {}
    with closing(Journal(tmp_path / "new" / "task.jsonl")) as journal:
        assert journal.done == {}


def test_a_journal_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match=r"task\.jsonl can't be written: .+; choose another folder with -o\."):
        Journal(tmp_path / "file" / "task.jsonl")
    (tmp_path / "task.jsonl").mkdir()
    for act in (read, Journal):
        with pytest.raises(RunError, match=r"task\.jsonl can't be (read|written): Is a directory"):
            act(tmp_path / "task.jsonl")


FULL_DISK = """
import resource, sys
from pathlib import Path
from tinyeval.errors import RunError
from tinyeval.inference.journal import Entry, Journal
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # a disk with room for 1,000 bytes
journal = Journal(Path(sys.argv[1]))
for i in range(100):
    try:
        journal.append(Entry(doc=str(i), index=0, key="k", prompt="x" * 300))
    except RunError as e:
        print(i, e)
        break
journal.append(Entry(doc="s", index=0, key=""))  # another answer arrives before everything has stopped
"""


@pytest.mark.skipif(os.name != "posix", reason="file size limits are POSIX")
def test_an_answer_that_a_full_disk_cuts_leaves_the_journal_whole(tmp_path: Path) -> None:
    path = tmp_path / "task.jsonl"
    done = subprocess.run([sys.executable, "-c", FULL_DISK, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 the disk is full: an answer was written only in part. Make room")
    assert [e.doc for e in read(path).values()] == ["0", "1", "s"]


def test_a_key_changes_with_everything_that_shapes_a_request() -> None:
    grammar = Grammar(type="regex", value="a+")
    requests = [
        GreedyUntil(context="a"),
        GreedyUntil(context="b"),
        GreedyUntil(context="a", stop_sequence=("\n",)),
        GreedyUntil(context="a", generation_size=1),
        GreedyUntil(context="a", grammar=grammar),
        Loglikelihood(context="a", continuation=" b"),
        Loglikelihood(context="a ", continuation="b"),
    ]
    assert len({request_key(r) for r in requests}) == len(requests)
    assert request_key(GreedyUntil(context="a", grammar=grammar)) == request_key(requests[4])
