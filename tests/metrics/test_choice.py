"""Multiple choice by log-likelihood: ranks, lengths, probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyeval.metrics import choice
from tinyeval.metrics.registry import Continuation, Metric, Sample

INF = math.inf
LISTS = st.lists(st.floats(-800, 0) | st.just(-INF), min_size=1, max_size=8)
RANKS: list[Callable[[Sample], float]] = [choice.acc, choice.mrr, partial(choice.recall, k=2), choice.truthfulqa_mc1]
MASSES = [choice.choice_probability, choice.truthfulqa_mc2]
ALL = [*RANKS, *MASSES, choice.brier_score]
ZERO_ONE = {0.0, 1.0}


def sample(logprobs: Sequence[float], golds: Sequence[int], choices: Sequence[str] = (), **specific: Any) -> Sample:
    return Sample([Continuation(logprob=p) for p in logprobs], golds, choices, specific)


def told(**given: Any) -> Continuation:
    return Continuation(**{"logprob": -1.0, **given})


@pytest.mark.parametrize(
    ("logprobs", "golds", "expected"),
    [
        ([-1, -2, -3], [0], (1, 1, 1)),
        ([-1, -2, -3], [1], (0, 1 / 2, 1)),
        ([-1, -2, -3], [2], (0, 1 / 3, 0)),
        ([-1, -2, -3], [2, 1], (0, 1 / 2, 1)),
        ([-2, -2, -2], [0], (1, 1, 1)),  # the first of equals ranks first
        ([-2, -2, -2], [2], (0, 1 / 3, 0)),
        ([-INF, -INF], [1], (0, 1 / 2, 1)),
        ([-INF, -900, -INF], [1], (1, 1, 1)),
        ([-INF, -900, -INF], [2], (0, 1 / 3, 0)),
        ([-1, -2, -3], [], (0, 0, 0)),
        ([], [], (0, 0, 0)),
    ],
)
def test_ranks(logprobs: list[float], golds: list[int], expected: tuple[float, float, float]) -> None:
    s = sample(logprobs, golds)
    assert (choice.acc(s), choice.mrr(s), choice.recall(s, k=2)) == pytest.approx(expected)


def test_recall_of_as_many_as_there_are_choices_is_one() -> None:
    s = sample([-1, -2, -3], [2])
    assert [choice.recall(s, k=k) for k in (1, 2, 3, 4, 100)] == [0, 0, 1, 1, 1]


def test_lengths_are_characters_bytes_and_tokens() -> None:
    choices = ["北京", "Xiamen", "厦门市"]
    logprobs = [-3.0, -6.6, -4.2]  # a character: -1.5, -1.1, -1.4; a byte: -0.5, -1.1, -0.467
    assert choice.acc(sample(logprobs, [0], choices)) == 1
    assert choice.acc_norm(sample(logprobs, [1], choices)) == 1
    assert choice.acc_bytes(sample(logprobs, [2], choices)) == 1
    counted = [Continuation(logprob=p, tokens=n) for p, n in zip(logprobs, [1, 6, 2], strict=True)]
    assert choice.acc_tokens(Sample(counted, [1])) == 1
    assert choice.acc_tokens(Sample(counted, [0])) == 0


def test_an_empty_choice_divides_by_one_and_is_told_beforehand() -> None:
    s = sample([-0.5, -1.0], [1], ["", "ab"])  # -0.5 and -0.5: the first of equals
    assert choice.acc_norm(s) == choice.acc_bytes(s) == 0
    assert choice.acc_norm(sample([-0.6, -1.0], [1], ["", "ab"])) == 1
    assert choice.acc_tokens(Sample([told(tokens=0), told(tokens=2)], [1])) == 1
    assert choice.empty_choice("0", ["甲", ""]) == "choice 2 is empty: it has no length"
    assert choice.empty_choice("0", ["甲", "乙"]) is None


def test_a_lone_surrogate_has_a_length() -> None:
    assert choice.acc_bytes(sample([-3.3, -1.0], [0], ["\ud800a", "b"])) == 1  # four bytes


def test_pmi_takes_off_what_the_choice_is_worth_without_the_question() -> None:
    pairs = [(-2.0, -1.0), (-5.0, -9.0), (-INF, -INF)]
    s = [Continuation(logprob=p, unconditioned=u) for p, u in pairs]
    assert choice.acc(Sample(s, [0])) == 1
    assert choice.acc_pmi(Sample(s, [1])) == 1
    assert choice.acc_pmi(Sample([s[2], s[0]], [1])) == 1  # impossible after the question: last
    assert choice.acc_pmi(Sample([s[1], told(unconditioned=-INF)], [1])) == 1


@pytest.mark.parametrize(
    ("greedy", "expected"), [([False, True], 1), ([None, True], 1), ([False, False], 0), ([True], 1), ([], 0)]
)
def test_greedy_match(greedy: list[bool | None], expected: float) -> None:
    assert choice.greedy_match(Sample([told(greedy=g) for g in greedy], ["a"] * len(greedy))) == expected


@pytest.mark.parametrize(
    ("function", "broken", "message"),
    [
        (choice.acc, sample([-1, math.nan], [0]), "choice 2 has a log-probability of nan"),
        (choice.brier_score, sample([INF, -1], [0]), "choice 1 has a log-probability of inf"),
        (choice.mrr, sample([-1, -2], [2]), "gold position 2 is none of the 2 choices"),
        (choice.acc, sample([-1, -2], [-1]), "gold position -1 is none"),
        (choice.acc_norm, sample([-1, -2], [0], ["a"]), "2 log-probabilities are given for 1 choices"),
        (choice.acc_bytes, sample([-1, -2], [0]), "2 log-probabilities are given for 0 choices"),
        (choice.acc_tokens, Sample([told(tokens=1), told()], [0]), "how many tokens choice 2 has"),
        (choice.acc_pmi, Sample([told()], [0]), "choice 1 has no log-probability after the unconditioned"),
        (choice.acc_pmi, Sample([told(unconditioned=math.nan)], [0]), "choice 1 has a log-probability of nan"),
        (choice.greedy_match, Sample([told(greedy=False), told()], ["a", "b"]), "greedy continuation"),
        (choice.truthfulqa_mc2, sample([-1, -2], [0], len_mc1=2), "len_mc1 is 2"),
    ],
)
def test_what_cant_be_judged_is_said(function: Callable[[Sample], float], broken: Sample, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        function(broken)


LOGS = [math.log(0.5), math.log(0.1), math.log(0.3), math.log(0.1)]


@pytest.mark.parametrize("shift", [0.0, -5.0, -2000.0])  # exp(-2000) is 0 as a float
def test_probabilities_add_up_to_one(shift: float) -> None:
    logprobs = [p + shift for p in LOGS]
    assert choice.choice_probability(sample(logprobs, [2])) == pytest.approx(0.3)
    assert choice.choice_probability(sample(logprobs, [2, 0, 2])) == pytest.approx(0.8)
    assert choice.brier_score(sample(logprobs, [0])) == pytest.approx(0.25 + 0.01 + 0.09 + 0.01)
    assert choice.brier_score(sample(logprobs, [1, 2])) == pytest.approx(0.25 + 0.01 + 0.49 + 0.01)
    assert choice.truthfulqa_mc2(sample(logprobs, [0, 2])) == pytest.approx(0.8)  # up to the first gap: 0.5


def test_brier_score_is_0_when_sure_and_right_2_when_sure_and_wrong() -> None:
    assert choice.brier_score(sample([0, -INF, -INF], [0])) == 0
    assert choice.brier_score(sample([0, -INF, -INF], [2])) == 2
    assert choice.brier_score(sample([-INF, -INF], [1])) == 0.5
    assert choice.brier_score(sample([-1, -2], [])) == choice.brier_score(sample([], [])) == 2


def test_truthfulqa_mc1_wants_the_first_gold_only() -> None:
    assert choice.truthfulqa_mc1(sample([-1, -2, -3], [0, 1])) == 1
    assert choice.truthfulqa_mc1(sample([-2, -1, -3], [0, 1])) == 0  # true, but not the best answer
    assert choice.acc(sample([-2, -1, -3], [0, 1])) == 1


def test_truthfulqa_of_both_lists_in_one_question() -> None:
    logprobs = [-3, -1, *LOGS]  # two choices of MC1, then four of MC2
    s = sample(logprobs, [0, 2, 4], len_mc1=2)
    assert choice.truthfulqa_mc1(s) == 0
    assert choice.truthfulqa_mc1(sample([-1, -3, *LOGS], [0, 2, 4], len_mc1=2)) == 1  # though 2 is likelier than 0
    assert choice.truthfulqa_mc2(s) == pytest.approx(0.8)


def test_nothing_known_has_the_worst_value() -> None:
    assert [f(sample([], [])) for f in (*RANKS, *MASSES)] == [0.0] * 6
    assert [f(sample([-1, -2], [])) for f in (*RANKS, *MASSES)] == [0.0] * 6
    assert choice.choice_probability(sample([-INF, -INF, -INF], [0, 1])) == pytest.approx(2 / 3)


def test_users_give_plain_floats() -> None:
    metric = Metric(name="acc_norm", function=choice.acc_norm, needs="loglikelihood", per="sample")
    assert metric([-1.0, -4.0], 1, ["北", "北京市朝阳区"]) == 1.0
    assert Metric(name="mrr", function=choice.mrr, needs="loglikelihood", per="sample")([-1, -2], [1]) == 0.5


@given(LISTS, st.data())
def test_ranges_and_relations(logprobs: list[float], data: st.DataObject) -> None:
    golds = data.draw(st.lists(st.integers(0, len(logprobs) - 1), max_size=4))
    s = sample(logprobs, golds, ["选项"] * len(logprobs))
    values = [f(s) for f in ALL]
    assert all(0 <= v <= 1 for v in values[:-1])
    assert 0 <= values[-1] <= 2
    assert values == [f(s) for f in ALL]
    acc, mrr, recall2, mc1, mass, mc2, _ = values
    assert {acc, recall2, mc1} <= ZERO_ONE
    assert mc1 <= acc <= recall2
    assert (mrr == 1) == (acc == 1)
    assert (mrr >= 1 / 2) == (recall2 == 1)
    assert mass == mc2
    assert choice.recall(s, k=1) == acc == choice.acc_norm(s) == choice.acc_bytes(s)  # all choices are as long
    assert choice.recall(s, k=len(logprobs)) == float(bool(golds))


@given(st.lists(st.floats(-50, 0), min_size=2, max_size=6), st.floats(-50, 0), st.data())
def test_probabilities_do_not_change_with_a_common_factor(
    logprobs: list[float], shift: float, data: st.DataObject
) -> None:
    gold = [data.draw(st.integers(0, len(logprobs) - 1))]
    moved = [p + shift for p in logprobs]
    for f in (choice.choice_probability, choice.brier_score):
        assert f(sample(moved, gold)) == pytest.approx(f(sample(logprobs, gold)), abs=1e-9)
    shares = [choice.choice_probability(sample(logprobs, [i])) for i in range(len(logprobs))]
    assert math.fsum(shares) == pytest.approx(1)
    outcomes = [float(i == gold[0]) for i in range(len(logprobs))]
    brier = math.fsum((p - y) ** 2 for p, y in zip(shares, outcomes, strict=True))
    assert choice.brier_score(sample(logprobs, gold)) == pytest.approx(brier, abs=1e-12)
