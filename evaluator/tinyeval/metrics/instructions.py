"""Instructions about an answer's form that code can check: IFEval's 25, for English and Chinese alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from tinyeval.errors import nearest
from tinyeval.metrics import instructions_checks as checks
from tinyeval.metrics.languages import CODES

Check = Callable[..., bool]
Instruction = tuple[str, Mapping[str, Any]]
"""An id and its arguments."""

_CHECKS: Mapping[str, tuple[Check, str]] = {
    "keywords:existence": (checks.existence, "keywords"),
    "keywords:frequency": (checks.frequency, "keyword frequency relation"),
    "keywords:forbidden_words": (checks.forbidden_words, "forbidden_words"),
    "keywords:letter_frequency": (checks.letter_frequency, "letter let_frequency let_relation"),
    "language:response_language": (checks.response_language, "language"),
    "length_constraints:number_sentences": (checks.number_sentences, "num_sentences relation"),
    "length_constraints:number_paragraphs": (checks.number_paragraphs, "num_paragraphs"),
    "length_constraints:number_words": (checks.number_words, "num_words relation"),
    "length_constraints:nth_paragraph_first_word": (
        checks.nth_paragraph_first_word,
        "num_paragraphs nth_paragraph first_word",
    ),
    "detectable_content:number_placeholders": (checks.number_placeholders, "num_placeholders"),
    "detectable_content:postscript": (checks.postscript, "postscript_marker"),
    "detectable_format:number_bullet_lists": (checks.number_bullet_lists, "num_bullets"),
    "detectable_format:constrained_response": (checks.constrained_response, "options?"),
    "detectable_format:number_highlighted_sections": (checks.number_highlighted_sections, "num_highlights"),
    "detectable_format:multiple_sections": (checks.multiple_sections, "section_spliter num_sections"),
    "detectable_format:json_format": (checks.json_format, ""),
    "detectable_format:title": (checks.title, ""),
    "combination:two_responses": (checks.two_responses, ""),
    "combination:repeat_prompt": (checks.repeat_prompt, "prompt_to_repeat"),
    "startend:end_checker": (checks.end_checker, "end_phrase"),
    "startend:quotation": (checks.quotation, ""),
    "change_case:capital_word_frequency": (checks.capital_word_frequency, "capital_frequency capital_relation"),
    "change_case:english_capital": (checks.english_capital, ""),
    "change_case:english_lowercase": (checks.english_lowercase, ""),
    "punctuation:no_comma": (checks.no_comma, ""),
}
"""An instruction's id to its check and the arguments it takes; ? marks one that may be left out."""

IDS = tuple(_CHECKS)
"""The ids of the instructions that can be checked."""

RELATIONS = ("at least", "less than")
_LISTS = ("keywords", "forbidden_words", "options")
_COUNTS = ("frequency", "let_frequency", "capital_frequency")


