"""BLEU, chrF and TER equal sacrebleu's values, with any number of references a sample."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from tinyeval.metrics import translation
from tinyeval.metrics.registry import Metric, Sample

CORPUS: dict[str, tuple[Callable[..., Any], Metric]] = {
    name: (official, Metric(name=name, function=function, per="corpus", combine=combine))
    for name, official, function, combine in [
        ("bleu", BLEU, translation.bleu_counts, translation.bleu),
        ("bleu_1", partial(BLEU, max_ngram_order=1), translation.bleu_counts, translation.bleu_1),
        ("bleu_2", partial(BLEU, max_ngram_order=2), translation.bleu_counts, translation.bleu_2),
        ("bleu_3", partial(BLEU, max_ngram_order=3), translation.bleu_counts, translation.bleu_3),
        ("bleu_zh", partial(BLEU, tokenize="zh"), translation.bleu_zh_counts, translation.bleu_zh),
        ("chrf", CHRF, translation.chrf_counts, translation.chrf),
        ("chrf++", partial(CHRF, word_order=2), translation.chrf_plus_plus_counts, translation.chrf_plus_plus),
        ("ter", TER, translation.ter_counts, translation.ter),
    ]
}
SENTENCE: dict[str, tuple[Callable[[Sample], float], BLEU]] = {
    "sentence_bleu": (translation.sentence_bleu, BLEU(effective_order=True)),
    "sentence_bleu_1": (translation.sentence_bleu_1, BLEU(effective_order=True, max_ngram_order=1)),
    "sentence_bleu_2": (translation.sentence_bleu_2, BLEU(effective_order=True, max_ngram_order=2)),
    "sentence_bleu_3": (translation.sentence_bleu_3, BLEU(effective_order=True, max_ngram_order=3)),
    "sentence_bleu_zh": (translation.sentence_bleu_zh, BLEU(effective_order=True, tokenize="zh")),
}

words = st.sampled_from(
    [
        "the",
        "The",
        "cat",
        "sat",
        "on",
        "mat.",
        "(hi)",
        "1,000.5",
        "3-4",
        "don't",
        "&quot;",
        "-\n",
        "我们",
        "去。",
        "北京",
    ]
)
texts = st.lists(words, max_size=12).map(" ".join)
samples = st.builds(Sample, texts, st.lists(texts, min_size=1, max_size=3))
corpora = st.lists(samples, min_size=1, max_size=4)


def official(metric: Any, corpus: Sequence[Sample]) -> float:
    """sacrebleu's public value: a stream of references for each place, None where a sample has fewer."""
    most = max(len(sample.references) for sample in corpus)
    streams = [[dict(enumerate(sample.references)).get(i) for sample in corpus] for i in range(most)]
    return metric.corpus_score([sample.prediction for sample in corpus], streams).score / 100


def total(name: str, corpus: Sequence[Sample]) -> float:
    metric = CORPUS[name][1]
    return metric.total([metric.function(sample) for sample in corpus])


@pytest.mark.parametrize("name", CORPUS)
@given(corpus=corpora)
@settings(max_examples=80, deadline=None)
def test_a_corpus_has_sacrebleus_value(name: str, corpus: list[Sample]) -> None:
    assert total(name, corpus) == pytest.approx(official(CORPUS[name][0](), corpus), abs=1e-12)


@pytest.mark.parametrize("name", SENTENCE)
@given(sample=samples)
@settings(max_examples=80, deadline=None)
def test_a_sentence_has_sacrebleus_value(name: str, sample: Sample) -> None:
    ours, reference = SENTENCE[name]
    expected = reference.sentence_score(sample.prediction, list(sample.references)).score / 100
    assert ours(sample) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("cut", "tokenizer"),
    [(translation._words_13a, BLEU().tokenizer), (translation._words_zh, BLEU(tokenize="zh").tokenizer)],
)
def test_every_character_is_cut_as_by_sacrebleu(cut: Callable[[str], list[str]], tokenizer: Any) -> None:
    for start in (*range(0, 0x10000, 0x100), 0x1F600, 0x20000):
        for form in ("a{}5", "5{}.{}-", "{} {}x,"):
            text = "w".join(form.replace("{}", chr(i)) for i in range(start, start + 0x100))
            assert cut(text) == tokenizer(text.rstrip()).split()


@pytest.mark.parametrize("name", CORPUS)
def test_each_line_of_weights_has_the_value_of_the_corpus_it_stands_for(name: str) -> None:
    random_ = random.Random(3)
    pool = ["the cat sat on the mat", "a dog", "我们 去 北京 看 看", "on the mat the cat sat", "", "mat. mat. mat."]
    corpus = [Sample(random_.choice(pool), random_.choices(pool, k=random_.randrange(1, 4))) for _ in range(6)]
    metric = CORPUS[name][1]
    assert metric.combine
    draws = [[random_.randrange(6) for _ in range(6)] for _ in range(20)]
    weights = np.array([np.bincount(draw, minlength=6) for draw in draws], dtype=float)
    values = metric.combine([metric.function(sample) for sample in corpus], weights)
    assert values.shape == (20,)
    for value, draw in zip(values, draws, strict=True):
        assert value == pytest.approx(official(CORPUS[name][0](), [corpus[i] for i in draw]), abs=1e-12)


