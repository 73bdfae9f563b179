"""The folder of a run: what it asked, of whom, and whether the same command may go on with it.

run.json                    settings, tasks, server identities
docs/<task>.jsonl           the Docs, frozen when the run began
<model>/<task>.jsonl        journals
<model>/<task>.judge.jsonl  journals of the judge
<model>/<task>.scores.jsonl values a Doc      results.json      usage.json
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import os
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from tinyeval.config import Config, ModelConfig, absolute, public
from tinyeval.endpoints.capabilities import Capability
from tinyeval.endpoints.protocol import Identity
from tinyeval.errors import RunError
from tinyeval.records import Doc
from tinyeval.tasks import Task, digest
from tinyeval.version import VERSION

_ASKED = ("generation_size", "stop_sequence", "generation_grammar", "truncate", "chat")
_SHAPING = ("chat", "generation", "max_length")
_LONGEST_NAME = 255
"""Bytes, on most file systems."""
NAMING = ("model", "revision", "tokenizer")
"""Settings that name files: compared, but no part of results.json, where the server's identity stands for them."""
VOLATILE = "max_concurrent_requests"
"""The one part of an identity that shapes no request."""


class TaskRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What scoring needs to know of a task, and people beside its score."""

    metric: list[str]
    version: int
    language: str
    original_num_docs: int
    effective_num_docs: int


class ModelRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What was found at an endpoint.

    Attributes:
        identity: what is served.
        url: where, when it was met last; None for the embedded server.
        capabilities: what was proved.
        refused: tasks that need what it lacks, with the remedy.
    """

    identity: Identity
    url: str | list[str] | None = None
    capabilities: dict[str, Capability] = {}
    refused: dict[str, str] = {}


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """run.json.

    Attributes:
        tinyeval: the version that wrote it.
        settings: all that shapes requests; a run goes on only with the same.
        tasks: by identity, in order.
        models: by name, filled when the endpoint is connected.
        config: the configuration, to go on with; no secrets.
        judge: what was found at the judge's endpoint, filled when it is connected.
        date: when the run was begun (ISO 8601): what a chat template that prints the date prints to its end.
    """

    tinyeval: str = VERSION
    settings: dict[str, Any]
    tasks: dict[str, TaskRecord]
    models: dict[str, ModelRecord] = {}
    config: dict[str, Any] = {}
    judge: ModelRecord | None = None
    date: str = ""


