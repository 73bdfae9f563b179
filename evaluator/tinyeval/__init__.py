"""TinyEval: evaluates language models that are served over HTTP.

import tinyeval
run = tinyeval.run(models={"qwen": tinyeval.ModelConfig(url="http://127.0.0.1:8080")}, tasks=["demo"])
run.results["results"]["qwen"]["demo|qa_zh"]["qa_f1_zh"]
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tinyeval import version

__version__ = version.VERSION

if TYPE_CHECKING:
    from tinyeval import metrics as metrics
    from tinyeval.api import Run as Run
    from tinyeval.api import load as load
    from tinyeval.api import preview as preview
    from tinyeval.api import run as run
    from tinyeval.api import run_async as run_async
    from tinyeval.api import score as score
    from tinyeval.config import Config as Config
    from tinyeval.config import ModelConfig as ModelConfig
    from tinyeval.errors import TinyEvalError as TinyEvalError
    from tinyeval.records import Doc as Doc
    from tinyeval.records import GreedyUntil as GreedyUntil
    from tinyeval.records import GreedyUntilMultiTurn as GreedyUntilMultiTurn
    from tinyeval.records import Loglikelihood as Loglikelihood
    from tinyeval.records import LoglikelihoodRolling as LoglikelihoodRolling
    from tinyeval.records import LoglikelihoodSingleToken as LoglikelihoodSingleToken
    from tinyeval.tasks import PromptManager as PromptManager
    from tinyeval.tasks import Registry as Registry
    from tinyeval.tasks import Task as Task
    from tinyeval.tasks import TaskConfig as TaskConfig

_HOME = {
    "Config": "tinyeval.config",
    "Doc": "tinyeval.records",
    "GreedyUntil": "tinyeval.records",
    "GreedyUntilMultiTurn": "tinyeval.records",
    "Loglikelihood": "tinyeval.records",
    "LoglikelihoodRolling": "tinyeval.records",
    "LoglikelihoodSingleToken": "tinyeval.records",
    "ModelConfig": "tinyeval.config",
    "PromptManager": "tinyeval.tasks",
    "Registry": "tinyeval.tasks",
    "Run": "tinyeval.api",
    "Task": "tinyeval.tasks",
    "TaskConfig": "tinyeval.tasks",
    "TinyEvalError": "tinyeval.errors",
    "load": "tinyeval.api",
    "preview": "tinyeval.api",
    "run": "tinyeval.api",
    "run_async": "tinyeval.api",
    "score": "tinyeval.api",
}
__all__ = [
    "Config",
    "Doc",
    "GreedyUntil",
    "GreedyUntilMultiTurn",
    "Loglikelihood",
    "LoglikelihoodRolling",
    "LoglikelihoodSingleToken",
    "ModelConfig",
    "PromptManager",
    "Registry",
    "Run",
    "Task",
    "TaskConfig",
    "TinyEvalError",
    "load",
    "metrics",
    "preview",
    "run",
    "run_async",
    "score",
]


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used, so that `import tinyeval` costs next to nothing."""
    if name == "metrics":
        return importlib.import_module("tinyeval.metrics")
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'tinyeval' has no attribute {name!r}")
