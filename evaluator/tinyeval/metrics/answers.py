"""Exact answers: whole texts, classes and JSON fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec


def exact_match(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """1 if both texts are equal after stripping white space at their ends.

    Source: lighteval 0.8 exact_match, with an empty text equal to an empty reference.
    """
    return float(prediction.strip() == reference.strip())


def class_accuracy(prediction: str, reference: str, choices: Sequence[str]) -> float:
    """1 if the class that the prediction names first is the reference.

    Letter case does not matter; where two names begin at the same place ("date", "date of birth") the longer one
    is meant.

    Source: own definition; unlike LongBench's `classification` it pays for one class only.
    """
    text = prediction.casefold()
    places = [(at, -len(c), c) for c in choices if (at := text.find(c.casefold())) >= 0]
    return float(bool(places) and min(places)[2] == reference)


def classification(prediction: str, reference: str, choices: Sequence[str]) -> float:
    """1 / number of classes that the prediction names, if the reference is among them.

    Case-sensitive. Names that are part of the reference are struck from the list while it is walked, so the one
    after a struck name is skipped, as in the official code; `classification_fixed` strikes all of them.

    Source: classification_score, THUDM/LongBench@2e00731f.
    """
    named = [c for c in choices if c in prediction]
    at = 0
    while at < len(named):
        if named[at] in reference and named[at] != reference:
            named.remove(named[at])
        at += 1
    return 1.0 / len(named) if reference in named else 0.0


def json_fields(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """The share of the reference's fields that the predicted JSON object has with exactly the same value.

    A text that is no JSON object has none. Numbers equal by value (36 and 36.0), never numbers and texts.

    Source: own definition.
    """
    wanted = cast("dict[str, Any]", msgspec.json.decode(reference))
    try:
        found = msgspec.json.decode(prediction.strip())
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return 0.0
    if not isinstance(found, dict):
        return 0.0
    right = sum(k in found and _same(found[k], v) for k, v in wanted.items())
    return right / len(wanted)


def json_exact(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """1 if every field of the reference is right: `json_fields` without partial credit.

    Source: own definition.
    """
    return float(json_fields(prediction, reference) == 1.0)


def no_class(reference: str, choices: Sequence[str]) -> str | None:
    """Why `reference` is no class, if it is none."""
    return None if reference in choices else f"the reference {reference!r} is none of the choices {list(choices)!r}"


def no_classes(reference: str, choices: Sequence[str]) -> str | None:
    """That there are no classes, if there are none."""
    return None if choices else "it needs choices: the classes"


def no_fields(reference: str, choices: Sequence[str]) -> str | None:
    """Why `reference` has no fields to compare, if it has none."""
    try:
        fields = msgspec.json.decode(reference)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        fields = None
    if isinstance(fields, dict) and fields:
        return None
    return f"the reference {reference[:80]!r} is no JSON object with fields"


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        x, y = cast("dict[str, Any]", a), cast("dict[str, Any]", b)
        return x.keys() == y.keys() and all(_same(x[k], y[k]) for k in x)
    if isinstance(a, list) and isinstance(b, list):
        v, w = cast("list[Any]", a), cast("list[Any]", b)
        return len(v) == len(w) and all(map(_same, v, w))
    return isinstance(a, bool) == isinstance(b, bool) and a == b
