"""What is asked: task definitions, rows, Docs, prompts and requests."""

from tinyeval.tasks.config import Definition, TaskConfig
from tinyeval.tasks.prompt import PromptManager
from tinyeval.tasks.registry import Registry
from tinyeval.tasks.task import Task, digest

__all__ = ["Definition", "PromptManager", "Registry", "Task", "TaskConfig", "digest"]