class RunFolder:
    """A run's folder.

    Args:
        path: the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def record(self) -> RunRecord:
        """run.json.

        Raises:
            RunError: the folder is no run, or the file is damaged.
        """
        file = self.path / "run.json"
        try:
            return msgspec.json.decode(file.read_bytes(), type=RunRecord)
        except OSError as e:
            raise RunError(f"{self.path} is not the folder of a run: {file} can't be read ({e.strerror}).") from e
        except (msgspec.DecodeError, UnicodeDecodeError) as e:
            raise RunError(f"{file} is damaged: {e}.") from e

    def begin(self, config: Config, tasks: dict[str, Task], docs: dict[str, list[Doc]]) -> RunRecord | None:
        """Creates the run, or checks that it is this one.

        Returns:
            The record of the last sitting, or None if nothing has been answered so far.

        Raises:
            RunError: the folder can't be written, holds something else, or belongs to other settings.
        """
        now = settings(config, tasks, docs)
        _check_file_names(tasks)
        before = self.record if self._exists() and self.has_answers() else None
        models: dict[str, ModelRecord] = {}
        judge = None
        date = datetime.date.today().isoformat()
        if before:
            changed = differences(before.settings, now)
            if changed:
                raise RunError(
                    f"{self.path} is a run with other settings: {'; '.join(changed[:4])}. "
                    "Choose another folder with -o, or go back to those settings."
                )
            models, judge, date = before.models, before.judge, before.date
        records = {
            name: TaskRecord(
                metric=list(task.config.definition.metric),
                version=task.config.definition.version,
                language=task.config.definition.language,
                original_num_docs=task.original_num_docs,
                effective_num_docs=len(docs[name]),
            )
            for name, task in tasks.items()
        }
        whole = absolute(config)
        written = msgspec.to_builtins(whole) | {"models": {n: public(m) for n, m in whole.models.items()}}
        written["judge"] = public(whole.judge) if whole.judge else None
        # run.json first: whenever this is cut short, the same command finds its run.
        self.save(RunRecord(settings=now, tasks=records, models=models, config=written, judge=judge, date=date))
        for name in tasks:
            self._write(f"docs/{file_name(name)}.jsonl", (msgspec.json.encode(d) + b"\n" for d in docs[name]))
        return before

    def has_answers(self) -> bool:
        """Whether any request has ended; before that a run is bound to nothing."""
        if not (self.path / "run.json").exists():
            return False
        record = self.record
        journals = (self.journal(m, t) for m in models_of(record) for t in record.tasks)
        return any(j.exists() and j.stat().st_size for j in journals)

    @contextlib.contextmanager
    def locked(self) -> Generator[None]:
        """Keeps other processes from going on with the same run meanwhile.

        Raises:
            RunError: one is at it, or the folder can't be written.
        """
        from filelock import FileLock, Timeout

        self._exists()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.path / ".lock")
            lock.acquire(blocking=False)
        except Timeout as e:
            raise RunError(f"another process is at the run in {self.path}; wait for it, or choose another -o.") from e
        except OSError as e:
            reason = "Not a directory" if isinstance(e, FileExistsError) else e.strerror
            raise RunError(f"{self.path} can't be written: {reason}; choose another folder with -o.") from e
        try:
            yield
        finally:
            lock.release()

    def _exists(self) -> bool:
        """Whether there is a run; anything else in its place is refused."""
        try:
            if (self.path / "run.json").exists():
                return True
            strange = self.path.is_dir() and any(not p.name.startswith(".") for p in self.path.iterdir())
        except OSError as e:
            raise RunError(f"{self.path} can't be a folder: {e.strerror}; choose another with -o.") from e
        if strange:
            raise RunError(f"{self.path} exists and is not the folder of a run; choose another with -o.")
        return False

    def save(self, record: RunRecord) -> None:
        """Writes run.json."""
        self._write("run.json", [pretty(msgspec.to_builtins(record))])

    def connected(self, name: str, model: ModelRecord) -> None:
        """Records what serves a model, or checks that it still does.

        Raises:
            RunError: another model is served now.
        """
        record = self.record
        self._same(name, record.models.get(name), model)
        self.save(msgspec.structs.replace(record, models={**record.models, name: model}))

    def judged_by(self, judge: ModelRecord) -> None:
        """Records what serves the judge, or checks that it still does.

        Raises:
            RunError: another model is served now.
        """
        record = self.record
        self._same("the judge", record.judge, judge)
        self.save(msgspec.structs.replace(record, judge=judge))

    def _same(self, name: str, before: ModelRecord | None, now: ModelRecord) -> None:
        if before is None:
            return
        known, found = (msgspec.to_builtins(m.identity) for m in (before, now))
        changed = differences(
            {k: v for k, v in known.items() if k != VOLATILE}, {k: v for k, v in found.items() if k != VOLATILE}
        )
        if changed:
            raise RunError(
                f"{self.path} was begun with another server for {name}: {'; '.join(changed)}. "
                "Its answers must not be mixed: choose another folder with -o."
            )

    def docs(self, task: str, wanted: int) -> Iterator[tuple[str, bytes]]:
        """The Docs of a task as they were asked: the id of each, and its line.

        Args:
            task: its identity.
            wanted: how many there must be.

        Raises:
            RunError: the file is damaged.
        """
        path = self.path / "docs" / f"{file_name(task)}.jsonl"
        decoder = msgspec.json.Decoder(Doc)
        count = 0
        try:
            with path.open("rb") as file:
                for line in filter(bytes.strip, file):
                    yield decoder.decode(line).id, line
                    count += 1
        except OSError as e:
            raise RunError(f"{path} can't be read: {e.strerror}.") from e
        except msgspec.DecodeError as e:
            raise RunError(f"{path} is damaged: {e}.") from e
        if count != wanted:
            raise RunError(f"{path} is damaged: it has {count} of {wanted} Docs.")

    def journal(self, model: str, task: str) -> Path:
        """Where the answers of a model to a task are."""
        return self.path / model / f"{file_name(task)}.jsonl"

    def judge_journal(self, model: str, task: str) -> Path:
        """Where the judge's verdicts on these answers are."""
        return self.path / model / f"{file_name(task)}.judge.jsonl"

    def write_lines(self, model: str, task: str, lines: Iterable[Any]) -> None:
        """Writes the values of each Doc beside the journal, as they come."""
        self._write(f"{model}/{file_name(task)}.scores.jsonl", (msgspec.json.encode(line) + b"\n" for line in lines))

    def write_json(self, name: str, value: Any) -> None:
        """Writes a JSON file of the run, whole or not at all."""
        self._write(name, [pretty(value)])

    def _write(self, name: str, parts: Iterable[bytes]) -> None:
        path = self.path / name
        temporary = path.with_name(f".{os.getpid()}")  # short: the name itself may be as long as a name can be
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                file.writelines(parts)
            temporary.replace(path)
        except OSError as e:
            raise RunError(f"{path} can't be written: {e.strerror}; choose another folder with -o.") from e
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()


