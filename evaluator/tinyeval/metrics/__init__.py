"""What an answer is worth: pure functions behind one registry.

    from tinyeval import metrics
    metrics.get("qa_f1_zh")("厦门大学。", ["厦门大学"])     # 1.0

Adding a metric is one function and one line here: `register("name", function, needs=..., ...)`.
"""

from tinyeval.metrics import answers, choice, overlap, rouge
from tinyeval.metrics.registry import Continuation, Metric, Sample, get, names, register

__all__ = ["Continuation", "Metric", "Sample", "get", "names", "register"]

register("exact_match", answers.exact_match)
register("accuracy", answers.class_accuracy, check=answers.no_class)
register("classification", answers.classification, check=answers.no_classes)
register("json_exact", answers.json_exact, check=answers.no_fields)
register("json_fields", answers.json_fields, check=answers.no_fields)
register("qa_f1", overlap.qa_f1)
register("qa_f1_zh", overlap.qa_f1_zh)
register("rouge", rouge.rouge)
register("rouge_zh", rouge.rouge_zh)
register("acc", choice.acc, needs="loglikelihood", per="sample")
register("acc_norm", choice.acc_norm, needs="loglikelihood", per="sample")
