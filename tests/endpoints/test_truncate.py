"""Truncation over a tokenizer that splits characters: whatever the text, what is sent fits and is whole."""

from __future__ import annotations

import asyncio
import re
import zlib
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tinyeval.endpoints.protocol import Encoding
from tinyeval.endpoints.truncate import Fitted, cut_middle, fit
from tinyeval.errors import SampleError


class Splitting:
    """A tokenizer and the endpoint that has it: four letters a token, a Chinese character one or two, an emoji four.

    Like a byte-level BPE it gives each token of a split character the whole character as its span, and what a token
    is depends on what stands before it, so that cutting changes the count.
    """

    bos = 1

    @property
    def tokenizer(self) -> Splitting:
        return self

    async def encode(self, text: str, *, special: bool = False) -> Encoding:
        ids, spans = ([self.bos], [(0, 0)]) if special else ([], [])
        for match in re.finditer(r"[ A-Za-z]{1,4}|.", text, re.DOTALL):
            size = len(match[0].encode())
            parts = 1 if size < 3 or match[0].isascii() else 4 if size == 4 else 1 + ord(match[0]) % 2
            ids += [zlib.crc32(match[0].encode()) + i for i in range(parts)]
            spans += [match.span()] * parts
        return Encoding(ids, spans)

    async def encode_prompt(self, prompt: str) -> Encoding:
        return await self.encode(prompt, special=True)


MODEL: Any = Splitting()


def tokens(text: str) -> int:
    return len(asyncio.run(MODEL.encode_prompt(text)).ids)


async def bare(text: str) -> str:
    return text


async def turns(text: str) -> str:
    return f"<user>{text}</user><answer>"


def fitted(text: str, budget: int, wrap: Any = bare, **how: Any) -> Fitted:
    return asyncio.run(fit(text, wrap, MODEL, budget, how.pop("strategy", "middle"), **how))


PIECES = [
    "the ",
    "Cat",
    " sat.",
    "\n",
    "人民币",
    "，",
    "厦门大学",
    "57081.86",
    "😀",
    "👍🏽",
    "👩‍👩‍👧",
    "é",
    "\u0301",
    "ﷺ",
    "\t",
    "好",
]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=40).map("".join)


def is_head_and_tail(part: str, whole: str) -> bool:
    return any(part[:i] == whole[:i] and whole.endswith(part[i:]) for i in range(len(part) + 1)) and len(part) <= len(
        whole
    )


@settings(deadline=None, max_examples=400)
@given(TEXTS, st.integers(0, 120), st.sampled_from([bare, turns]))
@example("😀", 4, bare)
@example("😀😀", 4, bare)
@example("好" * 50, 12, turns)
@example("", 0, turns)
def test_what_comes_out_fits_and_is_the_head_and_the_tail_of_the_text(text: str, budget: int, wrap: Any) -> None:
    before, after = asyncio.run(wrap("|")).split("|")
    try:
        found = fitted(text, budget, wrap)
    except SampleError:
        assert tokens(before + text + after) > budget, "it fits, yet it was refused"
        return
    assert tokens(found.prompt) <= budget
    assert found.prompt.startswith(before)
    assert found.prompt.endswith(after)
    kept = found.prompt[len(before) : len(found.prompt) - len(after)]
    assert is_head_and_tail(kept, text)
    assert kept or not text, "nothing of the text is left"
    assert found.tokens in (None, tokens(found.prompt))
    assert (kept == text) == (found.removed == 0)


@settings(deadline=None)
@given(TEXTS, st.integers(0, 50), st.sampled_from([bare, turns]), st.booleans())
def test_a_text_that_fits_is_left_alone_by_either_strategy(text: str, spare: int, wrap: Any, count: bool) -> None:
    prompt = asyncio.run(wrap(text))
    for strategy in ("middle", "error"):
        found = fitted(text, tokens(prompt) + spare, wrap, strategy=strategy, count=count)
        assert (found.prompt, found.removed) == (prompt, 0)
        assert found.tokens == tokens(prompt) or (found.tokens is None and not count)


@settings(deadline=None)
@given(TEXTS, st.integers(1, 50))
def test_a_text_that_does_not_fit_is_refused_where_the_task_forbids_to_cut(text: str, missing: int) -> None:
    budget = tokens(text) - missing
    assume(budget >= 0)
    with pytest.raises(SampleError, match=f"has {tokens(text)} tokens, {budget} fit, and the task forbids"):
        fitted(text, budget, strategy="error")


@settings(deadline=None, max_examples=400)
@given(TEXTS, st.data())
def test_a_cut_is_made_of_whole_characters_and_of_no_more_tokens_than_asked(text: str, data: st.DataObject) -> None:
    encoding = asyncio.run(MODEL.encode(text))
    assume(len(encoding.ids) >= 2)
    keep = data.draw(st.integers(1, len(encoding.ids) - 1))
    kept = cut_middle(text, encoding, keep)
    assert is_head_and_tail(kept, text)
    assert len(kept) < len(text)
    heads = [i for i in range(len(kept) + 1) if kept[:i] == text[:i] and text.endswith(kept[i:])]
    gaps = [(i, i + len(text) - len(kept)) for i in heads]  # a repetitive text leaves open which part has gone
    assert min(sum(a < i or b > j for a, b in encoding.spans) for i, j in gaps) <= keep


def test_the_middle_goes_and_head_and_tail_are_of_the_same_size() -> None:
    text = "".join(f"{n:03} " for n in range(1000))
    found = fitted(text, 401)
    assert found.prompt == text[: len(found.prompt) // 2] + text[-(len(found.prompt) // 2) :]
    assert 398 <= tokens(found.prompt) <= 401
    assert found.removed == tokens(text) - tokens(found.prompt)


def test_the_question_at_the_end_of_a_long_chinese_text_is_kept() -> None:
    text = "阅读下面的文章。" + "厦门大学创办于一九二一年。" * 500 + "问题：厦门大学创办于哪一年？"
    found = fitted(text, 200, turns)
    assert found.prompt.startswith("<user>阅读下面的文章。")
    assert found.prompt.endswith("问题：厦门大学创办于哪一年？</user><answer>")


def test_a_template_that_leaves_no_room_is_told() -> None:
    with pytest.raises(SampleError, match="only 7 tokens are left for the prompt"):
        fitted("some long question " * 20, 7, turns)


def test_characters_that_no_part_of_the_budget_holds_are_told_instead_of_sent_empty() -> None:
    with pytest.raises(SampleError, match="nothing of the question would remain"):
        fitted("👍😀" * 9, 4)


async def test_the_server_counts_when_no_tokenizer_is_named(serve: Any, open_model: Any, fake: Any) -> None:
    for settings_ in ({}, {"char_offsets": True}):
        endpoint = await open_model(await serve(**settings_))
        text = "读一读 the text 😀，" * 60 + "End?"
        found = await fit(text, bare, endpoint, 100, "middle")
        assert found.tokens == len(fake.tokenize(found.prompt)) <= 100
        assert found.tokens > 90
        assert found.prompt.startswith("读一读 the text 😀")
        assert found.prompt.endswith("，End?")
        assert is_head_and_tail(found.prompt, text)


async def test_a_server_whose_tokenizer_tells_no_places_says_what_to_name(serve: Any, open_model: Any) -> None:
    endpoint = await open_model(await serve(slow_tokenizer=True))
    assert (await fit("short", bare, endpoint, 100, "middle", count=True)).tokens == 2
    with pytest.raises(SampleError, match="tokenizer = "):
        await fit("too long " * 200, bare, endpoint, 100, "middle")
