"""Tasks side by side through dask: threads for kernels, which release the interpreter lock, processes for the rest."""

import asyncio
import collections
import contextlib
import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor, wait
from numbers import Integral
from typing import Any

import dask

from ..errors import ClusterError, InputError, WorkspaceError
from ..storage.machine import cores_at_hand

CONNECT_SECONDS = 20


def count_workers(workers: int | None) -> int:
    """The number of workers asked for; None means one for each core this process may use."""
    if workers is None:
        return cores_at_hand()
    if not isinstance(workers, Integral) or workers < 1:
        raise InputError(f"workers must be a positive whole number, found {workers!r}")
    return int(workers)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextlib.contextmanager
def worker_pool(workers: int, *, processes: bool) -> Iterator[Executor]:
    """A pool that lives as long as a solve, so that tasks do not pay for starting workers."""
    if processes:
        # A fresh interpreter a worker: forking would copy a process that runs threads.
        # Ctrl-C goes to every process of a terminal; the parent alone decides what it means.
        fresh = multiprocessing.get_context("spawn")
        pool: Executor = ProcessPoolExecutor(workers, mp_context=fresh, initializer=_ignore_interrupts)
    else:
        pool = ThreadPoolExecutor(workers)
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextlib.contextmanager
def cluster_client(client: Any) -> Iterator[Any]:
    """The dask.distributed client to use: the one given, or one for the scheduler at the address given."""
    if not isinstance(client, str):
        yield client
        return
    try:
        from dask.distributed import Client
    except ImportError:
        raise InputError("a cluster needs dask.distributed: pip install 'ooc_pf[cluster]'") from None
    try:
        made = Client(client, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise InputError(f"no dask scheduler answers at {client}: {error}") from error
    with made:
        yield made


def worker_folder() -> str | None:
    """Where the worker of a cluster this is called on may have files of its own; None elsewhere."""
    from dask.distributed import get_worker

    try:
        return get_worker().local_directory
    except ValueError:
        return None


RETRIES = 3  # a task whose worker dies goes to another one; one that fails by itself is not tried for ever


@contextlib.contextmanager
def _cluster_errors() -> Iterator[None]:
    """Inside, what a cluster fails with is a `ClusterError` that tells how to go on."""
    try:
        yield
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, WorkspaceError):
            raise
        raise ClusterError(
            f"the dask cluster failed ({type(error).__name__}: {error}); the workspace is as it was after its last "
            "iteration, resume it with this cluster or without"
        ) from error


def _run_on_cluster(client: Any, task: Callable[..., Any], calls: list[tuple]) -> list[Any]:
    with _cluster_errors():
        return client.gather(client.map(task, *zip(*calls, strict=True), pure=False, retries=RETRIES))


def _submit(client: Any, task: Callable[..., Any], call: tuple) -> Any:
    with _cluster_errors():
        return client.submit(task, *call, pure=False, retries=RETRIES)


def cluster_size(client: Any) -> int:
    """How many workers the cluster of a distributed client has now, at least one."""
    with _cluster_errors():
        return max(1, len(client.nthreads()))


def run_on_cluster_in_turn(client: Any, task: Callable[..., Any], calls: Iterable[tuple]) -> Iterator[Any]:
    """Results of ``task(*call)`` for every call, in the order of the calls, one at a time: for large ones.

    As many calls are under way as there are workers, so that a worker has about one result that waits.
    """
    under_way: collections.deque[Any] = collections.deque()
    for call in calls:
        under_way.append(_submit(client, task, call))
        if len(under_way) >= cluster_size(client):
            yield _take_first(client, under_way)
    while under_way:
        yield _take_first(client, under_way)


def _take_first(client: Any, under_way: collections.deque[Any]) -> Any:
    """The result that was asked for first; the worker that made it gives it up then."""
    future = under_way.popleft()
    with _cluster_errors():
        return client.gather(future)


def run_tasks(pool: Executor | Any, task: Callable[..., Any], calls: Iterable[tuple]) -> list[Any]:
    """Results of ``task(*call)`` for every call, in the order of the calls; ``pool`` may be a distributed client."""
    if not isinstance(pool, Executor):
        return _run_on_cluster(pool, task, list(calls))
    scheduler = "processes" if isinstance(pool, ProcessPoolExecutor) else "threads"
    delayed = [dask.delayed(task, pure=False, traverse=False)(*call) for call in calls]
    return list(dask.compute(*delayed, scheduler=scheduler, pool=pool, optimize_graph=False, chunksize=1))


def run_short_tasks(pool: Executor | None, task: Callable[..., Any], calls: Iterable[tuple]) -> list[Any]:
    """Like `run_tasks`, in threads, for tasks so short that dask's bookkeeping would show; without a pool, in turn."""
    if pool is None:
        return [task(*call) for call in calls]
    futures = [pool.submit(task, *call) for call in calls]
    wait(futures)  # all of them, even if one fails: what they work on may be given up then
    return [future.result() for future in futures]
