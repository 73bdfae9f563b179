"""The plan of a run: everything that can be known, and can be wrong, before a server is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from tinyeval.config import EMBEDDED, Config, ModelConfig, checked, decode, load
from tinyeval.errors import ConfigError, RunError, TaskError
from tinyeval.inference.folder import RunFolder, default_path
from tinyeval.records import Doc
from tinyeval.tasks import Registry, Task


class Plan(NamedTuple):
    """What a run asks and where it is kept.

    Attributes:
        config: the settings.
        tasks: by identity, in order.
        docs: the Docs of each.
        path: the run's folder.
    """

    config: Config
    tasks: dict[str, Task]
    docs: dict[str, list[Doc]]
    path: Path


def make_plan(
    config: Config | str | Path | None = None,
    *,
    models: Mapping[str, ModelConfig] | None = None,
    tasks: Sequence[str] | None = None,
    limit: int | None = None,
    seed: int | None = None,
    output: str | Path | None = None,
) -> Plan:
    """Reads settings, tasks and data; the arguments are those of `tinyeval.run`.

    Raises:
        UsageError: a mistake in one of them.
    """
    settings = config if isinstance(config, Config) else load(Path(config) if config else None)
    if models:
        settings = msgspec.structs.replace(settings, models=dict(models))
    if tasks:
        settings = msgspec.structs.replace(settings, tasks=[tasks] if isinstance(tasks, str) else list(tasks))
    if limit is not None:
        settings = msgspec.structs.replace(settings, limit=limit)
    if seed is not None:
        settings = msgspec.structs.replace(settings, seed=seed)
    settings = checked(msgspec.structs.replace(settings, models=settings.models or EMBEDDED))
    if not settings.tasks:
        raise TaskError("no task is named: set tasks in the configuration, or use -t.")
    chosen = Registry().get_task_dict(settings.tasks)
    for name, task in chosen.items():
        if task.judged and settings.judge is None:
            raise ConfigError(
                f"{name} has the metric judge, but no judge is named: write [judge] and its url into tinyeval.toml."
            )
    docs = {name: task.eval_docs(settings.limit) for name, task in chosen.items()}
    path = Path(output) if output else default_path(settings, chosen, docs)
    return Plan(settings, chosen, docs, path)


def resumed_config(path: Path) -> Config:
    """The configuration of an existing run, to go on with it.

    Raises:
        RunError: the folder is no run.
    """
    return decode(RunFolder(path).record.config, Config, str(path / "run.json"), error=RunError)
