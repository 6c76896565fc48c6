"""Hub: how a model is found by its name on a model hub, and downloaded once into a cache."""

import glob
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from elmoc.errors import InputError, install_advice, reading

_NAME = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(@(?P<revision>[\w.-][\w./-]*))?", re.ASCII)


def is_hub_name(path: Path | str) -> bool:
    """Whether this is to be looked for on a hub: `OWNER/NAME` or `OWNER/NAME@REVISION`, of which nothing is here.

    What is here, or has a first part that is a folder here, is a path.
    """
    path = os.fspath(path)
    if os.path.lexists(path) or os.path.isdir(path.partition("/")[0]):
        return False
    return _NAME.fullmatch(path) is not None


def download_model(name: str, files: Callable[[Path], Sequence[str]], *, revision: str | None = None) -> Path:
    """The folder of a model by its name on a hub, downloaded where it is not in the cache.

    Args:
        name: `OWNER/NAME`, or `OWNER/NAME@REVISION`.
        files: the names of the files that are needed, given a folder that may have `config.json` alone. Nothing else is
            downloaded.
        revision: a branch, tag or commit.

    Raises:
        InputError: the package is missing, there is no such model, or it can be neither reached nor found in the cache.
    """
    match = _NAME.fullmatch(name)
    assert match is not None, "is_hub_name has said so"
    try:
        from huggingface_hub import errors, snapshot_download
    except ImportError:
        raise InputError(
            f"{name} is no directory here; to look for it on a model hub takes huggingface_hub: {install_advice('hub')}"
        ) from None
    revision = revision or match["revision"]
    which = match["name"] + (f" (revision {revision})" if revision else "")

    def download(names: Sequence[str]) -> Path:
        return Path(snapshot_download(match["name"], revision=revision, allow_patterns=list(map(glob.escape, names))))

    with reading(f"{which}, which is no directory here,"):
        try:
            return download(files(download(["config.json"])))
        except errors.LocalEntryNotFoundError:
            raise InputError(
                f"{which} is no directory here, not in the cache of the model hub, and that cannot be reached: check "
                "the name and the network"
            ) from None
        except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError, errors.HFValidationError):
            raise InputError(
                f"{which} is neither a directory here nor a model on the hub that may be read: check the name, or log "
                "in there"
            ) from None
