"""The benchmark of using a model: `python -m elmoc.benchmark` measures every part of it in one run.

Each part is a module with `rows(quick)`, which yields pairs of what was measured and the figure, as they come.
"""
