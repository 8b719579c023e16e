"""The experiments of the paper, and what the paper does not show: ``likeminds reproduce``.

One module for each table or figure; `scale` says how large they are, `claims` holds the results
against what the paper claims, `report` writes it all down. The Python side of the command is
``likeminds.paper.experiments.command.reproduce``.
"""
