"""The command line: ``likeminds COMMAND``.

One small module per command. Nothing heavy is imported before a command runs, so ``--help``
answers at once.
"""

from importlib import import_module

from likeminds.cli.main import app, main

# The modules with commands, in the order in which the help lists them.
for _module in ("start", "fit", "update", "evaluate", "agreement", "compare", "rank"):
    import_module(f"likeminds.cli.{_module}")
for _module in ("leaderboard", "newcomer", "explain", "share", "serve", "check"):
    import_module(f"likeminds.cli.{_module}")

__all__ = ["app", "main"]
