"""results.json and usage.json: what a run found, and what it took.

results.json depends on the settings, the server and the answers alone: equal runs write equal bytes. Times,
attempts and token totals are in usage.json.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tinyeval.evaluation.scoring import TaskScores
from tinyeval.inference.folder import NAMING, VOLATILE, ModelRecord, RunFolder, models_of
from tinyeval.inference.journal import lines

SCHEMA_VERSION = 1

Scored = dict[str, dict[str, TaskScores]]
"""Model to task to scores."""


def write_results(folder: RunFolder, scored: Scored) -> dict[str, Any]:
    """Writes results.json, usage.json and the values of each Doc.

    Returns:
        The content of results.json.
    """
    for model, tasks in scored.items():
        for task, outcome in tasks.items():
            folder.write_lines(model, task, outcome.scores)
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
            path = folder.journal(model, task)
            entries = [entry for entry, _ in lines(path)] if path.exists() else []
            responses = [e.response for e in entries if e.response]
            usage[model][task] = {
                "requests": len({(e.doc, e.index) for e in entries}),
                "attempts": sum(e.attempts for e in entries),
                "prompt_tokens": sum(r.prompt_tokens or 0 for r in responses),
                "completion_tokens": sum(r.completion_tokens or 0 for r in responses),
                "seconds": round(sum(e.seconds for e in entries), 3),
            }
    return {"schema_version": SCHEMA_VERSION, "usage": usage}
