"""What an answer is worth: pure functions behind one registry.

    from tinyeval import metrics
    metrics.get("qa_f1_zh")("厦门大学。", ["厦门大学"])     # 1.0

Adding a metric is one function and one line here: `register("name", function, needs=..., ...)`.
"""

import math

from tinyeval.metrics import (
    answers,
    choice,
    distance,
    drop,
    exact,
    extraction,
    instructions,
    labels,
    letters,
    longbench,
    meaning,
    overlap,
    perplexity,
    rouge,
    sampling,
    summary,
    translation,
    verdict,
)
from tinyeval.metrics.registry import Continuation, Metric, Sample, get, names, register

__all__ = ["Continuation", "Metric", "Sample", "get", "names", "register"]

# Exact answers, classes and fields
register("exact_match", answers.exact_match)
register("accuracy", answers.class_accuracy, check=answers.no_class)
register("json_exact", answers.json_exact, check=answers.no_fields)
register("json_fields", answers.json_fields, check=answers.no_fields)
register("perfect_exact_match", exact.perfect_exact_match)
register("quasi_exact_match", exact.quasi_exact_match)
register("prefix_exact_match", exact.prefix_exact_match, check=exact.no_reference)
register("prefix_quasi_exact_match", exact.prefix_quasi_exact_match, check=exact.no_reference)
register("suffix_exact_match", exact.suffix_exact_match, check=exact.no_reference)
register("contains", exact.contains, check=exact.no_reference)
register("exact_match_triviaqa", exact.exact_match_triviaqa)
register("f1_bag", exact.f1_bag)
register("f1_quasi", exact.f1_quasi)
register("f1_char_zh", exact.f1_char_zh)
register("drop_em", drop.drop_em)
register("drop_f1", drop.drop_f1)

# Final answers in longer texts
register("math_match", extraction.math_match, check=extraction.no_answer)
register("gsm8k_match", extraction.gsm8k_match, check=extraction.no_number)
register("last_number_match", extraction.last_number_match, check=extraction.no_number)
register("letter_match", letters.letter_match, check=letters.no_letters)

# Several samples of one question
for _name, _function in (("pass", sampling.pass_at_k), ("avg", sampling.avg_at_k), ("maj", sampling.maj_at_k)):
    register(f"{_name}@{{k}}", _function, needs="sampling", per="sample")
    register(f"{_name}@{{k}}:{{of}}", _function, needs="sampling", per="sample")

# LongBench and TinyEval, each official metric with its corrected sibling
register("qa_f1", overlap.qa_f1)
register("qa_f1_fixed", longbench.qa_f1_fixed)
register("qa_f1_zh", overlap.qa_f1_zh)
register("qa_f1_zh_fixed", longbench.qa_f1_zh_fixed)
register("rouge", rouge.rouge)
register("rouge_zh", rouge.rouge_zh)
register("rouge_depth_limited", rouge.rouge_depth_limited)
register("rouge_zh_depth_limited", rouge.rouge_zh_depth_limited)
register("classification", answers.classification, check=answers.no_classes)
register("classification_fixed", longbench.classification_fixed, check=answers.no_class)
register("count", longbench.count)
register("count_fixed", longbench.count_fixed, check=longbench.no_number)
register("retrieval", longbench.retrieval, check=longbench.no_paragraph)
register("retrieval_fixed", longbench.retrieval_fixed, check=longbench.no_number)
register("retrieval_zh", longbench.retrieval_zh, check=longbench.no_paragraph_zh)
register("retrieval_zh_fixed", longbench.retrieval_zh_fixed, check=longbench.no_number)
register("code_sim", longbench.code_sim)
register("code_sim_levenshtein", longbench.code_sim_levenshtein)
register("code_sim_fixed", longbench.code_sim_fixed)
register("gaokao_math", longbench.gaokao_math, check=longbench.no_option)
register("gaokao_math_8e6a5fe", longbench.gaokao_math_8e6a5fe, check=longbench.no_option)
register("gaokao_math_fixed", longbench.gaokao_math_fixed, per="sample", check=longbench.no_option)

# Answers that mean the same
register("answer_match", meaning.answer_match, per="sample", extra="metrics", module="opencc")
register("judge", verdict.judge, needs="judge", per="sample")

# Summaries
register("rouge1", summary.rouge1)
register("rouge2", summary.rouge2)
register("rougeL", summary.rouge_l)
register("rougeLsum", summary.rouge_lsum)
register("rouge1_stem", summary.rouge1_stem, extra="metrics", module="nltk")
register("rouge2_stem", summary.rouge2_stem, extra="metrics", module="nltk")
register("rougeL_stem", summary.rouge_l_stem, extra="metrics", module="nltk")
register("rougeLsum_stem", summary.rouge_lsum_stem, extra="metrics", module="nltk")
register("rouge1_zh", summary.rouge1_zh)
register("rouge2_zh", summary.rouge2_zh)
register("rougeL_zh", summary.rouge_l_zh)
_source = {"per": "sample", "reads": ("text",)}
register("summarization_coverage", distance.summarization_coverage, **_source)
register("summarization_density", distance.summarization_density, highest=math.inf, **_source)
register("summarization_compression", distance.summarization_compression, highest=math.inf, **_source)

