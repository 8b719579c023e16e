"""The command line: ``likeminds COMMAND``.

Large modules are imported when a command runs, so ``--help`` is fast.
"""

from importlib import import_module

from likeminds.cli.main import app, main

# The modules with commands, in the order in which the help lists them.
for _module in (
    *("start", "fit", "evaluate", "agreement", "rank", "newcomer"),
    *("explain", "share", "serve", "check"),
):
    import_module(f"likeminds.cli.{_module}")

__all__ = ["app", "main"]
