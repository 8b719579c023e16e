"""Jobs that may take only so long: each runs in a process of its own."""

import multiprocessing
import time
from collections.abc import Callable
from typing import Any


def in_time(limit: float, job: Callable[..., Any], *arguments: Any) -> tuple[Any, float] | None:
    """Return what a job returns and its seconds, or None where it took longer than the limit.

    Examples
    --------
    >>> in_time(60, sum, [1, 2])[0]
    3
    >>> in_time(0.05, time.sleep, 5) is None
    True
    """
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(there, job, arguments), daemon=True)
    process.start()
    there.close()
    try:
        if not here.poll(limit):
            return None
        answer, seconds = here.recv()
    except EOFError:
        raise RuntimeError("The job ended without an answer: see what it said above.") from None
    finally:
        process.kill()
        process.join()
    return answer, seconds


def _answer(there: Any, job: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    start = time.perf_counter()
    there.send((job(*arguments), time.perf_counter() - start))
