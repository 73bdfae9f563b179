"""What a text says about a name that stands in it: asserts it, denies it, or leaves it open.

Cues and their scope, as in NegEx: a cue reaches from its place to the end of its clause, or to a word that ends its
scope ("but", 而是). Two negations in one scope affirm. Texts are expected folded: half-width, simplified, and with
straight quotes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Literal, NamedTuple

import regex

Status = Literal["asserted", "denied", "open"]

_PSEUDO = (
    r"no doubt|without (?:an?y? )?doubt|not (?:only|just|merely|surprisingly)|no wonder|no\. ?(?=\d)|"
    r"(?:none|nobody|no one|nothing) (?:but|except|other than)|why not|if not all|"
    r"除了?此之?外|除了?[^。!?\n]{1,40}?外[,、]?[^。!?\n,]{0,20}?[还也又另]|"
    r"不(?:仅仅?|但|只|光|单|过|久|断|同|少|错|得不|禁|论|管|愧|料|由得|约而同|可或缺|知不觉)|无(?:疑|论|非)|没(?:错|收)|"
    r"(?:毫无|没有|毋庸|不容|无可)(?:任何)?(?:疑问|置疑|疑义)|未(?:来|免|必|婚|成年)"
)
_OPEN = (
    r"whether|unsure|unclear|unknown|uncertain|undetermined|(?:do not|don't|didn't|did not) know|"
    r"(?:cannot|can't|can not|unable to|impossible to) "
    r"(?:be (?:determined|known|said|inferred)|determine|answer|tell|say)|"
    r"(?:does not|doesn't|not) (?:say|state|mention|specify|tell)|"
    r"是否|是不是|有没有|不知|不清楚|不确定|不明确|不详|难以|无法|无从|未知|(?:没有|未|没)(?:明确)?(?:说明|提及|提到|给出|指出)|"
    r"不能(?:判断|确定|肯定|得知)"
)
_RESET = r"nor|rather than|instead of|而不是|而非|也不是?|并不是|并非|绝非"
_NEGATION = (
    r"not|\w{1,12}n't|cannot|never|no|neither|none|nobody|nothing|without|except|excluding|other than|apart from|"
    r"unlike|contrary to|far from|anything but|(?:fail|refuse|cease)[sd]?(?:ed)? to|den(?:y|ies|ied)|"
    r"rul(?:e|es|ed|ing) out|isnt|wasnt|arent|didnt|doesnt|dont|"
    r"不可能|没有|从未|尚未|未|没|不|无(?=关)|非(?=为|属|是)|除了?(?!夕|非|法|以)|排除|否认|拒绝"
)
_END = (
    r"but|however|although|though|until|whereas|yet|instead(?! of)|"
    r"而是|但是?|却|然而|反而|才是?|实为|(?<!不)而(?![不非且])"
)
_HEDGE = r"maybe|perhaps|possibly|might|could be|可能|也许|或许|大概"
_EITHER = r"either|要么|不是(?=[^,。;!?\n]{1,20}(?:就是|便是|即是))"
_SIGN = r"≠|!="


def _either_way(words: str) -> str:
    """Chinese alternatives as they are, others as whole words."""
    return rf"(?:(?<![a-z]){words})(?![a-z])"


_CUE = regex.compile(
    "|".join(
        f"(?P<{name}>{_either_way(f'(?:{words})')})"
        for name, words in (
            ("pseudo", _PSEUDO),
            ("either", _EITHER),
            ("open", _OPEN),
            ("reset", _RESET),
            ("negation", f"{_SIGN}|{_NEGATION}"),
            ("end", _END),
            ("hedge", _HEDGE),
        )
    ),
    regex.IGNORECASE,
)
_CLAUSE = regex.compile(r"[;!?。！？；，\n—]|,(?!\d)|:(?!\d)|\.(?=\s|$)")
_SENTENCE = regex.compile(r"[!?。！？；\n]|;|\.(?=\s|$)")
_SUBJECT = regex.compile(
    r"[\"'”’」』》)\]*\s]*(?:"
    r"(?:(?:is|was|are|were|do|does|did|has|have|had|can|could|will|would|should)\s+(?:not|never)|\w+n't|never|cannot)\b"
    r"(?!\s+(?:only|just|merely))|"
    r"(?:并|都|也|均|从|从来|已经?|被|目前|实际上)*(?:不(?![仅但只光单过久断同少错得论管])|没(?!错)|未(?![来免必婚成])|绝?非)|"
    r"(?:\w+ ){0,2}(?:excluded|ruled out|incorrect|wrong|false)\b|(?:已|被)*(?:排除|除外|否定))",
    regex.IGNORECASE,
)
_FIRST_WORD_YES = r"yes|yep|yeah|true|correct|indeed|certainly|是的|是|对的|对|正确|没错|属实|能|可以|会|有|确实|的确"
_FIRST_WORD_NO = r"no|nope|false|incorrect|否|不是的?|不对|不能|不可以|不会|不|没有|并没有|并非|不属实|错误|错"
_YES = frozenset(_FIRST_WORD_YES.replace("不是的?", "不是|不是的").split("|"))
_NO = frozenset(_FIRST_WORD_NO.replace("不是的?", "不是|不是的").split("|"))
_LEAD = regex.compile(
    rf"\s*(?:(?:the )?(?:final )?answer\s*(?:is|:)\s*|答案?\s*[是为]?\s*[::]\s*)?"
    rf"(?:(?P<no>{_FIRST_WORD_NO})|(?P<yes>{_FIRST_WORD_YES}))(?P<rest>[^\w]|$|(?<=不能|不会|不可以|没有|可以|确实|的确))",
    regex.IGNORECASE,
)
_INDEED = regex.compile(r"\b(?:indeed|certainly|definitely)\b|确实|的确", regex.IGNORECASE)


class Cues(NamedTuple):
    """A text's cues and clause ends, by offset: found once, asked for many names."""

    text: str
    clauses: list[int]
    sentences: list[int]
    starts: list[int]
    kinds: list[str]


