"""Experiments: plain scripts that measure speed and compare with the papers and with
what people train instead.

`python -m experiments.NAME --help` prints what a script measures: its docstring. The
script is not run, since packages that it imports may be missing.
"""

import ast
import sys
from importlib import import_module
from pathlib import Path

# Python imports this package first, and then gives the script its own name.
if sys.argv[0] == "-m" and {"-h", "--help"} & set(sys.argv[1:]):
    asked = next(each for each in sys.orig_argv if "experiments." in each)
    parts = asked.removeprefix("-m").split(".")[1:]
    script = Path(__file__).parent.joinpath(*parts).with_suffix(".py")
    if script.exists():
        print(ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))))
        sys.exit()

# Before PyTorch loads, as commands do.
import_module("elmoc.process").wait_without_spinning()
