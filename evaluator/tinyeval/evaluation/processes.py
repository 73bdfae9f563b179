"""Scoring on all cores, in processes that are started when the work is worth it.

A worker is this module run by a fresh interpreter: it reads jobs from its standard input and writes what they are
worth to its standard output, until the input ends. So it needs nothing of the program that started it, works where
`multiprocessing` would import a user's script anew, and ends when that program does, however it ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO

import msgspec

from tinyeval.errors import RunError
from tinyeval.evaluation.docs import Item, Job, Scored, score_docs

ALONE = 1.0
"""Seconds of scoring in this process before others are started."""

_SIZE = struct.Struct(">Q")


class Scorers:
    """Scores chunks of Docs; use it as a context manager.

    Args:
        processes: at most so many at once; None: one a core that this process may use. The values do not depend
            on it.
    """

    def __init__(self, processes: int | None = None) -> None:
        self.size = processes or _cores()
        self._pool: ThreadPoolExecutor | None = None
        self._workers: list[_Worker] = []
        self._own = threading.local()

    def __enter__(self) -> Scorers:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.kill()
        if self._pool:
            self._pool.shutdown(cancel_futures=True)
        for worker in self._workers:  # one may have been started meanwhile
            worker.kill()
            worker.close()

    def submit(self, job: Job, items: Sequence[Item]) -> Future[list[Scored]]:
        """Hands a chunk to the next free process."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.size, "scorer")
        return self._pool.submit(self._score, job, items)

    def score_all(self, job: Job, chunks: Iterable[Sequence[Item]]) -> Iterator[list[Scored]]:
        """The outcome of each chunk, in their order; few chunks are held at once.

        Raises:
            RunError: a process has died.
        """
        began = time.monotonic()
        waiting: deque[Future[list[Scored]]] = deque()
        shared = self.size > 1 and job.travels
        for chunk in chunks:
            if shared and (self._pool or time.monotonic() - began > ALONE):
                waiting.append(self.submit(job, chunk))
                if len(waiting) > 2 * self.size:
                    yield waiting.popleft().result()
            else:
                yield score_docs(job, chunk)
        while waiting:
            yield waiting.popleft().result()

    def _score(self, job: Job, items: Sequence[Item]) -> list[Scored]:
        worker: _Worker | None = getattr(self._own, "worker", None)
        if worker is None:
            worker = self._own.worker = _Worker()
            self._workers.append(worker)
        return worker.score_docs(job, items)


class _Worker:
    """A process that scorers."""

    def __init__(self) -> None:
        root = str(Path(__file__).resolve().parents[2])
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tinyeval.evaluation.processes"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        )

    def score_docs(self, job: Job, items: Sequence[Item]) -> list[Scored]:
        assert self._process.stdin and self._process.stdout
        try:
            _write(self._process.stdin, msgspec.msgpack.encode((job, items)))
            reply = _read(self._process.stdout)
        except OSError:
            reply = None
        if reply is None:
            status = self._process.wait()
            raise RunError(f"a scoring process died (status {status}: out of memory?); score with --processes 1.")
        found = msgspec.msgpack.decode(reply, type=list[Scored] | str)
        if isinstance(found, str):
            raise RuntimeError(f"scoring failed in another process:\n{found}")
        return found

    def kill(self) -> None:
        """Ends it; what it was scoring is lost."""
        self._process.kill()

    def close(self) -> None:
        """Waits for its end and closes its pipes."""
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe
            with contextlib.suppress(OSError):  # the rest of a job that nobody waits for
                pipe.close()


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _write(pipe: IO[bytes], data: bytes) -> None:
    pipe.write(_SIZE.pack(len(data)) + data)
    pipe.flush()


def _read(pipe: IO[bytes]) -> bytes | None:
    """The next message; None when the other side has ended."""
    head = pipe.read(_SIZE.size)
    if len(head) < _SIZE.size:
        return None
    (size,) = _SIZE.unpack(head)
    data = pipe.read(size)
    return data if len(data) == size else None


def serve(source: IO[bytes], target: IO[bytes]) -> None:
    """Scores every job that comes from `source`, until it ends."""
    decoder = msgspec.msgpack.Decoder(tuple[Job, list[Item]])
    while (message := _read(source)) is not None:
        try:
            job, items = decoder.decode(message)
            reply = msgspec.msgpack.encode(score_docs(job, items))
        except Exception:  # noqa: BLE001 - told to the process that asked
            reply = msgspec.msgpack.encode(traceback.format_exc())
        _write(target, reply)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asked decides what an interrupt means
    if hasattr(os, "nice"):
        os.nice(5)  # sending requests comes first
    serve(sys.stdin.buffer, sys.stdout.buffer)
