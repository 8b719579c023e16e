"""The command line: ``likeminds COMMAND``.

One small module per command. Nothing heavy is imported before a command runs, so that
``--help`` answers at once.
"""

from likeminds.cli._command import app
from likeminds.cli.main import main

__all__ = ["app", "main"]