def instruction_strict(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """The share of the instructions that the answer follows; an empty answer follows none.

    The reference is a JSON list of instructions, each with IFEval's id and arguments, or one alone:
    [{"id": "length_constraints:number_words", "relation": "at least", "num_words": 100}]. A row of IFEval's data
    (instruction_id_list and kwargs) does as well. Arguments that are null count as left out. A reference without
    instructions gives 0; one that is not of this form makes the sample fail.

    "relation" is "at least" or "less than". The instructions, with their arguments:

    keywords:existence (keywords) and keywords:frequency (keyword, frequency, relation): also inside words.
    keywords:forbidden_words (forbidden_words): as whole words; Chinese ones anywhere.
    keywords:letter_frequency (letter, let_frequency, let_relation): any character.
    language:response_language (language): by script, and by frequent words where languages share one; short texts
    may pass for several languages. Mixed texts are what more than half of them is in. zh, zh-cn and zh-tw are one.
    length_constraints:number_sentences (num_sentences, relation): up to . ! ? … or 。！？; not after abbreviations,
    initials and the numbers of lists, never for a line break alone.
    length_constraints:number_paragraphs (num_paragraphs): exactly so many, *** between them.
    length_constraints:number_words (num_words, relation): runs of letters and digits, so "don't" is two; Chinese is
    cut by jieba; Japanese kana and Thai are not cut, so a run is one word.
    length_constraints:nth_paragraph_first_word (num_paragraphs, nth_paragraph, first_word): blank lines between
    paragraphs.
    detectable_content:number_placeholders (num_placeholders): at least so many [ ], ［ ］ or 【 】.
    detectable_content:postscript (postscript_marker): the marker anywhere.
    detectable_format:number_bullet_lists (num_bullets): exactly so many lines with *, - or • first.
    detectable_format:constrained_response (options): contains one of them; left out, they are "My answer is yes.",
    "My answer is no." and "My answer is maybe.". IFEval has no such argument; answers in Chinese need it.
    detectable_format:number_highlighted_sections (num_highlights): at least so many *parts* or **parts**.
    detectable_format:multiple_sections (section_spliter, num_sections): at least so many, such as Section 1; at the
    beginning of a line also 部分一 and 第一部分.
    detectable_format:json_format: any JSON value of up to 200 levels, with or without a Markdown fence.
    detectable_format:title: <<title>>; 《》 is none.
    combination:two_responses: two different answers, ****** between them.
    combination:repeat_prompt (prompt_to_repeat): begins with it.
    startend:end_checker (end_phrase): ends with it, apart from quotation marks.
    startend:quotation: all in " ", “ ”, 「 」 or 『 』.
    change_case:capital_word_frequency (capital_frequency, capital_relation): words all in capitals.
    change_case:english_capital, change_case:english_lowercase: all letters, and the language is English.
    punctuation:no_comma: neither , nor ，; 、 is allowed.

    Source: Zhou et al. 2023, "Instruction-Following Evaluation for Large Language Models"; checked without the
    packages langdetect and NLTK, so languages, sentences and words in capitals may differ from the paper's code.
    """
    return _share(_followed(prediction, reference, loose=False))


def prompt_strict(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """1 if the answer follows all instructions of the reference; see instruction_strict.

    Source: Zhou et al. 2023, "Instruction-Following Evaluation for Large Language Models".
    """
    return _all(_followed(prediction, reference, loose=False))


def instruction_loose(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """The share of the instructions that the answer follows as it is or in one of seven relaxed versions.

    They lack the first line, the last line or both, and that with and without asterisks, or the asterisks alone.
    Another version may follow another instruction. See instruction_strict for the reference.

    Source: Zhou et al. 2023, "Instruction-Following Evaluation for Large Language Models".
    """
    return _share(_followed(prediction, reference, loose=True))


def prompt_loose(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """1 if instruction_loose is 1: the answer or relaxed versions of it follow all instructions of the reference.

    Source: Zhou et al. 2023, "Instruction-Following Evaluation for Large Language Models".
    """
    return _all(_followed(prediction, reference, loose=True))


def unknown_instruction(reference: str, choices: Sequence[str]) -> str | None:
    """Why the reference's instructions can't be checked, if they can't."""
    try:
        return None if _read(reference) else "the reference has no instructions"
    except ValueError as e:
        return str(e)


def _share(followed: Sequence[bool]) -> float:
    return sum(followed) / len(followed) if followed else 0.0


def _all(followed: Sequence[bool]) -> float:
    return float(bool(followed) and all(followed))


def _followed(prediction: str, reference: str, *, loose: bool) -> list[bool]:
    versions = [v for v in (_relaxed(prediction) if loose else [prediction]) if v.strip()]
    return [any(_CHECKS[name][0](v, **given) for v in versions) for name, given in _read(reference)]


def _relaxed(text: str) -> list[str]:
    lines = text.split("\n")
    parts = [text, *("\n".join(p).strip() for p in (lines[1:], lines[:-1], lines[1:-1]))]
    return list(dict.fromkeys([*parts, *(p.replace("*", "") for p in parts)]))


def _read(reference: str) -> list[Instruction]:
    """The reference's instructions.

    Raises:
        ValueError: it can't be read; the message is a phrase.
    """
    if not reference.strip():
        return []
    try:
        value = json.loads(reference)
    except (ValueError, RecursionError):
        value = None
    rows = _rows(value)
    if rows is None:
        raise ValueError(f"the reference {reference[:80]!r} is no JSON list of instructions with ids")
    return [_instruction(name, given) for name, given in rows]


def _rows(value: Any) -> list[Instruction] | None:
    """Pairs of id and arguments, unchecked; None where the value has another form."""
    if isinstance(value, dict) and "instruction_id_list" in value:
        row = cast("dict[str, Any]", value)
        names, given = row["instruction_id_list"], row.get("kwargs")
        if not isinstance(names, list) or not isinstance(given, list):
            return None
        pairs = list(zip(cast("list[Any]", names), cast("list[Any]", given), strict=False))
        whole = len(pairs) == len(cast("list[Any]", names)) == len(cast("list[Any]", given))
        return pairs if whole and all(isinstance(n, str) and isinstance(g, dict) for n, g in pairs) else None
    found: list[Instruction] = []
    for item in cast("list[Any]", value if isinstance(value, list) else [value]):
        name = cast("dict[str, Any]", item).get("id") if isinstance(item, dict) else None
        if not isinstance(name, str):
            return None
        found.append((name, {k: v for k, v in cast("dict[str, Any]", item).items() if k != "id"}))
    return found


def _instruction(name: str, given: Mapping[str, Any]) -> Instruction:
    if name not in _CHECKS:
        raise ValueError(f"no instruction is named {name!r}{nearest(name, IDS)}")
    known = _CHECKS[name][1].split()
    arguments = {k: v for k, v in given.items() if v is not None}
    for key in arguments:
        if key not in known and f"{key}?" not in known:
            raise ValueError(f"the instruction {name} takes no {key!r}")
    for key in known:
        if not key.endswith("?") and key not in arguments:
            raise ValueError(f"the instruction {name} needs {key!r}")
    for key, value in arguments.items():
        if wanted := _wanted(key, value):
            raise ValueError(f"{key!r} of the instruction {name} is {str(value)[:80]!r}: it must be {wanted}")
    whole = {k: int(v) if isinstance(v, float) else v for k, v in arguments.items()}
    if whole.get("nth_paragraph", 0) > whole.get("num_paragraphs", 0):
        raise ValueError(f"the instruction {name} asks for a paragraph after the last one")
    return name, whole


def _wanted(key: str, value: Any) -> str | None:
    """What an argument must be, if it isn't."""
    text = isinstance(value, str) and bool(value.strip())
    if key in _LISTS:
        texts = cast("list[Any]", value) if isinstance(value, list) else []
        right = bool(texts) and all(isinstance(t, str) and t.strip() for t in texts)
        return None if right else "a list of texts"
    if key in _COUNTS or key.startswith(("num_", "nth_")):
        least = 1 if key.startswith("nth_") else 0
        number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else -1.0
        return None if number >= least and number % 1 == 0 else f"a whole number of {least} or more"
    if key.endswith("relation"):
        return None if value in RELATIONS else " or ".join(map(repr, RELATIONS))
    if key == "language":
        return None if text and value in CODES else f"one of {', '.join(sorted(CODES))}"
    if key == "letter":
        return None if text and len(value) == 1 else "one character"
    return None if text else "a text"