# Translations
register("bleu", translation.bleu_counts, combine=translation.bleu)
register("bleu_1", translation.bleu_counts, combine=translation.bleu_1)
register("bleu_2", translation.bleu_counts, combine=translation.bleu_2)
register("bleu_3", translation.bleu_counts, combine=translation.bleu_3)
register("bleu_zh", translation.bleu_zh_counts, combine=translation.bleu_zh)
register("sentence_bleu", translation.sentence_bleu, per="sample")
register("sentence_bleu_1", translation.sentence_bleu_1, per="sample")
register("sentence_bleu_2", translation.sentence_bleu_2, per="sample")
register("sentence_bleu_3", translation.sentence_bleu_3, per="sample")
register("sentence_bleu_zh", translation.sentence_bleu_zh, per="sample")
register("chrf", translation.chrf_counts, combine=translation.chrf)
register("chrf_plus_plus", translation.chrf_plus_plus_counts, combine=translation.chrf_plus_plus)
register("ter", translation.ter_counts, combine=translation.ter, highest=math.inf, higher_is_better=False)

# Distances
register("edit_distance", distance.edit_distance, highest=math.inf, higher_is_better=False)
register("edit_similarity", distance.edit_similarity)
register("longest_common_prefix", distance.longest_common_prefix, highest=math.inf)

# Labels
register("f1_macro", labels.labels, combine=labels.f1_macro)
register("f1_micro", labels.labels, combine=labels.f1_micro)
register("generative_mcc", labels.labels, combine=labels.generative_mcc, lowest=-1.0)
register("mcc", labels.positions, combine=labels.mcc, needs="loglikelihood", lowest=-1.0)
register("loglikelihood_f1", labels.positions, combine=labels.loglikelihood_f1, needs="loglikelihood")
register("multi_f1_numeric", labels.positions, combine=labels.multi_f1_numeric, needs="loglikelihood")

# Multiple choice by log-likelihood
_choice = {"needs": "loglikelihood", "per": "sample"}
register("acc", choice.acc, **_choice)
register("acc_norm", choice.acc_norm, check=choice.empty_choice, **_choice)
register("acc_bytes", choice.acc_bytes, check=choice.empty_choice, **_choice)
register("acc_tokens", choice.acc_tokens, **_choice)
register("acc_pmi", choice.acc_pmi, needs="pmi", per="sample")
register("mrr", choice.mrr, **_choice)
register("recall@{k}", choice.recall, **_choice)
register("choice_probability", choice.choice_probability, **_choice)
register("truthfulqa_mc1", choice.truthfulqa_mc1, **_choice)
register("truthfulqa_mc2", choice.truthfulqa_mc2, **_choice)
register("brier_score", choice.brier_score, highest=2.0, higher_is_better=False, **_choice)
register("greedy_match", choice.greedy_match, needs="target_perplexity", per="sample")

# Perplexities
_rolling = {"needs": "perplexity", "highest": math.inf, "higher_is_better": False}
_target = _rolling | {"needs": "target_perplexity"}
register("word_perplexity", perplexity.words, combine=perplexity.word_perplexity, lowest=1.0, **_rolling)
register("byte_perplexity", perplexity.utf8_bytes, combine=perplexity.byte_perplexity, lowest=1.0, **_rolling)
register("token_perplexity", perplexity.tokens, combine=perplexity.token_perplexity, lowest=1.0, **_rolling)
register("bits_per_byte", perplexity.utf8_bytes, combine=perplexity.bits_per_byte, **_rolling)
register("target_perplexity", perplexity.tokens, combine=perplexity.target_perplexity, lowest=1.0, **_target)
register("target_word_perplexity", perplexity.words, combine=perplexity.target_word_perplexity, lowest=1.0, **_target)
register("target_bits_per_byte", perplexity.utf8_bytes, combine=perplexity.target_bits_per_byte, **_target)

# Instructions that can be checked without running code
register("instruction_strict", instructions.instruction_strict, check=instructions.unknown_instruction)
register("instruction_loose", instructions.instruction_loose, check=instructions.unknown_instruction)
register("prompt_strict", instructions.prompt_strict, check=instructions.unknown_instruction)
register("prompt_loose", instructions.prompt_loose, check=instructions.unknown_instruction)
