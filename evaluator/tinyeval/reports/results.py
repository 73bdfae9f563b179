"""results.json and usage.json: what a run found, and what it took.

results.json depends on the settings, the server and the answers alone: equal runs write equal bytes. Times,
attempts and token totals are in usage.json.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from tinyeval.evaluation.scoring import TaskScores
from tinyeval.inference.folder import NAMING, VOLATILE, ModelRecord, RunFolder, models_of
from tinyeval.inference.journal import Place, lines

SCHEMA_VERSION = 1

Scored = dict[str, dict[str, TaskScores]]
"""Model to task to scores."""


def write_results(folder: RunFolder, scored: Scored) -> dict[str, Any]:
    """Writes results.json and usage.json.

    Returns:
        The content of results.json.
    """
    results = build_results(folder, scored)
    folder.write_json("results.json", results)
    folder.write_json("usage.json", build_usage(folder))
    return results


def build_results(folder: RunFolder, scored: Scored) -> dict[str, Any]:
    """The content of results.json, as reading the file gives it."""
    record = folder.record
    models = {m: {k: v for k, v in s.items() if k not in NAMING} for m, s in record.settings["models"].items()}
    results = {
        "schema_version": SCHEMA_VERSION,
        "results": {
            m: {t: {k: msgspec.to_builtins(r) for k, r in o.results.items()} for t, o in tasks.items()}
            for m, tasks in scored.items()
        },
        "answers": {m: {t: msgspec.to_builtins(o.answers) for t, o in tasks.items()} for m, tasks in scored.items()},
        "run": {
            "tinyeval": record.tinyeval,
            "settings": record.settings | {"models": models},
            "tasks": msgspec.to_builtins(record.tasks),
            "models": {m: _model(record.models[m]) for m in models_of(record) if m in record.models},
        },
    }
    return msgspec.json.decode(msgspec.json.encode(results))


def _model(found: ModelRecord) -> dict[str, Any]:
    """What was found at an endpoint, without what shapes no answer."""
    values = msgspec.to_builtins(found)
    del values["identity"][VOLATILE], values["url"]
    return values


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
