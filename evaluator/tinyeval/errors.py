"""Every exception of the evaluator, in one small tree.

    TinyEvalError                      anything the command line renders as one sentence
    ├── UsageError                     the user can mend it; exit status 2
    │   ├── ConfigError                a configuration file or option
    │   ├── TaskError                  a task's name or definition
    │   ├── DataError                  a data file or one of its rows
    │   └── RunError                   the folder of a run
    └── EndpointError                  the served model or the way to it; exit status 3
        ├── Unsupported                it lacks what a task needs; says which flag or setting helps
        ├── SampleError                this one request can't be answered; the run goes on
        │   └── TooLong                the prompt is over the server's limit
        └── Retry                      worth asking again: says how long, how often, and under what load

Errors are raised where they are known and rendered once, in `tinyeval.cli`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class TinyEvalError(Exception):
    """Base of all errors that end as one helpful sentence instead of a traceback."""

    exit_status = 3


class UsageError(TinyEvalError):
    """The user's mistake: what was found, what was expected, what to do."""

    exit_status = 2


class ConfigError(UsageError):
    """A configuration file or a command-line option is wrong."""


class TaskError(UsageError):
    """A task is unknown or its definition is wrong."""


class DataError(UsageError):
    """A data file is missing, unreadable, or a row lacks a field."""


class RunError(UsageError):
    """A run folder can't be written, belongs to other settings, or is damaged."""


class EndpointError(TinyEvalError):
    """The served model can't be used: the run stops for it and stays resumable."""


class Unsupported(EndpointError):
    """The endpoint lacks what a task needs; the message names the remedy."""


class SampleError(EndpointError):
    """One request failed for good; it is recorded with this reason and the run goes on.

    Attributes:
        attempts: how often it was asked.
    """

    attempts = 1


class TooLong(SampleError):
    """The prompt is longer than the server admits.

    Attributes:
        excess: tokens over the limit, as far as the server told; 0 when unknown.
    """

    def __init__(self, message: str, excess: int = 0) -> None:
        super().__init__(message)
        self.excess = excess


class Retry(EndpointError):
    """A failure that may pass.

    Attributes:
        overloaded: the server refused work because of load: it never counts against the sample,
            and concurrency shrinks.
        after: seconds the server asked to wait, or None.
        tries: how often such a failure is tolerated for one request, or None for the caller's default.
        shrink: lower the concurrency before trying again.
        unreachable: nobody listens.
    """

    def __init__(
        self,
        message: str,
        *,
        overloaded: bool = False,
        after: float | None = None,
        tries: int | None = None,
        shrink: bool = False,
        unreachable: bool = False,
    ) -> None:
        super().__init__(message)
        self.overloaded = overloaded
        self.after = after
        self.tries = tries
        self.shrink = shrink or overloaded
        self.unreachable = unreachable


def nearest(word: str, known: Iterable[str], n: int = 3) -> str:
    """A hint ` (did you mean …?)` with up to `n` known words close to `word`, or an empty string."""
    close = difflib.get_close_matches(word, list(known), n=n, cutoff=0.5)
    return f" (did you mean {' or '.join(repr(c) for c in close)}?)" if close else ""
