"""The judge's task: whether an answer means the same as the references of its question, asked in both orders."""

from __future__ import annotations

from tinyeval.records import Doc, Grammar
from tinyeval.tasks.config import Definition, TaskConfig
from tinyeval.tasks.task import Task

GRAMMAR = Grammar(
    type="json",
    value={
        "type": "object",
        "properties": {"verdict": {"type": "string", "enum": ["same", "different"]}},
        "required": ["verdict"],
        "additionalProperties": False,
    },
)

_PROMPTS = {
    "en": (
        "Two answers to one question are compared. Do they mean the same?\n\n"
        "Question:\n{question}\n\nAnswer A:\n{a}\n\nAnswer B:\n{b}\n\n"
        "Same: a reader learns the same from both as to the question; wording, language, length and explanations do "
        "not matter. Different: one of them denies, contradicts or lacks what the other says, or does not answer.\n"
        'Reply with JSON, {{"verdict": "same"}} or {{"verdict": "different"}}.'
    ),
    "zh": (
        "请比较同一个问题的两个回答，判断它们的意思是否相同。\n\n"
        "问题：\n{question}\n\n回答A：\n{a}\n\n回答B：\n{b}\n\n"
        "相同：就这个问题而言，读者从两个回答中得知的内容一样；措辞、语言、长短和补充说明都不影响判断。"
        "不同：其中一个否定、违背或缺少另一个所说的内容，或者没有回答问题。\n"
        '请只用JSON回答：{{"verdict": "same"}}表示相同，{{"verdict": "different"}}表示不同。'
    ),
}
_ANY = {"en": "\n(or: {others})", "zh": "\n（或：{others}）"}


def verdict_task(task: Task) -> Task:
    """The judge's task for the answers to `task`, of the same name."""
    definition = Definition(
        name=task.config.definition.name,
        suite=task.config.definition.suite,
        metric=["exact_match"],
        generation_size=32,
        generation_grammar=GRAMMAR,
        language=task.config.definition.language,
    )
    return Task(TaskConfig(definition=definition, prompt_function=lambda row, name: None, path=task.config.path))


def verdict_ids(doc: str) -> tuple[str, str]:
    """The ids of a Doc's two questions to the judge: reference first, answer first."""
    return f"{doc}#0", f"{doc}#1"


def verdict_docs(task: Task, doc: Doc, answer: str) -> list[Doc]:
    """A Doc's two questions to the judge; in Chinese for a Chinese task.

    Args:
        task: what was asked.
        doc: the question.
        answer: what the model said.
    """
    language = "zh" if task.config.definition.language.startswith("zh") else "en"
    first, *others = doc.references
    reference = first + (_ANY[language].format(others="; ".join(others)) if others else "")
    orders = (reference, answer), (answer, reference)
    return [
        Doc(id=name, query=_PROMPTS[language].format(question=doc.query, a=a, b=b), references=("same",))
        for name, (a, b) in zip(verdict_ids(doc.id), orders, strict=True)
    ]
