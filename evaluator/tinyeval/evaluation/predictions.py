"""Prediction files that others wrote: rows of `pred`, `answers`, `all_classes` and `length`, a file a task.

A folder `<model>/<task>.jsonl` is LongBench's layout (`pred/` and `pred_e/`) and TinyEval's. A row becomes a Doc and
its answer, so that it is scored as any other. Whatever the official scorers would pass over in silence is told.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from tinyeval import metrics
from tinyeval.errors import DataError, TaskError, nearest
from tinyeval.evaluation.docs import Item, Job
from tinyeval.evaluation.longbench import BUCKETS, TASKS, Known, bucket
from tinyeval.evaluation.processes import Scorers
from tinyeval.evaluation.scoring import Answers, Tally, chunked
from tinyeval.inference.journal import Entry
from tinyeval.metrics.longbench import first_line
from tinyeval.records import Doc, Response, Result

REPEATED = 0.02
"""Share of rows that repeat another's answers and length, from which on they are told and count as one cluster."""


class Row(NamedTuple):
    """A line of a prediction file.

    Attributes:
        number: of the line, from 1.
        prediction: the text; None: there is none.
        answers: acceptable answers; None: there are none to be read.
        classes: the classes, if the row names any.
        length: of the prompt in words or characters, if the row tells.
        problem: why the row has no score, in a phrase.
        mended: what was put right, in a phrase.
    """

    number: int
    prediction: str | None = None
    answers: tuple[str, ...] | None = None
    classes: tuple[str, ...] = ()
    length: float | None = None
    problem: str | None = None
    mended: str | None = None

    @property
    def mark(self) -> str:
        """What rows of one question share: answers and length; nothing if one of these is unknown."""
        known = self.length is not None and self.answers
        shared = (self.answers, self.length) if known else self.number
        return hashlib.sha256(repr(shared).encode()).hexdigest()[:16]


class FileScores(NamedTuple):
    """What a prediction file is worth.

    Attributes:
        results: metric to Result.
        groups: length bucket to metric to Result; empty if a row has no length.
        answers: what happened to the rows.
        scores: metric to the value of each row; None where there is none.
        notes: what must be read beside the numbers.
    """

    results: dict[str, Result]
    groups: dict[str, dict[str, Result]]
    answers: Answers
    scores: list[dict[str, float] | None]
    notes: list[str]


def prediction_files(path: Path) -> dict[str, dict[str, Path]]:
    """Model to task to file, in a file, in a model's folder, or in a folder of these; nothing if there are none."""
    if path.is_file():
        return {path.resolve().parent.name: {path.name.partition(".")[0]: path}} if path.suffix == ".jsonl" else {}
    folders = [path, *sorted(p for p in path.iterdir() if p.is_dir())] if path.is_dir() else []
    found: dict[str, dict[str, Path]] = {}
    for folder in folders:
        files = sorted(p for p in folder.glob("*.jsonl") if p.is_file())
        if files:
            found[folder.resolve().name] = {p.name.partition(".")[0]: p for p in files}
    return found


def known_task(task: str, wanted: Sequence[str], path: Path) -> Known:
    """How a task's predictions are scored.

    Args:
        task: its name.
        wanted: metrics instead of the task's own.
        path: its file.

    Raises:
        TaskError: the task is unknown and no metric is named, or a metric can't judge predictions.
    """
    known = TASKS.get(task)
    if not wanted and known is None:
        raise TaskError(
            f"{path}: no task of LongBench or TinyEval is named {task!r}{nearest(task, TASKS)}; "
            "name the metrics of such a file with --metric."
        )
    if wanted:
        known = (known or Known((), "", None))._replace(metrics=tuple(wanted))
    assert known
    for name in known.metrics:
        try:
            metric = metrics.get(name)
        except KeyError as e:
            raise TaskError(e.args[0]) from e
        if metric.needs != "generative":
            raise TaskError(
                f"{name} scorers log-probabilities or several samples; a prediction file has one text a row."
            )
        if missing := metric.missing:
            raise TaskError(missing)
    return known


class Survey:
    """What must be known of a file before its rows can be scored, and what its readers should be told.

    Args:
        path: the file.

    Attributes:
        count: of the rows.
        classes: the last row's: the official scorer scorers all rows by them.
        repeated: whether so many rows repeat another that they are no independent questions.
        bucketed: whether every row has a length.
        notes: what must be read beside the numbers.
    """

    def __init__(self, path: Path) -> None:
        marks: Counter[str] = Counter()
        mended: Counter[str] = Counter()
        lists: set[tuple[str, ...]] = set()
        unmeasured = empty = unanswered = 0
        self.classes: tuple[str, ...] = ()
        for row in rows(path):
            marks[row.mark] += 1
            lists.add(row.classes)
            self.classes = row.classes
            unmeasured += row.length is None
            empty += row.prediction == ""
            unanswered += row.answers == ()
            mended.update(filter(None, [row.mended]))
        self.count = marks.total()
        repeats = self.count - len(marks)
        self.repeated = repeats > REPEATED * self.count
        self.bucketed = self.count > 0 and not unmeasured
        self.notes: list[str] = []
        of = f"of {self.count} rows"
        if self.repeated:
            self.notes.append(
                f"{repeats} {of} repeat the answers and length of an earlier one ({len(marks)} are distinct): each "
                "counts in the value; for the error, those of one question count as one"
            )
        if unmeasured:
            self.notes.append(f"{unmeasured} {of} have no usable length: no values by length")
        if empty:
            self.notes.append(f"{empty} {of} have an empty prediction, which counts as an answer")
        if unanswered:
            self.notes.append(f"{unanswered} {of} have no answers: whatever was predicted counts 0")
        self.notes += [f"{n} {of}: {what}" for what, n in mended.items()]
        if len(lists) > 1:
            self.notes.append("all_classes differs between rows; the last row's count for all, as officially")
        if not self.count:
            self.notes.append("the file is empty: there is no score")


