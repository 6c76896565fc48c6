"""Hub: how a model is found by its name on a model hub, and downloaded once into a
cache.
"""

import os
import re
from pathlib import Path

from elmoc.errors import InputError, reading

_NAME = re.compile(
    r"(?P<name>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(@(?P<revision>[\w.-][\w./-]*))?",
    re.ASCII,
)


def is_hub_name(path: Path | str) -> bool:
    """Whether this is to be looked for on a hub: `OWNER/NAME` or `OWNER/NAME@REVISION`,
    and no path here.

    It is a path where it exists here, or its first part is a folder here.
    """
    path = os.fspath(path)
    if os.path.lexists(path) or os.path.isdir(path.partition("/")[0]):
        return False
    return _NAME.fullmatch(path) is not None


def download_model(name: str) -> Path:
    """The folder of a model by its name on a hub, downloaded where it is not in the
    cache.

    Args:
        name: `OWNER/NAME`, or `OWNER/NAME@REVISION`: a branch, tag or commit.
    """
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise InputError(
            f"{name} is no directory here; looking for it on a model hub needs the "
            "extra hub"
        ) from None
    repository, _, revision = name.partition("@")
    with reading(f"{name} is no directory here, and on the model hub it"):
        return Path(snapshot_download(repository, revision=revision or None))
