"""A Doc to its requests for one endpoint: prompt, chat template, truncation."""

from __future__ import annotations

from typing import NamedTuple

from tinyeval.config import ModelConfig
from tinyeval.endpoints.protocol import Endpoint
from tinyeval.endpoints.truncate import fit
from tinyeval.errors import SampleError
from tinyeval.records import Doc, Loglikelihood, Request
from tinyeval.tasks import PromptManager, Task


class Prepared(NamedTuple):
    """The requests of one Doc.

    Attributes:
        requests: in the order of `Task.construct_requests`.
        tokens: of the prompt, if they were counted.
        removed: tokens that truncation took out.
    """

    requests: list[Request]
    tokens: int | None
    removed: int


class Preparer:
    """Prepares the Docs of one task for one endpoint.

    Args:
        endpoint: who is asked.
        model: its settings.
        task: what is asked.
    """

    def __init__(self, endpoint: Endpoint, model: ModelConfig, task: Task) -> None:
        wanted = model.chat if model.chat is not None else endpoint.has_chat_template
        self._manager = PromptManager(chat=wanted and task.config.definition.chat)
        self._endpoint = endpoint
        self._task = task
        self._limit = endpoint.identity.max_total_tokens

    async def prepare(self, doc: Doc, *, count: bool = False, less: int = 0) -> Prepared:
        """Builds, truncates and counts.

        Args:
            doc: the question.
            count: count the tokens also of a prompt that surely fits.
            less: tokens to stay under the limit, after a server has refused.

        Raises:
            SampleError: it can't fit.
        """
        definition = self._task.config.definition

        async def wrap(text: str) -> str:
            if self._manager.chat:
                return await self._endpoint.render_chat(self._manager.messages(text))
            return text

        room, scored = self._answer_tokens(doc)
        budget = self._limit - max(room, scored)
        if self._endpoint.identity.max_input_tokens is not None:  # what is scored is part of the input
            budget = min(budget, self._endpoint.identity.max_input_tokens - scored)
        if budget < 2:
            raise SampleError(
                f"an answer of {max(room, scored)} tokens leaves no room for a prompt in {self._limit} tokens"
            )
        fitted = await fit(doc.query, wrap, self._endpoint, budget - less, definition.truncate, count=count)
        return Prepared(self._task.construct_requests(doc, fitted.prompt), fitted.tokens, fitted.removed)

    def _answer_tokens(self, doc: Doc) -> tuple[int, int]:
        """Tokens to keep free behind the prompt: for the longest answer, and for the longest continuation scored."""
        generated = scored = 0
        for request in self._task.construct_requests(doc, ""):
            if isinstance(request, Loglikelihood):
                scored = max(scored, len(request.continuation.encode()) + 2)  # a token stands for at least a byte
            else:
                generated = self._task.config.definition.generation_size or 1
        return generated, scored