def score_file(path: Path, known: Known, scorers: Scorers) -> FileScores:
    """Scores one prediction file.

    Raises:
        DataError: it can't be read.
    """
    job = Job(known.metrics)
    survey = Survey(path)
    tally = Tally(job)
    groups = {name: Tally(job) for name in BUCKETS} if survey.bucketed else {}
    lengths: deque[float] = deque()
    failures: Counter[str] = Counter()
    scores: list[dict[str, float] | None] = []

    def items() -> Iterator[Item]:
        for row in rows(path):
            lengths.append(row.length or 0)
            yield _item(row, known, survey)

    for chunk in scorers.score_all(job, chunked(items())):
        for one in chunk:
            length = lengths.popleft()
            if groups:
                groups[bucket(length)].add(one)
            tally.add(one)
            scores.append(one.score.values if one.score.error is None else None)
            if one.score.error:
                failures[one.score.error] += 1
    notes = survey.notes + [f"{n} of {survey.count} rows failed: {why}" for why, n in failures.items()]
    answers = msgspec.structs.replace(tally.answers, cut_by_length=None)  # no file tells it
    return FileScores(tally.results(), {k: g.results() for k, g in groups.items()}, answers, scores, notes)


def rows(path: Path) -> Iterator[Row]:
    """The rows of a prediction file; empty lines are none.

    Raises:
        DataError: it can't be read.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if text := line.removeprefix(b"\xef\xbb\xbf").strip():
                    yield _row(number, text)
    except OSError as e:
        raise DataError(f"{path} can't be read: {e.strerror}.") from e


def _row(number: int, line: bytes) -> Row:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return Row(number, problem="the line is no JSON")
    if not isinstance(value, dict):
        return Row(number, problem="the line is no JSON object")
    fields = cast("dict[str, Any]", value)
    length = fields.get("length")
    usable = isinstance(length, int | float) and not isinstance(length, bool) and math.isfinite(length)
    mended: list[str] = []
    listed = fields.get("answers")
    if isinstance(listed, str):
        listed = [listed]
    answers = _texts(listed, mended)
    row = Row(
        number,
        prediction=_text(fields.get("pred"), mended),
        answers=answers,
        classes=_texts(fields.get("all_classes"), mended) or (),
        length=float(cast("float", length)) if usable else None,
        mended=mended[0] if mended else None,
    )
    if not isinstance(fields.get("pred"), str):
        return row._replace(problem=f"pred is {_what(fields, 'pred')}, not a text")
    if answers is None:
        return row._replace(problem=f"answers is {_what(fields, 'answers')}, not a list of texts")
    return row


def _what(fields: dict[str, Any], key: str) -> str:
    if key not in fields:
        return "missing"
    value = fields[key]
    return "null" if value is None else "NaN" if value != value else f"a {type(value).__name__}"


def _text(value: Any, mended: list[str]) -> str | None:
    """A text that can be written again: lone surrogates become U+FFFD."""
    if not isinstance(value, str):
        return None
    try:
        value.encode()
    except UnicodeEncodeError:
        mended.append("characters that are halves of a pair (lone surrogates) are read as U+FFFD")
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value


def _texts(value: Any, mended: list[str]) -> tuple[str, ...] | None:
    if not isinstance(value, list):
        return None
    found: list[str] = []
    for part in cast("list[Any]", value):
        if isinstance(part, bool) or not isinstance(part, str | int | float) or part != part:
            return None
        found.append(_text(str(part), mended) or "")
    return tuple(found)


def _item(row: Row, known: Known, survey: Survey) -> Item:
    """A row as a Doc and its entry."""
    wanted = [metrics.get(name) for name in known.metrics]
    reasons = (
        f"{m.name}: {reason}" for m in wanted for a in row.answers or () if (reason := m.check(a, survey.classes))
    )
    problem = row.problem or next(reasons, None)
    text = row.prediction or ""
    response = Response(text=first_line(text) if known.first_line else text, finish_reason="stop")
    doc = Doc(
        id=str(row.number),
        query="",
        references=row.answers or (),
        choices=survey.classes,
        cluster=row.mark if survey.repeated else None,
    )
    entry = Entry(doc=doc.id, index=0, key="", response=None if problem else response, error=problem)
    return msgspec.json.encode(doc), [msgspec.json.encode(entry)]
