"""Asking until an answer comes: limits on what is in flight, and patience with failures that pass."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple, TypeVar

from tinyeval.errors import EndpointError, Retry, SampleError

T = TypeVar("T")

_LONGEST_PAUSE = 60.0
"""Seconds: a server that asks to wait longer is asked again after this."""


class Patience(NamedTuple):
    """How long to try.

    Attributes:
        tries: failures tolerated for one request; refusals because of load are not counted.
        seconds: a request is given up when it has been refused because of load for so long.
        unreachable: the run of a model ends (resumable) when its server has not answered for so long.
        pause: the first pause in seconds; it doubles up to 32 times that.
    """

    tries: int = 8
    seconds: float = 1800.0
    unreachable: float = 60.0
    pause: float = 0.25


class Limiter:
    """At most `limit` requests in flight; the limit halves under overload and grows back with success.

    Args:
        most: the limit to start from and never to exceed.

    Attributes:
        answered_at: the loop's time of the last answer to anybody.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = float(most)
        self._active = 0
        self._changed = asyncio.Condition()
        self._alone = 0
        self._shrunk_at = -1.0
        self.answered_at = -1.0

    @asynccontextmanager
    async def slot(self, *, alone: bool = False) -> AsyncGenerator[None]:
        """One request's place; `alone` waits until nothing else is in flight and keeps it so."""
        self._alone += alone
        try:
            async with self._changed:
                await self._changed.wait_for(lambda: self._free(alone))
                self._active += 1
            try:
                yield
            finally:
                self._active -= 1
        finally:
            self._alone -= alone
            async with self._changed:
                self._changed.notify_all()

    def shrink(self) -> None:
        """Halves the limit, once a second at most: requests of one burst are refused together."""
        now = asyncio.get_running_loop().time()
        if now - self._shrunk_at >= 1.0:
            self.limit, self._shrunk_at = max(1.0, self.limit / 2), now

    def succeeded(self) -> None:
        """Notes an answer: one more place for every `limit` of them."""
        self.answered_at = asyncio.get_running_loop().time()
        self.limit = min(float(self.most), self.limit + 1 / self.limit)

    def _free(self, alone: bool) -> bool:
        return self._active == 0 if alone else self._alone == 0 and self._active < int(self.limit)


async def persist(
    ask: Callable[[], Awaitable[T]],
    limiter: Limiter,
    patience: Patience,
    *,
    isolate: bool = False,
    check_alive: Callable[[], None] = lambda: None,
    harmless: Callable[[], Awaitable[object]] | None = None,
) -> tuple[T, int]:
    """Asks until there is an answer.

    Args:
        ask: one attempt.
        limiter: the endpoint's places.
        patience: how long to try.
        isolate: after a failure that calls for less load (a broken batch), ask alone: a bad grammar fails
            every request of its batch, and only alone shows which one it is.
        check_alive: raises the reason why the server can't answer any more, if it knows one.
        harmless: asks something that any working server answers. When a request is given up and nobody else has
            been answered meanwhile, it shows whether the request or the server is to blame.

    Returns:
        The answer and the number of attempts.

    Raises:
        SampleError: this request can't be answered.
        EndpointError: the server can't be used any more.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    attempts = 0
    failures = Counter[int | None]()  # by how often such a failure is tolerated
    alone = False
    refused_since = unreachable_since = None
    while True:
        attempts += 1
        try:
            async with limiter.slot(alone=alone):
                answer = await ask()
            limiter.succeeded()
            return answer, attempts
        except SampleError as e:
            e.attempts = attempts
            raise
        except Retry as e:
            check_alive()
            now = loop.time()
            if e.shrink:
                limiter.shrink()
            given_up = None
            if e.overloaded:
                refused_since = refused_since or now
                if now - refused_since > patience.seconds:
                    given_up = f", for {patience.seconds:.0f} s"
            elif e.unreachable:
                unreachable_since = unreachable_since or now
                if now - unreachable_since >= patience.unreachable:
                    hint = "Is it started? A server that still loads its model does not answer either."
                    tried = f"Tried for {patience.unreachable:.0f} s." if patience.unreachable else hint
                    raise EndpointError(f"{e}. {tried}") from e
            else:
                failures[e.tries] += 1
                if failures[e.tries] >= (e.tries or patience.tries):
                    given_up = f" ({failures[e.tries]} times)"
                alone = alone or (isolate and e.shrink)
            if given_up:
                if limiter.answered_at < began and harmless and not await _answers(harmless, limiter, e.overloaded):
                    raise EndpointError(f"{e}{given_up}, and nothing else is answered either.") from e
                error = SampleError(f"{e}{given_up}")
                error.attempts = attempts
                raise error from e
            if not e.unreachable:
                unreachable_since = None
            exponent = min(5, attempts - 1)
            asked_for = min(e.after or 0.0, _LONGEST_PAUSE)
            pause = max(asked_for, patience.pause * 2**exponent * random.uniform(0.5, 1.0))
        await asyncio.sleep(pause)


async def _answers(harmless: Callable[[], Awaitable[object]], limiter: Limiter, overloaded: bool) -> bool:
    """Whether a harmless question is answered; a refusal for load is a sign of life, unless load is the trouble."""
    try:
        async with limiter.slot():
            await harmless()
    except SampleError:
        return True
    except Retry as e:
        return e.overloaded and not overloaded
    return True
