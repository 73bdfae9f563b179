"""Chinese words: jieba's precise mode, its dictionary loaded once and silently."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable
from typing import Any, cast


def cut(text: str) -> list[str]:
    """The words of a text, white space and punctuation included, joined equal to the text."""
    return list(_cutter()(text, cut_all=False))


@functools.cache
def _cutter() -> Callable[..., Iterable[str]]:
    import jieba  # pyright: ignore[reportMissingTypeStubs]

    module = cast("Any", jieba)
    module.setLogLevel(logging.WARNING)
    module.initialize()
    return cast("Callable[..., Iterable[str]]", module.cut)