def test_references_belong_to_their_own_sample() -> None:
    """Only the first of six answers is right: transposed references would make chrF 1 and TER 0."""
    golds = ["red cat", "他们昨天去了图书馆", "my dog runs fast", "今天的天气非常好", "red wine", "五月的花海"]
    corpus = [Sample(golds[0] if i == 0 else "zzz", [gold]) for i, gold in enumerate(golds)]
    assert total("bleu", corpus) == pytest.approx(official(BLEU(), corpus), abs=1e-12)
    assert total("chrf", corpus) == pytest.approx(official(CHRF(), corpus), abs=1e-12)
    assert 0.1 < total("chrf", corpus) < 0.3
    assert total("ter", corpus) == pytest.approx(9 / 11, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "prediction", "references", "value"),
    [
        ("bleu", "the cat sat on the mat", ["the cat sat on the mat"], 1.0),
        ("bleu", "the cat", ["the cat"], 0.0),  # no n-gram of 4 words in the corpus
        ("bleu_1", "the the the", ["the cat"], 1 / 3),
        ("bleu_1", "the cat", ["the cat sat on"], np.exp(-1)),
        ("bleu_2", "a b c", ["a b d"], (2 / 3 * 1 / 2) ** 0.5),
        ("bleu_zh", "厦门大学在福建", ["厦门大学在福建"], 1.0),
        ("chrf", "厦门 大学", ["厦门大学"], 1.0),
        ("ter", "a b c d", ["a c d", "a b c e"], 1 / 3.5),
        ("ter", "c d e a b", ["a b c d e"], 1 / 5),  # one run moved
        ("ter", "厦门大学", ["北京大学"], 1.0),
        ("ter", "a b c", ["a"], 2.0),
    ],
)
def test_known_values(name: str, prediction: str, references: list[str], value: float) -> None:
    assert total(name, [Sample(prediction, references)]) == pytest.approx(value, abs=1e-12)


def test_of_two_references_of_equal_chrf_the_first_counts() -> None:
    corpus = [Sample("ab", ["abcd", "abdc"]), Sample("xy", ["yx"])]
    assert CORPUS["chrf"][1].function(corpus[0]) == CORPUS["chrf"][1].function(Sample("ab", ["abcd"]))
    assert total("chrf", corpus) == pytest.approx(official(CHRF(), corpus), abs=1e-12)


@pytest.mark.parametrize("name", CORPUS)
@pytest.mark.parametrize("prediction", ["", "three wrong words", "\ud800 错的 词语"])
def test_an_answer_without_references_is_wrong(name: str, prediction: str) -> None:
    right = Sample("one two three four five", ["one two three four five"])
    alone = total(name, [Sample(prediction, [])])
    both = total(name, [right, Sample(prediction, [])])
    if name == "ter":
        assert alone == 1.0
        assert 0.0 < both < 1.0
    else:
        assert alone == 0.0
        assert both < 1.0 if prediction else both == 1.0


@pytest.mark.parametrize("name", CORPUS)
def test_no_rows_and_empty_texts_have_a_value(name: str) -> None:
    metric = CORPUS[name][1]
    assert metric.combine
    assert metric.combine([], np.ones((2, 0))).tolist() == [0.0, 0.0]
    assert total(name, [Sample("", [""])]) == 0.0
    assert total(name, [Sample("", ["a b"])]) == float(name == "ter")
    assert total(name, [Sample("a b", [""])]) == float(name == "ter")


@pytest.mark.parametrize("name", CORPUS)
def test_lone_surrogates_are_characters_like_others(name: str) -> None:
    text = "one two three four\ud800"
    assert total(name, [Sample(text, [text])]) == pytest.approx(float(name != "ter"), abs=1e-12)


def test_a_sentence_without_references_is_worth_nothing() -> None:
    for sentence, _ in SENTENCE.values():
        assert sentence(Sample("some words", [])) == sentence(Sample("", ["some words"])) == 0.0


@pytest.mark.parametrize("name", CORPUS)
@given(corpus=corpora)
@settings(max_examples=30, deadline=None)
def test_values_are_in_range_and_the_same_each_time(name: str, corpus: list[Sample]) -> None:
    value = total(name, corpus)
    assert value >= 0.0
    assert name == "ter" or value <= 1.0
    assert total(name, corpus) == value


@pytest.mark.parametrize("name", CORPUS)
def test_long_texts_have_a_value(name: str) -> None:
    """200 kB each; sacrebleu's own TER would need a table of 500 million entries."""
    long = " ".join(f"word{i % 211}" for i in range(22_000))
    assert total(name, [Sample(long, [long])]) == pytest.approx(float(name != "ter"), abs=1e-12)
