"""Grammars, checked locally: whether an answer is what its grammar admits."""

from __future__ import annotations

import functools
from typing import Any

import jsonschema_rs
import msgspec
import regex

from tinyeval.records import Grammar


def obeys(text: str, grammar: Grammar) -> bool:
    """Whether a whole answer is admitted: a regular expression matches all of it, a schema validates it."""
    if grammar.type == "regex":
        return regex.fullmatch(str(grammar.value), text) is not None
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return _validator(msgspec.json.encode(grammar.value)).is_valid(value)


def check_schema(schema: Any) -> None:
    """Checks that a value is a JSON schema that needs nothing from elsewhere.

    Raises:
        ValueError: it is not.
    """
    _validator(msgspec.json.encode(schema))


@functools.lru_cache(maxsize=64)
def _validator(schema: bytes) -> Any:
    return jsonschema_rs.validator_for(msgspec.json.decode(schema), retriever=_refuse)


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri} is elsewhere: a schema must hold all that it refers to")


def may_obey(text: str, grammar: Grammar) -> bool:
    """Whether an answer that was cut off may be the beginning of an admitted one.

    Of a schema only so much is checked that the text begins like an object.
    """
    if grammar.type == "regex":
        return regex.fullmatch(str(grammar.value), text, partial=True) is not None
    return not text.strip() or text.lstrip().startswith("{")
