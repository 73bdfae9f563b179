"""Supervised fine-tuning files: rows of instruction, input and output are a task as they are."""

from __future__ import annotations

from pathlib import Path

from tinyeval.errors import DataError
from tinyeval.records import Doc
from tinyeval.tasks.config import Definition, TaskConfig
from tinyeval.tasks.rows import Row

_METRICS = {"zh": ["rouge_zh", "qa_f1_zh"], "en": ["rouge", "qa_f1"]}


def sft_task(language: str, path: Path) -> TaskConfig:
    """The task `custom_zh` or `custom_en` over a file of instruction/input/output rows.

    Args:
        language: `zh` or `en`: decides how words are found when the answers are compared.
        path: JSON array, JSON Lines, concatenated JSON objects, CSV or TSV.
    """
    definition = Definition(
        name=f"custom_{language}:{path.stem}",
        metric=_METRICS[language],
        data=str(path.name),
        generation_size=256,
        language=language,
        description=f"Instruction, input and output of {path.name}.",
    )
    return TaskConfig(definition=definition, prompt_function=sft_doc, path=path)


def sft_doc(row: Row, task_name: str) -> Doc:
    """Instruction and input, on lines of their own, ask; the output is the reference.

    Raises:
        DataError: a field is missing or no text.
    """
    for name in ("instruction", "output"):
        if name not in row:
            raise DataError(f"the field {name!r} is missing; the row has only: {', '.join(map(str, row))}.")
    parts = [row["instruction"], row.get("input") or "", row["output"]]
    for name, part in zip(("instruction", "input", "output"), parts, strict=True):
        if not isinstance(part, str):
            raise DataError(f"the field {name!r} = {part!r}: expected a text.")
    instruction, question, output = parts
    if not output.strip():
        raise DataError("the field 'output' is empty: there is nothing to compare an answer with.")
    query = "\n".join(p for p in (instruction, question) if p.strip())
    return Doc(id="", query=query, references=(output,))
