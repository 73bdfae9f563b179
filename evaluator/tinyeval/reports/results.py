"""results.json and usage.json: what a run found, and what it took.

results.json depends on the settings, the server and the answers alone: equal runs write equal bytes. Times,
attempts and token totals are in usage.json.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tinyeval.evaluation.scoring import TaskScores
from tinyeval.inference.folder import RunFolder, models_of
from tinyeval.inference.journal import read

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
    results = {
        "schema_version": SCHEMA_VERSION,
        "results": {
            m: {t: {k: msgspec.to_builtins(r) for k, r in o.results.items()} for t, o in tasks.items()}
            for m, tasks in scored.items()
        },
        "answers": {m: {t: msgspec.to_builtins(o.answers) for t, o in tasks.items()} for m, tasks in scored.items()},
        "run": {
            "tinyeval": record.tinyeval,
            "settings": record.settings,
            "tasks": msgspec.to_builtins(record.tasks),
            "models": msgspec.to_builtins({m: record.models[m] for m in models_of(record) if m in record.models}),
        },
    }
    return msgspec.json.decode(msgspec.json.encode(results))


def build_usage(folder: RunFolder) -> dict[str, Any]:
    """Requests, tokens, attempts and seconds of waiting for answers, over all sessions of the run."""
    record = folder.record
    usage: dict[str, Any] = {}
    for model in models_of(record):
        usage[model] = {}
        for task in record.tasks:
            entries = read(folder.journal(model, task)).values()
            responses = [e.response for e in entries if e.response]
            usage[model][task] = {
                "requests": len(entries),
                "attempts": sum(e.attempts for e in entries),
                "prompt_tokens": sum(r.prompt_tokens or 0 for r in responses),
                "completion_tokens": sum(r.completion_tokens or 0 for r in responses),
                "seconds": round(sum(e.seconds for e in entries), 3),
            }
    return {"schema_version": SCHEMA_VERSION, "usage": usage}
