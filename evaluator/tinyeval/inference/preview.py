"""A dry run: all prompts built, rendered and counted; nothing is generated and nothing written."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import NamedTuple

from tinyeval.config import ModelConfig
from tinyeval.endpoints.protocol import Endpoint
from tinyeval.endpoints.retry import Limiter, Patience, persist
from tinyeval.errors import SampleError
from tinyeval.inference.plan import Plan
from tinyeval.inference.prepare import Preparer
from tinyeval.inference.session import connect_all, misfits
from tinyeval.records import Doc, GreedyUntil, Loglikelihood
from tinyeval.tasks import Task


class Preview(NamedTuple):
    """What a dry run shows of a task for a model.

    Attributes:
        model: the model's name.
        task: the task's.
        docs: how many would be asked.
        prompt: the first one's prompt, as it would be sent.
        tokens: the prompts' token counts.
        truncated: how many would be cut.
        problem: the first thing that would fail. What a server can do (grammars, log-likelihoods) is not proved
            here: that would generate.
    """

    model: str
    task: str
    docs: int
    prompt: str
    tokens: list[int]
    truncated: int
    problem: str | None


async def preview_plan(plan: Plan) -> list[Preview]:
    """A Preview a model and task.

    Raises:
        EndpointError: a server can't be used.
    """
    async with AsyncExitStack() as stack:
        endpoints = await connect_all(plan, None, stack)
        return [
            await _preview(name, endpoint, plan.config.models[name], task, plan.docs[task.name])
            for name, endpoint in endpoints.items()
            for task in plan.tasks.values()
        ]


async def _preview(name: str, endpoint: Endpoint, model: ModelConfig, task: Task, docs: list[Doc]) -> Preview:
    problems = misfits(task, endpoint, model)
    if problems:
        return Preview(name, task.name, len(docs), "", [], 0, problems[0])
    preparer = Preparer(endpoint, model, task)
    first, counts, truncated, problem = "", list[int](), 0, None
    for doc in docs:
        try:
            prepared, _ = await persist(lambda d=doc: preparer.prepare(d, count=True), Limiter(1), Patience())
        except SampleError as e:
            problem = problem or f"Doc {doc.id}: {e}"
            continue
        request = prepared.requests[0]
        if not first and isinstance(request, GreedyUntil | Loglikelihood):
            first = request.context
        counts.append(prepared.tokens or 0)
        truncated += prepared.removed > 0
    return Preview(name, task.name, len(docs), first, counts, truncated, problem)
