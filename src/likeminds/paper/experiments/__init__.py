"""The experiments of the paper, and what the paper does not show: ``likeminds reproduce``.

One module for each table or figure computes facts and draws figures; its template in `templates`
writes them down. `setting` says how large they are, `claims` compares them with the paper. The
Python side of the command is ``likeminds.paper.experiments.command.reproduce``.
"""
