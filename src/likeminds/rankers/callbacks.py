"""Progress reports: a plain function, ``verbose``, and scikit-learn's callbacks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from likeminds._util.console import report_progress
from likeminds.solvers.solver import Callback

try:
    from sklearn import callback as _sklearn
except ImportError:  # before scikit-learn 1.9 there are none: the plain function still works
    _sklearn = None

__all__ = ["CallbackSupport", "both_callbacks", "with_callbacks"]

Method = TypeVar("Method", bound=Callable[..., Any])

CallbackSupport: Any = object if _sklearn is None else _sklearn.CallbackSupportMixin


def with_callbacks(method: Method) -> Method:
    """Let scikit-learn's callbacks end with the method, however it ends."""
    if _sklearn is None:
        return method
    managed: Method = _sklearn.with_callbacks(method)
    return managed


@contextmanager
def both_callbacks(estimator: Any, plain: Callback | None) -> Iterator[Callback | None]:
    """Yield one function that calls the plain callback, ``verbose``'s and scikit-learn's own."""
    shown = getattr(estimator, "verbose", False) and not getattr(estimator, "_is_trial", False)
    with report_progress(shown, f"{type(estimator).__name__}, step") as tell:

        def aloud(number: int, objective: float, residual: float) -> bool:
            tell(number, f"objective {objective:.6g}")
            return bool(plain and plain(number, objective, residual))

        with _and_sklearns(estimator, aloud if shown else plain) as callback:
            yield callback


@contextmanager
def _and_sklearns(estimator: Any, plain: Callback | None) -> Iterator[Callback | None]:
    if not getattr(estimator, "_skl_callbacks", None):
        yield plain
        return
    context = estimator._init_callback_context(max_subtasks=None)
    context.call_on_fit_task_begin(estimator=estimator)

    def tell(number: int, objective: float, residual: float) -> bool:
        step = context.subcontext(task_name=f"step {number}")
        step.call_on_fit_task_begin(estimator=estimator)
        stop = step.call_on_fit_task_end(estimator=estimator)
        return bool(stop) or bool(plain and plain(number, objective, residual))

    yield tell
    context.call_on_fit_task_end(estimator=estimator)
