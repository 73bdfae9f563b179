"""The scheduler: bounded work in flight, every answer journalled when it arrives.

Each worker takes the next Doc, prepares it and asks its requests one after the other, so that the choices of a
question meet the server's prompt cache; nothing is prepared before a worker is free for it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Container, Iterator
from typing import NamedTuple, Protocol, TypeVar

from tinyeval.config import ModelConfig
from tinyeval.endpoints.protocol import Endpoint
from tinyeval.endpoints.retry import Limiter, Patience, persist
from tinyeval.errors import EndpointError, RunError, SampleError, TinyEvalError, TooLong
from tinyeval.inference.journal import UNPREPARED, Entry, Journal, Place, request_key
from tinyeval.inference.prepare import Prepared, Preparer
from tinyeval.records import Doc, GreedyUntil, Loglikelihood, Request, Response
from tinyeval.tasks import Task

T = TypeVar("T")

AUTO_CONCURRENCY = 64
"""Requests in flight at most when the server says it takes more."""


class Work(NamedTuple):
    """A task for one model."""

    task: Task
    docs: list[Doc]
    journal: Journal


class Observer(Protocol):
    """Who watches a run; every method returns at once."""

    def begin(self, model: str, task: str, docs: int, done: int) -> None:
        """A task of `docs` Docs, `done` of them finished before."""
        ...

    def answered(self, model: str, task: str, entry: Entry) -> None:
        """A request has ended."""
        ...

    def finished(self, model: str, task: str) -> None:
        """A Doc has ended: all its requests have."""
        ...


def places(endpoint: Endpoint, model: ModelConfig) -> int:
    """Requests in flight: what the settings say, or what the server takes."""
    if model.concurrency != "auto":
        return model.concurrency
    return max(1, min(AUTO_CONCURRENCY, endpoint.identity.max_concurrent_requests))


def is_done(journalled: Container[Place], task: Task, doc: Doc) -> bool:
    """Whether every request of a Doc has ended; that they had the same prompts is checked when one has not."""
    count = len(task.construct_requests(doc, ""))
    return Place(doc.id, UNPREPARED) in journalled or all(Place(doc.id, i) in journalled for i in range(count))


class Scheduler:
    """Asks one endpoint everything that its journals do not hold yet.

    Args:
        name: the model's.
        endpoint: who is asked.
        model: its settings.
        observer: who watches.
        patience: with failures that pass.
    """

    def __init__(
        self, name: str, endpoint: Endpoint, model: ModelConfig, observer: Observer, patience: Patience | None = None
    ) -> None:
        self._name = name
        self._endpoint = endpoint
        self._model = model
        self._observer = observer
        self._patience = patience or Patience()
        self._limiter = Limiter(places(endpoint, model))
        self._preparing = Limiter(places(endpoint, model))

    async def run(self, work: list[Work]) -> None:
        """Asks until everything is journalled.

        Raises:
            EndpointError: the server can't be used any more; what was answered is kept.
            RunError: the journal can't be written, or belongs to other prompts.
        """
        queue = self._queue(work)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._limiter.most, sum(len(item.docs) for item in work))):
                    group.create_task(self._work(queue))
        except* TinyEvalError as failures:
            first: BaseException = failures
            while isinstance(first, BaseExceptionGroup):
                first = first.exceptions[0]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            raise first from None  # pyright: ignore[reportUnknownArgumentType]

    def _queue(self, work: list[Work]) -> Iterator[tuple[Work, Preparer, Doc]]:
        for item in work:
            done = sum(is_done(item.journal.done, item.task, d) for d in item.docs)
            self._observer.begin(self._name, item.task.name, len(item.docs), done)
        for item in work:
            docs = [d for d in item.docs if not is_done(item.journal.done, item.task, d)]
            preparer = Preparer(self._endpoint, self._model, item.task)
            for doc in docs:
                yield item, preparer, doc

    async def _work(self, queue: Iterator[tuple[Work, Preparer, Doc]]) -> None:
        for work, preparer, doc in queue:
            try:
                prepared = await self._persist(lambda p=preparer, d=doc: p.prepare(d), self._preparing)
            except SampleError as e:
                self._note(work, Entry(doc=doc.id, index=UNPREPARED, key="", error=str(e), attempts=e.attempts))
            else:
                for index, request in enumerate(prepared[0].requests):
                    await self._ask(work, preparer, doc, index, request, prepared[0])
            self._observer.finished(self._name, work.task.name)

    async def _ask(
        self, work: Work, preparer: Preparer, doc: Doc, index: int, request: Request, prepared: Prepared
    ) -> None:
        key, place = request_key(request), Place(doc.id, index)
        if place in work.journal.done:
            if work.journal.done[place] != key:
                raise RunError(
                    f"{work.task.name}, Doc {doc.id}: the prompt is not the one this run has asked before; the model's "
                    "chat template or tokenizer has changed. Choose another folder with -o."
                )
            return
        began = time.monotonic()
        removed = prepared.removed
        grammar = isinstance(request, GreedyUntil) and request.grammar is not None
        response: Response | None = None
        error: str | None = None
        attempts = 1
        try:
            try:
                response, attempts = await self._persist(lambda: self._send(request), self._limiter, grammar)
            except TooLong as e:
                if len(prepared.requests) > 1:  # the choices of a question are compared under one context
                    raise
                # The server counts more than we do: once more with so much less, and a margin.
                again = e.excess + 16
                shorter, _ = await self._persist(lambda: preparer.prepare(doc, less=again), self._preparing)
                request, removed = shorter.requests[index], shorter.removed
                response, attempts = await self._persist(lambda: self._send(request), self._limiter, grammar)
                attempts += e.attempts
        except SampleError as e:
            error, attempts = str(e), e.attempts
        assert isinstance(request, GreedyUntil | Loglikelihood)
        entry = Entry(
            doc=doc.id,
            index=index,
            key=key,
            prompt=request.context,
            continuation=request.continuation if isinstance(request, Loglikelihood) else None,
            removed=removed,
            response=response,
            error=error,
            attempts=attempts,
            seconds=round(time.monotonic() - began, 4),
        )
        self._note(work, entry)

    async def _send(self, request: Request) -> Response:
        match request:
            case GreedyUntil():
                return await self._endpoint.generate(request)
            case Loglikelihood():
                return await self._endpoint.loglikelihood(request)
            case _:
                raise EndpointError(f"{type(request).__name__} requests are not supported by any dialect yet.")

    async def _persist(self, ask: Callable[[], Awaitable[T]], limiter: Limiter, isolate: bool = False) -> tuple[T, int]:
        return await persist(
            ask,
            limiter,
            self._patience,
            isolate=isolate,
            check_alive=self._endpoint.check_alive,
            harmless=lambda: self._endpoint.generate(GreedyUntil(context="1", generation_size=1)),
        )

    def _note(self, work: Work, entry: Entry) -> None:
        work.journal.append(entry)
        self._observer.answered(self._name, work.task.name, entry)
