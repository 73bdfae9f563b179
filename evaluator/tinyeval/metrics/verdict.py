"""What a judge says about an answer: whether it means the same as a reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from tinyeval.metrics.registry import Sample


class _Verdict(msgspec.Struct):
    verdict: Literal["same", "different"]


_decoder = msgspec.json.Decoder(_Verdict)


def judge(sample: Sample) -> float:
    """The share of a judge's two verdicts by which the answer means the same as a reference: 0, 0.5 or 1.

    The judge is a served model of its own, named by `[judge]` in tinyeval.toml. It sees the question, the answer and
    the references, and answers within a grammar: same or different. It is asked twice, with the answer before the
    references and after them, because many models prefer what stands first (or last); where its two verdicts differ
    the Doc is worth 0.5. How often they agree, and Cohen's kappa of the two orders, stand beside the score as
    `agreement`: a judge of low agreement measures little. A judge's answer that is no verdict is a failure.

    Source: position bias and swapped orders: Zheng et al. 2023, "Judging LLM-as-a-Judge with MT-Bench and Chatbot
    Arena", section 3.4.
    """
    found = verdicts(sample.prediction)
    return sum(found) / len(found)


def verdicts(texts: Sequence[str]) -> tuple[float, ...]:
    """1 for every `{"verdict": "same"}`, 0 for every `{"verdict": "different"}`.

    Raises:
        ValueError: there is none, or one says something else.
    """
    if not texts:
        raise ValueError("there is no verdict of the judge")
    found: list[float] = []
    for text in texts:
        try:
            found.append(float(_decoder.decode(text).verdict == "same"))
        except (msgspec.DecodeError, UnicodeEncodeError) as e:
            raise ValueError(f"the judge's answer {text[:60]!r} is no verdict") from e
    return tuple(found)
