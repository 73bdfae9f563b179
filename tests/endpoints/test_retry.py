"""Asking until an answer comes. Time is virtual: a clock that jumps to the next timer, so nothing here waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyeval.endpoints.retry import Limiter, Patience, persist
from tinyeval.errors import EndpointError, Retry, SampleError
from tinyeval.records import Grammar, GreedyUntil


class VirtualTime(asyncio.SelectorEventLoop):
    """An event loop whose clock stands still while it works and jumps while it would wait."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        select = self._selector.select  # type: ignore[attr-defined]

        def jump(timeout: float | None) -> Any:
            assert timeout is not None, "everything waits for everything: a deadlock"
            self.now += timeout
            return select(0)

        self._selector.select = jump  # type: ignore[attr-defined]

    def time(self) -> float:
        return self.now


def run(main: Coroutine[Any, Any, Any]) -> Any:
    with asyncio.Runner(loop_factory=VirtualTime) as runner:
        return runner.run(main)


def failing(*failures: Exception) -> Callable[[], Awaitable[float]]:
    """An attempt that fails in these ways and then answers with the time that has passed."""
    left, began = list(failures), 1000.0

    async def ask() -> float:
        if left:
            raise left.pop(0)
        return asyncio.get_running_loop().time() - began

    return ask


REFUSED, BROKEN, PASSING = Retry("busy", overloaded=True), Retry("batch", tries=3, shrink=True), Retry("hiccup")
SILENT = Retry("nobody", unreachable=True)
LOST = Retry("silent", tries=3)


# --- the limiter ---------------------------------------------------------------------------------------------

JOBS = st.lists(
    st.tuples(
        st.floats(0, 3),
        st.floats(0, 3),
        st.booleans(),
        st.one_of(st.none(), st.floats(0, 3)),
        st.sampled_from(["ok", "shrink"]),
    ),
    max_size=30,
)


@settings(deadline=None, max_examples=150)
@given(st.integers(1, 6), JOBS)
def test_there_are_never_more_in_flight_than_the_limit_and_nobody_waits_for_ever(most: int, jobs: list[Any]) -> None:
    async def main() -> None:
        limiter = Limiter(most)
        active: list[bool] = []
        finished = 0

        async def job(start: float, length: float, alone: bool, outcome: str) -> None:
            nonlocal finished
            await asyncio.sleep(start)
            async with limiter.slot(alone=alone):
                active.append(alone)
                assert len(active) <= int(limiter.limit) or len(active) == 1
                assert len(active) == 1 or not any(active)
                try:
                    await asyncio.sleep(length)
                    assert len(active) == 1 or not any(active)
                finally:
                    active.remove(alone)
            limiter.shrink() if outcome == "shrink" else limiter.succeeded()
            assert 1 <= limiter.limit <= most
            finished += 1

        loop = asyncio.get_running_loop()
        tasks = []
        for start, length, alone, cancel, outcome in jobs:
            task = loop.create_task(job(start, length, alone, outcome))
            if cancel is not None:
                loop.call_later(cancel, task.cancel)
            tasks.append(task)
        for task, result in zip(tasks, await asyncio.gather(*tasks, return_exceptions=True), strict=True):
            assert result is None or task.cancelled()
        assert finished == sum(not t.cancelled() for t in tasks)
        async with asyncio.timeout(0), limiter.slot(alone=True):
            pass  # every place is free again

    run(main())


def test_the_limit_halves_once_for_the_refusals_of_one_burst_and_never_below_one() -> None:
    async def main() -> None:
        limiter = Limiter(16)
        for _ in range(10):
            limiter.shrink()
        assert limiter.limit == 8
        for expected in (4, 2, 1, 1):
            await asyncio.sleep(1)
            limiter.shrink()
            assert limiter.limit == expected

    run(main())


def test_the_limit_grows_back_by_one_for_as_many_successes_and_never_above_the_start() -> None:
    async def main() -> None:
        limiter = Limiter(8)
        limiter.shrink()
        for _ in range(6):
            limiter.succeeded()
        assert 5 <= limiter.limit < 6
        for _ in range(500):
            limiter.succeeded()
        assert limiter.limit == 8

    run(main())


def test_a_place_is_given_back_by_a_request_that_fails() -> None:
    async def main() -> None:
        limiter = Limiter(1)
        for alone in (False, True):
            with pytest.raises(ValueError, match="inside"):
                async with limiter.slot(alone=alone):
                    raise ValueError("inside")
        async with limiter.slot():
            pass

    run(main())


# --- patience ------------------------------------------------------------------------------------------------


def test_a_refusal_because_of_load_never_counts_against_the_sample() -> None:
    _, attempts = run(persist(failing(*[REFUSED] * 60), Limiter(4), Patience(tries=1)))
    assert attempts == 61


