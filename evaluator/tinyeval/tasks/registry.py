"""Registry: from what the user writes to tasks.

task    suite|task    suite|task|few_shot|truncate_few_shots    suite    group    globs
my_task.toml    custom_zh=rows.json    custom_en=rows.jsonl    names.txt
"""

from __future__ import annotations

import fnmatch
import tomllib
from pathlib import Path

from tinyeval.config import read_text
from tinyeval.errors import DataError, TaskError, nearest
from tinyeval.tasks.config import TaskConfig, load_task
from tinyeval.tasks.sft import sft_task
from tinyeval.tasks.task import Task


def library() -> Path:
    """The folder of task definitions: inside the wheel, or the checkout's `tasks/` in an editable install."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "task_library"
    return installed if installed.is_dir() else package.parents[1] / "tasks"


class Registry:
    """All tasks of a library folder: `<suite>/<name>.toml`, and the groups of its `groups.toml`.

    Args:
        folder: the library; the installed one by default.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or library()
        self._paths = {f"{p.parent.name}|{p.stem}": p for p in sorted(self.folder.glob("*/*.toml"))}
        groups = self.folder / "groups.toml"
        self._groups: dict[str, list[str]] = tomllib.loads(read_text(groups, TaskError)) if groups.exists() else {}

    def names(self) -> list[str]:
        """All identities `suite|name`, sorted."""
        return list(self._paths)

    def expand_task_definition(self, text: str) -> list[str]:
        """One definition to the names of single tasks, in order, each once.

        Raises:
            TaskError: nothing of that name exists; the message has the nearest names.
        """
        try:
            parts = [text] if _names_a_file(text) else text.split(",")
            found = [name for part in parts if part.strip() for name in self._expand(part.strip())]
        except RecursionError as e:
            raise TaskError(f"{text}: a group or a file of names lists itself.") from e
        if not found:
            raise TaskError(f"no task is named in {text!r}.")
        return list(dict.fromkeys(found))

    def get_task_instance(self, name: str) -> Task:
        """The task of a single name or file, as `expand_task_definition` returns them."""
        return Task(self._config(name))

    def get_task_dict(self, definitions: list[str]) -> dict[str, Task]:
        """Definitions to tasks by identity, in order.

        Raises:
            TaskError: a name is unknown, or two files define the same identity.
        """
        names = dict.fromkeys(n for d in definitions for n in self.expand_task_definition(d))
        tasks: dict[str, Task] = {}
        for name in names:
            task = self.get_task_instance(name)
            if task.name in tasks:
                raise TaskError(f"{name}: a task {task.name!r} is already chosen; rename one of the two files.")
            tasks[task.name] = task
        return tasks

    def _expand(self, part: str) -> list[str]:
        kind, eq, file = part.partition("=")
        if eq:
            if kind not in ("custom_zh", "custom_en"):
                raise TaskError(f"{part}: expected custom_zh=FILE or custom_en=FILE.")
            return [part] if Path(file).is_absolute() or Path(file).exists() else [self._library_file(kind, file)]
        if part.endswith(".toml"):
            return [part]
        if part.endswith(".txt"):
            lines = read_text(Path(part), TaskError).splitlines()
            named = [line for x in lines if (line := x.partition("#")[0].strip())]
            return [n for line in named for n in self._expand(_beside(Path(part), line))]
        if part in self._groups:
            return [n for member in self._groups[part] for n in self._expand(member)]
        return self._match(part)

    def _library_file(self, kind: str, file: str) -> str:
        inside = self.folder / file
        if not inside.exists():
            raise DataError(f"{kind}={file}: the file {file} does not exist.")
        return f"{kind}={inside}"

    def _match(self, part: str) -> list[str]:
        suite, name = _identity(part)
        names = [n for n in self._paths if suite in (None, n.split("|")[0])]
        wanted = [n for n in names if fnmatch.fnmatchcase(n.split("|")[1], name)]
        wanted = wanted or [n for n in names if n.split("|")[1].startswith(f"{name}:")]
        if not wanted and suite is None:
            wanted = [n for n in self._paths if n.split("|")[0] == name]
        if not wanted:
            known = [*self._paths, *(n.split("|")[1] for n in self._paths), *self._groups]
            known += [n.split("|")[0] for n in self._paths]
            hint = nearest(part.split("|0")[0], dict.fromkeys(known))
            raise TaskError(f"no task is named {part!r}{hint}; a file is named FILE.toml or custom_zh=FILE.")
        return wanted

    def _config(self, name: str) -> TaskConfig:
        kind, eq, file = name.partition("=")
        if eq:
            return sft_task(kind.removeprefix("custom_"), Path(file))
        if name in self._paths:
            return load_task(self._paths[name], suite=name.split("|")[0])
        return load_task(Path(name))


def _names_a_file(text: str) -> bool:
    """A file's name may hold commas."""
    try:
        return Path(text.rpartition("=")[2]).is_file()
    except OSError:  # too long for a name
        return False


def _beside(file: Path, line: str) -> str:
    """A line of a file of names; the files that it names are relative to that file."""
    kind, eq, name = line.rpartition("=")
    return f"{kind}{eq}{file.parent / name}" if (file.parent / name).is_file() else line


def _identity(part: str) -> tuple[str | None, str]:
    """`task`, `suite|task`, `suite|task|few_shot` or `suite|task|few_shot|truncate` to suite and task."""
    fields = part.split("|")
    if len(fields) == 1:
        return None, fields[0]
    if len(fields) > 4 or any(not f.isdigit() for f in fields[2:]):
        raise TaskError(f"{part}: expected suite|task|few_shot|truncate_few_shots, the last two as numbers.")
    if any(int(f) for f in fields[2:3]):
        raise TaskError(
            f"{part}: few-shot examples are not supported yet; ask for 0 of them: {'|'.join(fields[:2])}|0."
        )
    return fields[0], fields[1]
