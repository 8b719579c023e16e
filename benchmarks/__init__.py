"""Benchmarks: ratios measured in one run, and the page and the picture that show them.

Each module has a function ``run(quick)`` that returns a `benchmarks.results.Result`.
"""
