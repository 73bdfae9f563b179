"""TaskConfig: everything that defines a task, as read from TOML or written in Python."""

from __future__ import annotations

import string
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import msgspec
import regex
from msgspec import Meta

from tinyeval.config import decode, read_text
from tinyeval.errors import DataError, TaskError
from tinyeval.grammars import check_schema
from tinyeval.records import Doc, Grammar
from tinyeval.tasks.rows import Row

PromptFunction = Callable[[Row, str], "Doc | list[Doc] | None"]
"""(row, task name) to a Doc, several Docs of one row, or None to skip the row."""


class Definition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of a task that can be written in TOML.

    Attributes:
        name: the task's name; with a suite, its identity is `suite|name`.
        suite: the suites it belongs to.
        data: a data file, relative to the definition.
        metric: names of metrics; their needs decide which requests are built.
        prompt: the query, with `{field}` for a field of the row (`{{` and `}}` for braces).
        references: the field that holds the acceptable answers (a string or a list of strings), or a list
            of fields: one reference, the JSON object of these fields.
        choices: the field that holds the choices, or the choices themselves.
        gold: the field that holds the right choice: its position, or its text.
        specific: further fields that a metric reads, by the name it knows them by, such as
            `{aliases = "other_names"}`; a row may lack them.
        cluster: the field that tells what several rows share, such as the text they ask about: the error of the
            score then counts these as dependent.
        question: the field that tells which question a row repeats, where one is asked several times.
        instruction: the leading part of the prompt that is common to all Docs.
        generation_size: new tokens at most; None leaves what the context has room for.
        stop_sequence: strings that end an answer.
        generation_grammar: what an answer must look like.
        truncate: what happens to a prompt that is too long: `middle` keeps its head and its tail,
            `error` records the sample as failed.
        chat: False keeps a completion-like task out of the chat template.
        language: BCP 47 tag of the questions.
        version: changes when scores can no longer be compared with earlier ones.
        description: one sentence for people.
        licence: SPDX identifier of the data.
    """

    name: str
    metric: list[str]
    suite: list[str] = msgspec.field(default_factory=lambda: ["custom"])
    data: str | None = None
    prompt: str | None = None
    references: str | list[str] | None = None
    choices: str | list[str] | None = None
    gold: str | None = None
    specific: dict[str, str] = {}
    cluster: str | None = None
    question: str | None = None
    instruction: str = ""
    generation_size: Annotated[int, Meta(ge=1)] | None = None
    stop_sequence: list[str] = []
    generation_grammar: Grammar | None = None
    truncate: Literal["middle", "error"] = "middle"
    chat: bool = True
    language: str = ""
    version: int = 0
    description: str = ""
    licence: str = ""


class TaskConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A task's definition and how a row becomes a Doc.

    Attributes:
        definition: the fields above.
        prompt_function: row to Doc.
        path: the data file.
    """

    definition: Definition
    prompt_function: PromptFunction
    path: Path

    @property
    def identity(self) -> str:
        """`suite|name`, with the first suite."""
        return f"{self.definition.suite[0]}|{self.definition.name}"


def load_task(path: Path, suite: str | None = None) -> TaskConfig:
    """Reads one task definition.

    Args:
        path: a TOML file.
        suite: the suite when the file names none: the folder it lies in.

    Raises:
        TaskError: the file is missing, malformed, or says something impossible.
    """
    try:
        raw = tomllib.loads(read_text(path, TaskError))
    except tomllib.TOMLDecodeError as e:
        raise TaskError(f"{path} is not valid TOML: {e}.") from e
    if suite:
        raw.setdefault("suite", [suite])
    definition = decode(raw, Definition, str(path), error=TaskError)
    _check(definition, path)
    assert definition.data is not None
    return TaskConfig(
        definition=definition, prompt_function=template_function(definition), path=path.parent / definition.data
    )


def template_function(definition: Definition) -> PromptFunction:
    """The prompt function that a definition's templates describe."""

    def build(row: Row, task_name: str) -> Doc:
        choices = _choices(definition, row)
        gold = (_gold_index(definition.gold, row, choices),) if definition.gold else ()
        return Doc(
            id="",
            query=fill(definition.instruction, row) + fill(definition.prompt or "", row),
            choices=choices,
            gold_index=gold,
            references=_references(definition.references, row),
            instruction=fill(definition.instruction, row),
            specific={name: row[field] for name, field in definition.specific.items() if row.get(field) is not None},
            cluster=str(_field(row, definition.cluster, "cluster")) if definition.cluster else None,
            question=str(_field(row, definition.question, "question")) if definition.question else None,
        )

    return build


