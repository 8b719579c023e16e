"""Jobs that may take only so much of a processor's time: each runs in a process of its own."""

import multiprocessing
import resource
import time
from collections.abc import Callable
from math import ceil
from typing import Any


def in_time(limit: float, job: Callable[..., Any], *arguments: Any) -> tuple[Any, float] | None:
    """Return what a job returns and its seconds, or None where it took longer than the limit.

    Seconds are those of processors, so that a busy machine tells the same.

    Examples
    --------
    >>> in_time(60, sum, [1, 2])[0]
    3
    """
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(there, limit, job, arguments), daemon=True)
    process.start()
    there.close()
    try:
        answer = here.recv()
    except EOFError:
        answer = None
    finally:
        process.join()
    # Who ran out of time was ended by a signal; who failed has said why.
    if answer is None and process.exitcode >= 0:
        raise RuntimeError("The job ended without an answer: see what it said above.")
    return answer


def _answer(there: Any, limit: float, job: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (ceil(time.process_time() + limit), most))
    start = time.process_time()
    there.send((job(*arguments), time.process_time() - start))
