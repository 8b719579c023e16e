"""The experiments of the paper, and further ones: ``likeminds reproduce``.

One module for each table or figure computes facts and draws figures, for its template in
`templates`. `setting` has their sizes, `claims` compares them with the paper. The Python side of
the command is ``likeminds.paper.experiments.command.reproduce``.
"""