def fill(template: str, row: Mapping[str, Any]) -> str:
    """`str.format` over the fields of a row; only plain names, so a template can't reach into objects.

    Raises:
        DataError: the row lacks a field.
    """
    for name in fields_of(template):
        _field(row, name, "the prompt")
    return template.format_map(row)


def fields_of(template: str) -> list[str]:
    """The field names in a template.

    Raises:
        ValueError: a brace is unbalanced, or a field is more than a plain name.
    """
    names: list[str] = []
    for _, name, spec, conversion in string.Formatter().parse(template):
        if name is None:
            continue
        if not name.isidentifier() or spec or conversion:
            raise ValueError(f"{{{name}}} is not a plain field name; write {{{{ and }}}} for braces")
        names.append(name)
    return names


def _check(definition: Definition, path: Path) -> None:
    def refuse(key: str, message: str) -> TaskError:
        return TaskError(f"{path}: {key} = {getattr(definition, key)!r}: {message}.")

    if definition.data is None:
        raise refuse("data", "name the data file, relative to this one")
    if definition.prompt is None:
        raise refuse("prompt", "write the question, with {field} for a field of the row")
    if not definition.metric:
        raise refuse("metric", "name at least one metric")
    if not definition.suite or any(not s or set(s) & set("|,:") for s in definition.suite):
        raise refuse("suite", "expected names without '|', ',' or ':'")
    if not definition.name or set(definition.name) & set("|,/\\"):
        raise refuse("name", "expected a name without '|', ',' or slashes")
    for key in ("prompt", "instruction"):
        try:
            fields_of(getattr(definition, key))
        except ValueError as e:
            raise refuse(key, str(e)) from e
    if definition.choices is not None and not all(definition.choices):
        raise refuse("choices", "expected a field or texts, none of them empty")
    if definition.gold and definition.choices is None:
        raise refuse("gold", "name the choices too: gold is the right one of them")
    grammar = definition.generation_grammar
    if grammar and definition.stop_sequence:
        raise refuse("stop_sequence", "a grammar ends the answer itself, and a stop string would cut it: leave one out")
    if grammar and grammar.type == "regex":
        if not isinstance(grammar.value, str):
            raise refuse("generation_grammar", "the value of a regex is a text")
        try:
            regex.compile(grammar.value)
        except regex.error as e:
            # TGI does not check it, and a bad one fails every request of its batch.
            raise refuse("generation_grammar", f"not a valid regular expression: {e}") from e
    if grammar and grammar.type == "json":
        try:
            check_schema(grammar.value)
        except ValueError as e:
            raise refuse("generation_grammar", f"not a valid JSON schema: {str(e).splitlines()[0]}") from e
        if not (isinstance(grammar.value, dict) and grammar.value.get("properties")):
            raise refuse("generation_grammar", "the schema needs `properties` at its top: some servers refuse others")


def _field(row: Mapping[str, Any], name: str, wanted_by: str) -> Any:
    if name not in row:
        raise DataError(f"{wanted_by} names the field {name!r}, but the row has only: {', '.join(map(str, row))}.")
    if row[name] is None:
        raise DataError(f"{wanted_by} names the field {name!r}, but it is null in this row.")
    return row[name]


def _references(wanted: str | list[str] | None, row: Row) -> tuple[str, ...]:
    if wanted is None:
        return ()
    if isinstance(wanted, list):
        value = {name: _field(row, name, "references") for name in wanted}
        return (msgspec.json.encode(value).decode(),)
    value = _field(row, wanted, "references")
    values = cast("list[Any]", value) if isinstance(value, list) else [value]
    if not values or not all(isinstance(v, str | int | float) for v in values):
        raise DataError(f"the field {wanted!r} = {value!r}: expected a text or a list of at least one text.")
    return tuple(str(v) for v in values)


def _choices(definition: Definition, row: Row) -> tuple[str, ...]:
    if definition.choices is None:
        return ()
    if isinstance(definition.choices, list):
        return tuple(definition.choices)
    value = _field(row, definition.choices, "choices")
    if not isinstance(value, list) or not value or not all(isinstance(v, str) and v for v in value):  # pyright: ignore[reportUnknownVariableType]
        raise DataError(f"the field {definition.choices!r} = {value!r}: expected a list of texts, none of them empty.")
    return tuple(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _gold_index(field: str, row: Row, choices: tuple[str, ...]) -> int:
    value = _field(row, field, "gold")
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(choices):
        return value
    if isinstance(value, str) and value in choices:
        return choices.index(value)
    raise DataError(
        f"the field {field!r} = {value!r}: expected one of the choices or its position from 0 to {len(choices) - 1}."
    )
