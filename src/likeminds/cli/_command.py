"""What all commands share: grouped options, examples in the help, and how they end."""

import dataclasses
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, get_type_hints

import typer

from likeminds._util.lazy_imports import load_later
from likeminds.cli._output import Output

Work = Callable[..., None]

# Commands of this panel ask a model something, in one thread: they answer without these modules.
_QUICK, _SLOW_MODULES = "Ask", ("pandas", "scipy.stats")


@dataclasses.dataclass(frozen=True)
class OutputOptions:
    """Options of output that every command has."""

    as_json: Annotated[
        bool, typer.Option("--json", help="The result as JSON on standard output, nothing else.")
    ] = False
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress, no remarks: the result only.")
    ] = False
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where an error came from.", hidden=False)
    ] = False


def command(
    app: typer.Typer, *, panel: str, examples: Sequence[str], name: str | None = None
) -> Callable[[Work], Work]:
    """Register a function as a command.

    Its first parameter is the `Output`. A parameter whose type is a dataclass stands for the
    options that are the fields of the dataclass. ``--json``, ``--quiet`` and ``--debug`` are
    added, errors become one sentence and an exit code, and the examples go below the help.
    """

    def register(work: Work) -> Work:
        groups = _groups(work)

        def run(**given: Any) -> None:
            values = {
                parameter: kind(**{field: given.pop(field) for field in _fields(kind)})
                for parameter, kind in groups.items()
            }
            manner = OutputOptions(**{field: given.pop(field) for field in _fields(OutputOptions)})
            talk = Output(as_json=manner.as_json, quiet=manner.quiet, debug=manner.debug)
            if panel == _QUICK:
                load_later(*_SLOW_MODULES)
            talk.answer_for(lambda: work(talk, **given, **values))

        run.__signature__ = _signature(work, groups)  # type: ignore[attr-defined]
        called = name or work.__name__
        app.command(called, help=_help(work, examples), rich_help_panel=panel)(run)
        return work

    return register


def _groups(work: Work) -> dict[str, Any]:
    hints = get_type_hints(work)
    return {name: kind for name, kind in hints.items() if dataclasses.is_dataclass(kind)}


def _fields(kind: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)]


def _signature(work: Work, groups: dict[str, Any]) -> inspect.Signature:
    parameters: list[inspect.Parameter] = []
    for parameter in list(inspect.signature(work).parameters.values())[1:]:
        if parameter.name in groups:
            parameters += _parameters(groups[parameter.name])
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    return inspect.Signature([*parameters, *_parameters(OutputOptions)])


def _parameters(kind: Any) -> list[inspect.Parameter]:
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty
            if field.default is dataclasses.MISSING
            else field.default,
            annotation=field.type,
        )
        for field in dataclasses.fields(kind)
    ]


def _help(work: Work, examples: Sequence[str]) -> str:
    lines = "\n".join(broken(f"$ {example}") for example in examples)
    # \b keeps the lines of a paragraph as they are.
    return f"{inspect.getdoc(work)}\n\n\b\nExample:\n{lines}"


def broken(command_line: str, width: int = 74) -> str:
    r"""Break a long command where a shell reads on.

    Examples
    --------
    >>> print(broken("likeminds rank power.likeminds --top 3", 34))
    likeminds rank power.likeminds \
        --top 3
    """
    lines = [""]
    for part in re.split(r" (?=--)", command_line):
        if lines[-1] and len(lines[-1]) + len(part) >= width:
            lines.append("   ")
        lines[-1] += f" {part}" if lines[-1] else part
    return " \\\n".join(lines)