def test_refusals_do_not_use_up_the_tries_of_other_failures() -> None:
    mixed = [REFUSED, PASSING, REFUSED, REFUSED, PASSING, REFUSED]
    assert run(persist(failing(*mixed), Limiter(4), Patience(tries=3)))[1] == 7
    with pytest.raises(SampleError, match=r"hiccup \(3 times\)"):
        run(persist(failing(*mixed, PASSING), Limiter(4), Patience(tries=3)))


def test_a_request_refused_for_too_long_is_given_up_and_says_how_long() -> None:
    with pytest.raises(SampleError, match="busy, for 90 s"):
        run(persist(failing(*[REFUSED] * 1000), Limiter(4), Patience(seconds=90)))


def test_a_broken_batch_is_tolerated_less_often_than_other_failures() -> None:
    with pytest.raises(SampleError, match=r"batch \(3 times\)"):
        run(persist(failing(*[BROKEN] * 3), Limiter(4), Patience(tries=8)))
    others = [BROKEN, PASSING, PASSING, BROKEN]
    assert run(persist(failing(*others), Limiter(4), Patience(tries=8)))[1] == 5, "each kind is counted by itself"


def test_overload_and_a_broken_batch_shrink_the_limit_and_other_failures_do_not() -> None:
    for failure, limit in ((REFUSED, 4), (BROKEN, 4), (PASSING, 8), (SILENT, 8)):
        limiter = Limiter(8)
        run(persist(failing(failure), limiter, Patience()))
        assert int(limiter.limit) == limit, failure


def test_what_cannot_pass_is_asked_once() -> None:
    for failure in (SampleError("this one"), EndpointError("all of it"), ValueError("a bug")):
        asked = 0

        async def ask(failure: Exception = failure) -> None:
            nonlocal asked
            asked += 1
            raise failure

        with pytest.raises(type(failure)) as caught:
            run(persist(ask, Limiter(1), Patience()))
        assert caught.value is failure
        assert asked == 1


def test_pauses_double_up_to_a_bound() -> None:
    for n, least, most in ((1, 0.5, 1), (3, 3.5, 7), (6, 31.5, 63), (10, 95.5, 191 + 1e-6)):
        seconds, _ = run(persist(failing(*[REFUSED] * n), Limiter(1), Patience(pause=1)))
        assert least <= seconds <= most, n


def test_pauses_differ_so_that_a_burst_does_not_come_back_together() -> None:
    assert len({run(persist(failing(REFUSED), Limiter(1), Patience(pause=1)))[0] for _ in range(8)}) == 8


def test_the_server_is_left_in_peace_for_as_long_as_it_asks() -> None:
    seconds, _ = run(persist(failing(Retry("busy", overloaded=True, after=42)), Limiter(1), Patience()))
    assert seconds == 42


def test_a_place_is_free_for_others_while_a_request_pauses() -> None:
    async def main() -> None:
        limiter = Limiter(1)
        paused = asyncio.create_task(persist(failing(Retry("busy", after=100)), limiter, Patience()))
        await asyncio.sleep(1)
        async with asyncio.timeout(0), limiter.slot():
            pass
        assert (await paused)[1] == 2

    run(main())


def test_a_server_that_nobody_reaches_ends_the_run_after_a_minute() -> None:
    async def never() -> None:
        raise SILENT

    async def main() -> float:
        with pytest.raises(EndpointError, match=r"nobody\. Tried for 60 s") as caught:
            await persist(never, Limiter(1), Patience())
        assert type(caught.value) is EndpointError
        return asyncio.get_running_loop().time() - 1000

    assert 60 <= run(main()) <= 70


def test_a_server_that_comes_back_within_the_minute_costs_nothing() -> None:
    _, attempts = run(persist(failing(*[SILENT] * 8), Limiter(1), Patience(tries=1)))
    assert attempts == 9


def test_the_minute_begins_anew_when_the_server_has_said_something() -> None:
    halves = [*[SILENT] * 9, REFUSED, *[SILENT] * 6]
    assert run(persist(failing(*halves), Limiter(1), Patience(tries=1)))[1] == 17


def test_a_request_that_alone_is_never_answered_fails_and_the_others_go_on() -> None:
    async def main() -> None:
        limiter = Limiter(2)
        hung = asyncio.create_task(persist(failing(*[LOST] * 3), limiter, Patience()))
        while not hung.done():
            await persist(failing(), limiter, Patience())
            await asyncio.sleep(0.1)
        with pytest.raises(SampleError, match=r"silent \(3 times\)"):
            await hung

    run(main())


def test_when_nobody_is_answered_the_server_is_to_blame_and_not_the_sample() -> None:
    async def main() -> None:
        limiter = Limiter(2)
        await persist(failing(), limiter, Patience())
        await asyncio.sleep(1)
        with pytest.raises(EndpointError, match="nothing else is answered") as caught:
            await persist(failing(*[LOST] * 3), limiter, Patience(), harmless=failing(LOST))
        assert type(caught.value) is EndpointError

    run(main())


