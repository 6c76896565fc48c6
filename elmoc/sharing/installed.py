"""Installed models: a model as a Python package of its own, which is found by its name.

The package has the model directory beside its `__init__.py`, and names itself among the
entry points `elmoc.models`.
"""

from contextlib import suppress
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from elmoc.version import VERSION

GROUP = "elmoc.models"
_PROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "elmoc-model-{name}"
version = "{version}"
description = "The ELMo-C model {name}"
dependencies = ["elmoc"]

[project.entry-points."{group}"]
{name} = "{package}"

[tool.setuptools.package-data]
{package} = ["*"]
"""


def installed_models() -> dict[str, Path]:
    """The model directories of packages that are installed, by the models' names."""
    found: dict[str, Path] = {}
    for each in entry_points(group=GROUP):
        # A package may be broken, or gone.
        with suppress(ImportError):
            spec = find_spec(each.value)
            if spec is not None and spec.origin is not None:
                found[each.name] = Path(spec.origin).parent
    return found


def package_name(name: str) -> str:
    """The Python package of a model, which is its folder, too."""
    return f"elmoc_model_{name}"


def write_package_files(folder: Path, name: str, model: str) -> None:
    """Write what makes a Python package of a model directory.

    Args:
        folder: of the package's source, which has the model directory.
        name: of the model.
        model: its fingerprint, which is part of the version: another model takes the
            place of one that is installed by this name.
    """
    package = package_name(name)
    (folder / package / "__init__.py").write_text(f'"""The ELMo-C model {name}."""\n')
    version = f"{VERSION}+{model}"
    project = _PROJECT.format(name=name, version=version, group=GROUP, package=package)
    (folder / "pyproject.toml").write_text(project)
