"""Question answering: F1 over the words that prediction and reference share.

Values equal LongBench's official ones (THUDM/LongBench, `LongBench/metrics.py` at commit 2e00731f).
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

from tinyeval.metrics.words import cut

_ASCII = str.maketrans("", "", string.punctuation)
_CJK = "！？｡。＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､、〃》「」『』【】〔〕〖〗〘〙〚〛〜〝〞〟〰〾〿–—‘’‛“”„‟…‧﹏."  # noqa: E501
_BOTH = str.maketrans("", "", string.punctuation + _CJK)


def qa_f1(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """F1 over the multisets of normalised words: lower case, no ASCII punctuation, no articles.

    Punctuation is deleted without a space, so "3.5" equals "35" and "a-b" equals "ab", and the reference "A" is
    always worth 0, as in the official code; `qa_f1_fixed` keeps numbers apart and reads width and punctuation of
    all scripts alike.

    Source: qa_f1_score, THUDM/LongBench@2e00731f; Rajpurkar et al. 2016 (SQuAD).
    """
    return _f1(normalize_en(prediction).split(), normalize_en(reference).split())


def qa_f1_zh(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """F1 over the multisets of jieba words; each word is normalised after cutting.

    White space and line breaks inside a word, width and traditional characters change the words, and "《" and "·"
    stay, as in the official code; `qa_f1_zh_fixed` cleans before it cuts.

    Source: qa_f1_zh_score, THUDM/LongBench@2e00731f.
    """
    return _f1(*([w for w in map(normalize_zh, cut(text)) if w] for text in (prediction, reference)))


def normalize_en(text: str) -> str:
    """Lower case, ASCII punctuation deleted, articles dropped, white space collapsed (`normalize_answer`)."""
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text.lower().translate(_ASCII)).split())


def normalize_zh(text: str) -> str:
    """Lower case without white space, ASCII and CJK punctuation (`normalize_zh_answer`); 《 and · stay."""
    return "".join(text.lower().translate(_BOTH).split())


def _f1(prediction: list[str], reference: list[str]) -> float:
    shared = sum((Counter(prediction) & Counter(reference)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(prediction), shared / len(reference)
    return 2 * precision * recall / (precision + recall)
