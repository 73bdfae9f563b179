"""The values that travel through an evaluation: frozen, with no behaviour beyond themselves.

row ─ Doc ─ Request ─ Response ─ Score
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

FinishReason = Literal["stop", "length", "stop_string"]
"""Why an answer ended: the model stopped, the token limit was reached, or a stop string was met."""


class Grammar(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an answer must look like; each dialect translates it to its server's shape.

    Attributes:
        type: `json` (value: a JSON schema, draft 2020-12, with `properties` at the top) or `regex`
            (value: a regular expression that the whole answer matches).
        value: the schema or the expression.
    """

    type: Literal["json", "regex"]
    value: dict[str, Any] | str


class Doc(msgspec.Struct, frozen=True, kw_only=True):
    """One formatted question.

    Attributes:
        id: unique within its task; the row's own `id` or its number.
        query: the prompt before few-shot examples, chat template and truncation; begins with `instruction`.
        choices: the continuations to choose from (multiple choice), or the classes of a classification.
        gold_index: the positions of the right choices.
        references: acceptable answers of a generative question.
        instruction: the leading part of `query` that is not repeated for examples.
        fewshot_sorting_class: the class that balances examples; the first gold when None.
        specific: further fields that a metric reads.
        cluster: what it shares with other Docs, such as the text they ask about; their values are not independent.
        question: the question that it repeats, where one question is asked several times.
    """

    id: str
    query: str
    choices: tuple[str, ...] = ()
    gold_index: tuple[int, ...] = ()
    references: tuple[str, ...] = ()
    instruction: str = ""
    fewshot_sorting_class: str | None = None
    specific: dict[str, Any] = {}
    cluster: str | None = None
    question: str | None = None


class GreedyUntil(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """Generate until a stop string, the end of the turn or `generation_size` new tokens.

    Attributes:
        context: the whole prompt as the model sees it.
        stop_sequence: strings that end the answer; never part of it.
        generation_size: new tokens at most; None leaves what the context has room for.
        grammar: what the answer must look like.
    """

    context: str
    stop_sequence: tuple[str, ...] = ()
    generation_size: int | None = None
    grammar: Grammar | None = None


class GreedyUntilMultiTurn(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """Like GreedyUntil, turn by turn: each context holds the model's earlier answers. No dialect answers it yet."""

    contexts: tuple[str, ...]
    stop_sequence: tuple[str, ...] = ()
    generation_size: int | None = None


class Loglikelihood(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """The log-probability of `continuation` after `context`, in nats."""

    context: str
    continuation: str


class LoglikelihoodSingleToken(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """The log-probabilities of several one-token continuations of one context. No dialect answers it yet."""

    context: str
    continuations: tuple[str, ...]


class LoglikelihoodRolling(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """The log-probability of a whole text, in windows of the model's context. No dialect answers it yet."""

    context: str


Request = GreedyUntil | GreedyUntilMultiTurn | Loglikelihood | LoglikelihoodSingleToken | LoglikelihoodRolling


class Response(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came back, the same whatever server answered.

    Attributes:
        text: the answer, cut at the first stop string.
        finish_reason: why it ended; None for a log-likelihood.
        prompt_tokens: tokens of the prompt as the server counted them, if it told.
        completion_tokens: tokens generated (or scored), if told.
        logprob: summed natural log-probability of the continuation.
        greedy: whether the continuation was the greedy one; None when the server does not tell.
    """

    text: str = ""
    finish_reason: FinishReason | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    logprob: float | None = None
    greedy: bool | None = None


class Score(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one Doc is worth: a value a metric, or the reason why there is none.

    Attributes:
        doc: the Doc's id.
        values: metric name to value, in the metric's own range; empty when the Doc failed.
        error: the reason of the failure.
        statistics: corpus metric name to what this Doc adds to it.
        cluster: the Doc's.
        question: the Doc's.
    """

    doc: str
    values: dict[str, float]
    error: str | None
    statistics: dict[str, tuple[Any, ...]] = {}
    cluster: str | None = None
    question: str | None = None


class Variance(msgspec.Struct, frozen=True, kw_only=True):
    """The variance of a metric's values where questions are asked several times.

    Attributes:
        between: of the questions' true means: how much questions differ.
        within: of the values of one question: how much repeating it matters.
        questions: how many there are.
    """

    between: float
    within: float
    questions: int


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """How far two verdicts on the same answer agree.

    Attributes:
        share: of the Docs on which both are the same.
        kappa: Cohen's: what of the agreement that chance leaves open was reached; None if both always say one thing.
    """

    share: float
    kappa: float | None


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A metric over a task's Docs.

    Attributes:
        value: the mean, or the corpus metric's value, in the metric's own range.
        stderr: standard error of the value; None below two scored Docs (or clusters).
        ci95: 95 % interval; None likewise.
        n: Docs scored.
        failed: Docs without a score; they are no part of the value.
        interval: how ci95 was made: `normal`, `wilson` (values of 0 and 1) or `bootstrap` (corpus metrics).
        clusters: how many independent groups the Docs form, where some share one.
        variance: where questions are asked several times.
        agreement: of a judge with itself, asked in two orders.
    """

    value: float | None
    stderr: float | None
    ci95: tuple[float, float] | None
    n: int
    failed: int
    interval: Literal["normal", "wilson", "bootstrap"] | None = None
    clusters: int | None = None
    variance: Variance | None = None
    agreement: Agreement | None = None
