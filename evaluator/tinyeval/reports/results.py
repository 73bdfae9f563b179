"""results.json and usage.json: what a run found, and what it took.

results.json depends on the settings, the server and the answers alone: equal runs write equal bytes. Times,
attempts and token totals are in usage.json.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from tinyeval.evaluation.longbench import averages
from tinyeval.evaluation.predictions import FileScores
from tinyeval.evaluation.scoring import TaskScores
from tinyeval.inference.folder import NAMING, VOLATILE, ModelRecord, RunFolder, models_of
from tinyeval.inference.journal import Place, lines
from tinyeval.version import VERSION

SCHEMA_VERSION = 1

Outcome = dict[str, dict[str, TaskScores]]
"""Model to task to scores."""


def write_results(folder: RunFolder, scored: Outcome) -> dict[str, Any]:
    """Writes results.json and usage.json.

    Returns:
        The content of results.json.
    """
    results = build_results(folder, scored)
    folder.write_json("results.json", results)
    folder.write_json("usage.json", build_usage(folder))
    return results


def build_results(folder: RunFolder, scored: Outcome) -> dict[str, Any]:
    """The content of results.json, as reading the file gives it."""
    record = folder.record
    results = {
        "schema_version": SCHEMA_VERSION,
        "results": {
            m: {t: {k: msgspec.to_builtins(r) for k, r in o.results.items()} for t, o in tasks.items()}
            for m, tasks in scored.items()
        },
        "answers": {m: {t: msgspec.to_builtins(o.answers) for t, o in tasks.items()} for m, tasks in scored.items()},
        "run": {
            "tinyeval": record.tinyeval,
            "settings": _unnamed(record.settings),
            "tasks": msgspec.to_builtins(record.tasks),
            "models": {m: _model(record.models[m]) for m in models_of(record) if m in record.models},
        }
        | ({"judge": _model(record.judge)} if record.judge else {}),
    }
    return msgspec.json.decode(msgspec.json.encode(results))


def _unnamed(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings without the names of files: the servers' identities stand for them."""

    def bare(model: dict[str, Any]) -> dict[str, Any]:
        return {k: v for k, v in model.items() if k not in NAMING}

    found = settings | {"models": {name: bare(model) for name, model in settings["models"].items()}}
    return found | {"judge": bare(settings["judge"])} if "judge" in settings else found


def _model(found: ModelRecord) -> dict[str, Any]:
    """What was found at an endpoint, without what shapes no answer."""
    values = msgspec.to_builtins(found)
    del values["identity"][VOLATILE], values["url"]
    return values


def build_predictions(scored: dict[str, dict[str, FileScores]]) -> dict[str, Any]:
    """What prediction files are worth, in the shape of results.json, with length groups, averages and notes beside.

    Args:
        scored: model to task to scores.
    """
    models = {m: {t: f.results for t, f in files.items()} for m, files in scored.items()}
    tasks: dict[str, Any] = {}
    for files in scored.values():
        for task, found in files.items():
            rows = max(found.answers.docs, tasks.get(task, {}).get("original_num_docs", 0))
            tasks[task] = {"metric": list(found.results), "original_num_docs": rows, "effective_num_docs": rows}
    values = {
        "schema_version": SCHEMA_VERSION,
        "results": models,
        "answers": {m: {t: f.answers for t, f in files.items()} for m, files in scored.items()},
        "groups": {m: {t: f.groups for t, f in files.items() if f.groups} for m, files in scored.items()},
        "averages": {m: averages(results) for m, results in models.items()},
        "notes": {m: {t: f.notes for t, f in files.items() if f.notes} for m, files in scored.items()},
        "run": {"tinyeval": VERSION, "tasks": tasks, "models": {}},
    }
    return msgspec.json.decode(msgspec.json.encode(values))


def build_usage(folder: RunFolder) -> dict[str, Any]:
    """Requests, tokens, attempts and seconds of waiting for answers, over all sessions of the run."""
    record = folder.record
    usage: dict[str, Any] = {}
    for model in models_of(record):
        usage[model] = {}
        for task in record.tasks:
            usage[model][task] = _usage(folder.journal(model, task))
    return {"schema_version": SCHEMA_VERSION, "usage": usage}


def _usage(journal: Path) -> dict[str, Any]:
    requests: set[Place] = set()
    attempts = prompt = completion = 0
    seconds = 0.0
    for entry, _ in lines(journal) if journal.exists() else ():
        requests.add(Place(entry.doc, entry.index))
        attempts += entry.attempts
        seconds += entry.seconds
        if entry.response:
            prompt += entry.response.prompt_tokens or 0
            completion += entry.response.completion_tokens or 0
    return {
        "requests": len(requests),
        "attempts": attempts,
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "seconds": round(seconds, 3),
    }
