"""Where `make wheel` has compiled the kernels, the wheel is one for their platform."""

from pathlib import Path

from setuptools import Distribution, setup


class WithKernels(Distribution):
    """A package that is pure Python as long as no kernels are compiled in it."""

    def has_ext_modules(self) -> bool:
        """Whether it is of a platform."""
        return any(Path(__file__).parent.glob("elmoc/*/compiled/*.so"))


setup(distclass=WithKernels)
