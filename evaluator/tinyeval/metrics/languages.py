"""Which language a text is in: by its script and, where languages share one, by their frequent words and letters."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import regex


class _Language(NamedTuple):
    script: str
    words: frozenset[str] = frozenset()
    letters: str = ""


_KANA = r"\p{Hiragana}\p{Katakana}ー"
_EAST = rf"\p{{Han}}{_KANA}"
UNSPACED = rf"{_EAST}\p{{Thai}}\p{{Lao}}\p{{Khmer}}\p{{Myanmar}}"
"""The letters of scripts that write no spaces between words, for a class of a regular expression."""

_UNIT = regex.compile(rf"[{_EAST}]|[\p{{L}}--[{_EAST}]][[\p{{L}}\p{{M}}]--[{_EAST}]]*", regex.V1)
_WORD = regex.compile(rf"[\w--[{_EAST}]]+", regex.V1)


def _language(script: str, words: str = "", letters: str = "") -> _Language:
    return _Language(script, frozenset(words.split()), letters)


_arabic = functools.partial(_language, "Arabic")
_cyrillic = functools.partial(_language, "Cyrillic")
_devanagari = functools.partial(_language, "Devanagari")
_latin = functools.partial(_language, "Latin")


_LANGUAGES: Mapping[str, _Language] = {
    "zh": _language("Han"),
    "zh-cn": _language("Han"),
    "zh-tw": _language("Han"),
    "ja": _language("Japanese"),
    "ko": _language("Hangul"),
    "th": _language("Thai"),
    "bn": _language("Bengali"),
    "ta": _language("Tamil"),
    "te": _language("Telugu"),
    "kn": _language("Kannada"),
    "ml": _language("Malayalam"),
    "gu": _language("Gujarati"),
    "pa": _language("Gurmukhi"),
    "el": _language("Greek"),
    "he": _language("Hebrew"),
    "ru": _cyrillic("и в не на я что с как это по но из у за от так же для мы вы он она они его", "ыэё"),
    "uk": _cyrillic("і в не на я що з як це по але із у за від так же для ми ви він вона вони його", "іїєґ"),
    "bg": _cyrillic("и в не на аз че с как това по но от се да за са ще е със като ние вие той тя те", "ъ"),
    "ar": _arabic("في من على إلى أن هذا هذه التي الذي لا ما كان مع عن هو هي أو كل ذلك بين", "ةكيىأإؤئ"),
    "fa": _arabic("در از به که این را با است آن برای یک تا می بود و شده ها های خود هم ما شما او", "پچژگکی"),
    "ur": _arabic("میں کے کی ہے اور سے کا کو نے پر یہ ایک اس ہیں بھی تو کہ وہ نہیں تھا", "ٹڈڑںےہھ"),
    "hi": _devanagari("है के में की और से का को पर यह एक हैं भी ने कि वह नहीं था इस लिए हो कर मैं आप"),
    "mr": _devanagari("आहे आणि मी तो ती ते हे या आहेत व नाही मध्ये पण साठी होते होता एक का असे करून त्या", "ळ"),
    "ne": _devanagari("छ र को मा हो छन् लाई यो ले पनि गर्न भएको गरेको तर एक हुन् म तपाईं हामी थियो बाट गर्छ छैन"),
    "en": _latin("the of and to in is that it for was you with on as are be this have at by not i we they or"),
    "de": _latin("der die und das ist in den zu nicht mit es ein eine ich auf sich dem von für auch wir sie", "ß"),
    "fr": _latin("le la les et de des est un une que qui dans pour pas en du je il vous nous sur avec au ce"),
    "es": _latin("el la los y de que en un una es por con las para del se no lo su más como muy está hay", "ñ"),
    "pt": _latin("o a os e de que em um uma é por com as para do da não no na se mais como muito está", "ãõ"),
    "it": _latin("il la e di che è un una per con non sono del della in i si le gli ma come più nel anche"),
    "nl": _latin("de het een en van is dat in op te niet met voor zijn die er ik je maar ook aan we wij naar"),
    "sv": _latin("och i att det som en på är av för med den till inte har jag ett om vi de var men kan", "å"),
    "pl": _latin("i w nie na się z do to że jest jak o co po ale za od dla czy są oraz przez tym mnie", "łąęśżźćń"),
    "fi": _latin("ja on ei se että en hän oli mutta joka ovat minä niin kuin myös kun tai sen voi hyvin ole me"),
    "vi": _latin("là và của có không một cho các những được trong với tôi này người đã", "ăơưđạảấầẩẫậắằẹẻẽếềểễệịỉ"),
    "sw": _latin("ya na wa kwa ni katika za la cha kuwa kama hii hiyo lakini pia watu si yake vya sana yangu"),
    "tr": _latin("ve bir bu da de için ile çok ne o gibi daha ama var ben olarak en değil kadar her olan", "ğışİ"),
    "id": _latin("yang dan di ini itu dengan untuk dari tidak dalam adalah akan saya pada ada ke bisa juga kami"),
}
"""Those of IFEval's data, and some more."""

CODES = frozenset(_LANGUAGES)
"""The codes of the languages that are told apart: ISO 639-1, and zh-cn and zh-tw, which are the same as zh here."""


def is_language(text: str, code: str) -> bool:
    """Whether a text is in a language.

    More than half of its units must be in the language's script; a unit is a Chinese character, a kana or, in other
    scripts, a word. Of languages that share a script none may have more of its frequent words and letters in the
    text. A text without letters is in every language.

    Args:
        text: any.
        code: one of CODES.
    """
    language = _LANGUAGES[code]
    total = len(_UNIT.findall(text))
    if not total:
        return True
    if language.script in ("Han", "Japanese"):
        kana = len(regex.findall(rf"[{_KANA}]", text))
        both = kana + len(regex.findall(r"\p{Han}", text))
        return 2 * both > total and (5 * kana >= both) == (language.script == "Japanese")
    own = len(regex.findall(rf"\p{{{language.script}}}[\p{{L}}\p{{M}}]*", text))
    if 2 * own <= total:
        return False
    rivals = [other for other in _LANGUAGES.values() if other.script == language.script]
    if len(rivals) == 1:
        return True
    words = Counter(_WORD.findall(text.casefold()))
    return _score(words, language) == max(_score(words, other) for other in rivals)


def _score(words: Counter[str], language: _Language) -> int:
    letters = language.letters
    return sum(n * ((w in language.words) + any(c in w for c in letters)) for w, n in words.items())