def default_path(config: Config, tasks: dict[str, Task], docs: dict[str, list[Doc]]) -> Path:
    """The folder of a run that names none: the same command finds the same run again."""
    now = settings(config, tasks, docs)
    now["urls"] = {n: m.url for n, m in config.models.items()}
    mark = hashlib.sha256(msgspec.json.encode(now, order="deterministic")).hexdigest()[:8]
    names = "+".join(config.models)
    return Path(config.output) / f"{names[:60]}-{mark}"


def settings(config: Config, tasks: dict[str, Task], docs: dict[str, list[Doc]]) -> dict[str, Any]:
    """All that shapes requests, as plain values."""
    asked: dict[str, Any] = {}
    for name, task in tasks.items():
        definition = msgspec.to_builtins(task.config.definition)
        asked[name] = {"docs": digest(docs[name]), "asks": sorted(task.needs)} | {k: definition[k] for k in _ASKED}
    whole = absolute(config)

    def shaping(model: ModelConfig) -> dict[str, Any]:
        values = msgspec.to_builtins(model)
        return {k: values[k] for k in (*_SHAPING, *NAMING)}

    found = {"tasks": asked, "models": {n: shaping(m) for n, m in whole.models.items()}}
    if whole.judge and any(task.judged for task in tasks.values()):
        found["judge"] = shaping(whole.judge)
    return found | {"limit": config.limit, "seed": config.seed}


def differences(before: dict[str, Any], now: dict[str, Any], prefix: str = "") -> list[str]:
    """What changed between two nested settings, a phrase each."""
    found: list[str] = []
    for key in dict.fromkeys([*before, *now]):
        a, b = before.get(key), now.get(key)
        if isinstance(a, dict) and isinstance(b, dict):
            found += differences(cast("dict[str, Any]", a), cast("dict[str, Any]", b), f"{prefix}{key}.")
        elif key not in now:
            found.append(f"{prefix}{key} was there and is not now")
        elif key not in before:
            found.append(f"{prefix}{key} was not there and is now")
        elif a != b:
            found.append(f"{prefix}{key} was {a!r} and is {b!r} now")
    return found


def file_name(task: str) -> str:
    """A task's identity as a file name: `demo|qa_zh` is `demo.qa_zh`."""
    return re.sub(r"[^\w.-]", "_", task.replace("|", "."))


def _check_file_names(tasks: Iterable[str]) -> None:
    """Two tasks must not share a journal, not even where letter case does not count."""
    taken: dict[str, str] = {}
    for task in tasks:
        if len(f"{file_name(task)}.scores.jsonl".encode()) > _LONGEST_NAME:
            raise RunError(f"the task's name {task[:40]!r}… is too long to name files with; rename its file.")
        for name in (file_name(task), f"{file_name(task)}.scores", f"{file_name(task)}.judge"):
            other = taken.setdefault(name.casefold(), task)
            if other != task:
                raise RunError(f"the tasks {other!r} and {task!r} would share the file {name}.jsonl; rename one.")


def pretty(value: Any) -> bytes:
    """JSON for people and for `diff`: indented, in a fixed order, always valid."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def models_of(record: RunRecord) -> Sequence[str]:
    """The models of a run, in the configuration's order."""
    return list(record.settings["models"])