def find(text: str) -> Cues:
    """Looks a text through once."""
    clauses = [m.end() for m in _CLAUSE.finditer(text)]
    sentences = [m.end() for m in _SENTENCE.finditer(text)]
    starts: list[int] = []
    kinds: list[str] = []
    for match in _CUE.finditer(text):
        starts.append(match.start())
        kinds.append(str(match.lastgroup))
    return Cues(text, clauses, sentences, starts, kinds)


def status(cues: Cues, start: int, end: int) -> tuple[Status, bool]:
    """What the text says of the name at [start, end), and whether a cue before it says so (not one after it).

    A clause's first 200 characters before the name are what can deny it.
    """
    clause = max(start - 200, _floor(cues.clauses, start))
    first, last = bisect_left(cues.starts, clause), bisect_left(cues.starts, start)
    negative = False
    for kind in cues.kinds[first:last]:
        if kind in ("open", "either"):
            return "open", True
        if kind in ("end", "reset"):
            negative = kind == "reset"
        elif kind == "negation":
            negative = not negative
    if negative:
        return "denied", True
    sentence, until = _floor(cues.sentences, start), bisect_right(cues.sentences, end - 1)
    stop = cues.sentences[until] if until < len(cues.sentences) else len(cues.text)
    if stop - end < 400 and cues.text[stop - 1 : stop] in ("?", "？"):
        return "open", False
    if _hedges(cues, max(sentence, start - 200), min(stop, end + 200)) > 1:
        return "open", True
    if _SUBJECT.match(cues.text, end, min(len(cues.text), end + 40)):
        return "denied", False
    return "asserted", False


def polarity(text: str) -> bool | None:
    """Whether an answer to a yes-or-no question says yes or no; None when it says neither.

    The first word decides; without such a word the first clause does: a negation means no, "indeed" means yes.
    """
    if lead := _LEAD.match(text):
        return lead.group("no") is None
    cues = find(text[:400])
    clause = next((c for c in cues.clauses if text[:c].strip(" \n,.;:!?。，；：！？")), len(cues.text))
    kinds = [kind for at, kind in zip(cues.starts, cues.kinds, strict=True) if at < clause]
    if "open" in kinds or "either" in kinds:
        return None
    if sum(kind in ("negation", "reset") for kind in kinds) % 2:
        return False
    return True if _INDEED.search(cues.text[:clause]) else None


def yes_or_no(gold: str) -> bool | None:
    """Whether a gold is yes (True), no (False) or something else (None)."""
    word = gold.strip(" \n,.;:!?。，；：！？").casefold()
    return True if word in _YES else False if word in _NO else None


def _floor(places: list[int], at: int) -> int:
    index = bisect_right(places, at)
    return places[index - 1] if index else 0


def _hedges(cues: Cues, start: int, end: int) -> int:
    first, last = bisect_left(cues.starts, start), bisect_left(cues.starts, end)
    return sum(kind == "hedge" for kind in cues.kinds[first:last])