@pytest.mark.parametrize("failure", [PASSING, BROKEN, REFUSED, LOST], ids=str)
def test_a_sample_that_fails_while_a_harmless_one_is_answered_is_to_blame_itself(failure: Retry) -> None:
    endless = failing(*[failure] * 500)
    with pytest.raises(SampleError) as caught:
        run(persist(endless, Limiter(1), Patience(seconds=30), harmless=failing()))
    assert caught.value.attempts >= 3
    with pytest.raises(EndpointError, match="nothing else is answered") as blamed:
        run(persist(failing(*[failure] * 500), Limiter(1), Patience(seconds=30), harmless=failing(PASSING)))
    assert not isinstance(blamed.value, SampleError)


def test_a_harmless_question_that_is_refused_for_load_shows_that_the_server_lives() -> None:
    with pytest.raises(SampleError):
        run(persist(failing(*[PASSING] * 99), Limiter(1), Patience(), harmless=failing(REFUSED)))
    with pytest.raises(EndpointError, match="nothing else is answered"):
        run(persist(failing(*[REFUSED] * 999), Limiter(1), Patience(seconds=30), harmless=failing(REFUSED)))


def test_a_server_that_asks_for_a_day_is_asked_again_after_a_minute() -> None:
    assert 60 <= run(persist(failing(Retry("busy", overloaded=True, after=86400)), Limiter(1), Patience()))[0] < 61


def test_a_patience_of_no_seconds_does_not_wait_for_a_server_that_is_not_there() -> None:
    with pytest.raises(EndpointError, match="nobody"):
        run(persist(failing(SILENT), Limiter(1), Patience(unreachable=0)))


def test_the_reason_why_a_server_died_is_told_instead_of_its_silence() -> None:
    def check_alive() -> None:
        raise EndpointError("it was killed by signal 9")

    with pytest.raises(EndpointError, match="signal 9"):
        run(persist(failing(SILENT), Limiter(1), Patience(), check_alive=check_alive))


# --- isolation -----------------------------------------------------------------------------------------------


def test_after_a_broken_batch_a_request_that_may_be_the_cause_is_alone_until_it_ends() -> None:
    async def main() -> None:
        limiter, failures = Limiter(8), [BROKEN, PASSING, REFUSED, BROKEN]
        active, seen = 0, list[int]()

        async def neighbour() -> None:
            nonlocal active
            for _ in range(400):
                async with limiter.slot():
                    active += 1
                    await asyncio.sleep(0.1)
                    active -= 1

        async def suspect() -> str:
            seen.append(active)
            await asyncio.sleep(0.1)
            seen[-1] = max(seen[-1], active)
            if failures:
                raise failures.pop(0)
            return "done"

        neighbours = [asyncio.create_task(neighbour()) for _ in range(4)]
        await asyncio.sleep(0.05)
        assert await persist(suspect, limiter, Patience(), isolate=True) == ("done", 5)
        assert seen == [4, 0, 0, 0, 0]
        await asyncio.gather(*neighbours)

    run(main())


@pytest.mark.parametrize("together", [True, False], ids=["all have grammars", "one has a grammar"])
async def test_the_one_bad_grammar_is_found_alone_and_its_neighbours_succeed(
    serve: Any, open_model: Any, together: bool
) -> None:
    server = await serve(latency=0.1)
    endpoint = await open_model(server)
    limiter = Limiter(8)

    async def ask(n: int) -> str:
        pattern = "[bad" if n == 5 else f"[ab]{n}" if together else None
        grammar = Grammar(type="regex", value=pattern) if pattern else None
        request = GreedyUntil(context=f"Question {n}", generation_size=8, grammar=grammar)
        patience = Patience(pause=0.02)
        return (await persist(lambda: endpoint.generate(request), limiter, patience, isolate=bool(grammar)))[0].text

    answers = await asyncio.gather(*(ask(n) for n in range(24)), return_exceptions=True)
    failed = [n for n, answer in enumerate(answers) if isinstance(answer, BaseException)]
    assert failed == [5]
    assert type(answers[5]) is SampleError
    assert "424" in str(answers[5])
    assert server.broken[0] > 1
    assert server.broken[1:] == [1, 1]


async def test_a_server_with_few_places_answers_everything_a_greedy_client_asks(serve: Any, open_model: Any) -> None:
    server = await serve(max_concurrent_requests=3, latency=0.02)
    endpoint = await open_model(server)
    limiter = Limiter(24)

    async def ask(n: int) -> str:
        request = GreedyUntil(context=f"Question {n}", generation_size=8)
        return (await persist(lambda: endpoint.generate(request), limiter, Patience(tries=1, pause=0.005)))[0].text

    answers = await asyncio.gather(*(ask(n) for n in range(80)))
    assert len(answers) == 80
    assert set(server.prompts.values()) == {1}
    assert server.peak == 3
    assert server.requests["/generate"] > 80, "the server never refused: the test shows nothing"
