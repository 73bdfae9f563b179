"""PromptManager: a Doc to the text or the messages that are sent."""

from __future__ import annotations

from typing import NamedTuple

from tinyeval.records import Doc

Message = dict[str, str]
"""`role` and `content`, as chat templates read them."""


class Split(NamedTuple):
    """A query taken apart: the question and its leading instruction."""

    text: str
    instruction: str


class PromptManager:
    """Builds contexts from Docs.

    Args:
        chat: whether prompts go through the model's chat template.
    """

    def __init__(self, *, chat: bool) -> None:
        self.chat = chat

    def doc_to_text(self, doc: Doc) -> Split:
        """The query without its leading instruction, and that instruction.

        Raises:
            ValueError: the query does not begin with the instruction.
        """
        if not doc.query.startswith(doc.instruction):
            raise ValueError(f"Doc {doc.id}: the query does not begin with its instruction")
        return Split(doc.query[len(doc.instruction) :], doc.instruction)

    def messages(self, query: str) -> list[Message]:
        """A query as the one turn of a conversation."""
        return [{"role": "user", "content": query}]
