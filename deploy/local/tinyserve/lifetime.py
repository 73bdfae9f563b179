"""When the process ends: a signal, or the end of its parent."""

import contextlib
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Generator
from types import FrameType

_PR_SET_PDEATHSIG = 1
"""From <linux/prctl.h>."""


def end_on_signals() -> None:
    """End at once with status 0 on SIGTERM and 130 on SIGINT; call it from the main thread.

    `os._exit` and not an unwinding: nothing here needs saving, and the C++ server's destructor waits for the
    requests it is serving.
    """
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, _end)


@contextlib.contextmanager
def default_signals() -> Generator[None]:
    """Leave SIGTERM and SIGINT to the system meanwhile.

    Loading holds the interpreter's lock from start to finish, so a Python handler would run only once it is over.
    The exit status is then the signal's.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        end_on_signals()


def die_with_parent() -> None:
    """End this process when its parent ends, in whatever way the parent does.

    The parent holds the other end of standard input: the system closes it even when the parent is killed. On Linux
    the kernel is asked as well, because it does not wait for the interpreter's lock, and because a pipe stays open
    as long as a forked sibling holds a copy. Its signal comes when the *thread* that started this process ends, so
    a parent starts it from a thread that lives as long as the server shall.
    """
    threading.Thread(target=_end_at_eof, name="end-at-eof", daemon=True).start()
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it ended before the request was made: no signal would ever come
            os._exit(0)


def _end(number: int, frame: FrameType | None) -> None:
    os._exit(130 if number == signal.SIGINT else 0)


def _end_at_eof() -> None:
    with contextlib.suppress(OSError):  # a closed or unreadable descriptor is an end, too
        while os.read(0, 4096):
            pass
    os._exit(0)
