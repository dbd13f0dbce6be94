"""Tasks side by side through dask: threads for kernels, which release the interpreter lock, processes for the rest."""

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from numbers import Integral
from typing import Any

import dask

from .errors import InputError


def count_workers(workers: int | None) -> int:
    """The number of workers asked for; None means one for each core this process may use."""
    if workers is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not isinstance(workers, Integral) or workers < 1:
        raise InputError(f"workers must be a positive whole number, found {workers!r}")
    return int(workers)


@contextlib.contextmanager
def worker_pool(workers: int, *, processes: bool) -> Iterator[Executor]:
    """A pool that lives as long as a solve, so that tasks do not pay for starting workers."""
    if processes:
        # A fresh interpreter a worker: forking would copy a process that runs threads.
        # Ctrl-C goes to every process of a terminal; the parent alone decides what it means.
        ignore = {"initializer": signal.signal, "initargs": (signal.SIGINT, signal.SIG_IGN)}
        pool: Executor = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"), **ignore)
    else:
        pool = ThreadPoolExecutor(workers)
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def run_tasks(pool: Executor, task: Callable[..., Any], calls: Iterable[tuple]) -> list[Any]:
    """Results of ``task(*call)`` for every call, in the order of the calls."""
    scheduler = "processes" if isinstance(pool, ProcessPoolExecutor) else "threads"
    delayed = [dask.delayed(task, pure=False, traverse=False)(*call) for call in calls]
    return list(dask.compute(*delayed, scheduler=scheduler, pool=pool, optimize_graph=False, chunksize=1))
