"""Processes that read for us: they end when we end, however we end, and leave signals to us."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_OURS = (signal.SIGINT, signal.SIGTERM)


def pool(count: int) -> ProcessPoolExecutor:
    """``count`` workers. Submit under ``starting`` and from a thread that outlives the pool.

    The kernel's parent-death signal follows the thread that forked.
    """
    # Always fork: with another start method the parent of a worker is not the process that wants it.
    context = multiprocessing.get_context("fork")
    return ProcessPoolExecutor(count, context, initializer=_start, initargs=(os.getpid(), _prctl()))


@contextmanager
def starting() -> Iterator[None]:
    """No signal reaches a new worker before it has put away the handlers that it inherits from us."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _OURS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(parent: int, prctl: Callable[..., int]) -> None:
    """What a worker does first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; only we answer it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _OURS)
    prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # we died between fork and prctl
        os._exit(1)


def _prctl() -> Callable[..., int]:
    """Looked up before the fork: after it only the call itself is safe."""
    return ctypes.CDLL(None, use_errno=True).prctl
