"""Compiles the kernels where there is a compiler; a wheel that holds any is of their
platform.
"""

import runpy
from pathlib import Path

from setuptools import Distribution, setup


class WithKernels(Distribution):
    """A package that is pure Python where no kernels could be compiled."""

    def has_ext_modules(self) -> bool:
        """Whether it is of a platform."""
        return any(Path("elmoc").glob("*/compiled/*.so"))


for problem in runpy.run_path("elmoc/kernels/compiling.py")["compile_all"]():
    print(problem)
setup(distclass=WithKernels)
