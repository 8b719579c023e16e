"""Registration of commands: grouped options, examples in the help, errors as exit codes."""

import dataclasses
import inspect
import re
from collections.abc import Callable
from typing import Any, get_type_hints

import typer

from likeminds._util.lazy_imports import load_later
from likeminds.cli._options import OutputOptions
from likeminds.cli._output import Output

Work = Callable[..., None]

app = typer.Typer(
    help="Learn what a crowd agrees on, what its schools of thought want differently, "
    "and who sees it their own way.\n\n\b\nStart here:\n$ likeminds demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

# Examples that many others begin with.
DATA = "likeminds data electricity --out power"
FIT = (
    "likeminds fit --annotations power/annotations.csv --features power/features.csv "
    "--out power.likeminds"
)

# Commands of this panel query a model, in one thread: they answer without these modules.
_QUICK, _SLOW_MODULES = "Ask", ("pandas", "scipy.stats")


def command(panel: str, *examples: str) -> Callable[[Work], Work]:
    """Register a function as a command.

    Its first parameter is the `Output`. A parameter whose type is a dataclass stands for the
    options that are the fields of the dataclass. ``--json``, ``--quiet`` and ``--debug`` are
    added, errors become one sentence and an exit code, and the examples go below the help.
    """

    def register(work: Work) -> Work:
        hints = get_type_hints(work)
        groups = {name: kind for name, kind in hints.items() if dataclasses.is_dataclass(kind)}

        def run(**given: Any) -> None:
            def taken(kind: Any) -> Any:
                return kind(**{one.name: given.pop(one.name) for one in dataclasses.fields(kind)})

            options = {parameter: taken(kind) for parameter, kind in groups.items()}
            output = Output(**vars(taken(OutputOptions)))
            if panel == _QUICK:
                load_later(*_SLOW_MODULES)
            output.run(lambda: work(output, **given, **options))

        parameters: list[inspect.Parameter] = []
        for parameter in list(inspect.signature(work).parameters.values())[1:]:
            grouped = parameter.name in groups
            parameters += _parameters(groups[parameter.name]) if grouped else [parameter]
        signature = inspect.Signature([*parameters, *_parameters(OutputOptions)])
        run.__signature__ = signature  # type: ignore[attr-defined]
        lines = "\n".join(broken(f"$ {example}") for example in examples)
        # \b keeps the lines of a paragraph as they are.
        text = f"{inspect.getdoc(work)}\n\n\b\nExample:\n{lines}"
        app.command(work.__name__, help=text, rich_help_panel=panel)(run)
        return work

    return register


def _parameters(kind: Any) -> list[inspect.Parameter]:
    return [
        inspect.Parameter(
            one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=one.type
        )
        for one in dataclasses.fields(kind)
    ]


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
