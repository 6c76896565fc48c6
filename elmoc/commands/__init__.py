"""Subcommands of `elmoc`: one module each, with `add_arguments(parser)` and
`run(arguments)`.

Nothing heavy is imported before `run`, which raises `InputError`. A new one also needs
its row in `elmoc.__main__`.
"""
