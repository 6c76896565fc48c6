"""Hub: a model by its name on a model hub, downloaded once into the cache of the `huggingface_hub` package."""

import glob
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from elmoc.errors import InputError, install_advice, reason, shortened

_NAME = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(@(?P<revision>[\w.-][\w./-]*))?", re.ASCII)


def is_hub_name(path: Path | str) -> bool:
    """Whether this is to be looked for on a hub: `OWNER/NAME` or `OWNER/NAME@REVISION`, of which nothing is here.

    What is here, or has a first part that is a folder here, is a path.
    """
    path = os.fspath(path)
    if os.path.lexists(path) or os.path.isdir(path.partition("/")[0]):
        return False
    return _NAME.fullmatch(path) is not None


def download_model(name: str, files: Callable[[Path], Sequence[str] | None], *, revision: str | None = None) -> Path:
    """The folder of a model by its name on a hub, downloaded where it is not in the cache.

    Args:
        name: `OWNER/NAME`, or `OWNER/NAME@REVISION`.
        files: the names of the files that are needed, given a folder that may have `config.json` alone; None where that
            is not of a model. Nothing else is downloaded.
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
            f"{shortened(name)} is no directory here; to look for it on a model hub takes huggingface_hub: "
            f"{install_advice('hub')}, or correct the name"
        ) from None
    revision = revision or match["revision"]
    which = match["name"] + (f" (revision {revision})" if revision else "")
    network_errors: tuple[type[Exception], ...] = (errors.HfHubHTTPError, *_network_errors())

    def download(names: Sequence[str]) -> Path:
        return Path(snapshot_download(match["name"], revision=revision, allow_patterns=list(map(glob.escape, names))))

    try:
        names = files(download(["config.json"]))
        if names is None:
            raise InputError(
                f"{which} is no directory here, and what the model hub has of that name is no model of elmoc: check "
                "the name"
            )
        return download(names)
    except errors.LocalEntryNotFoundError:
        raise InputError(
            f"{which} is no directory here, not in the cache of the model hub, and that cannot be reached: check the "
            "name and the network"
        ) from None
    except errors.RevisionNotFoundError:
        raise InputError(f"the model hub has no {which}: choose another revision") from None
    except (errors.RepositoryNotFoundError, errors.HFValidationError):
        raise InputError(
            f"{which} is neither a directory here nor a model on the hub that may be read: check the name, or log "
            "in there"
        ) from None
    except network_errors as error:
        raise InputError(f"{which} could not be downloaded ({reason(error)}): check the network") from None


def _network_errors() -> list[type[Exception]]:
    """What the libraries raise by which `huggingface_hub` speaks: httpx from its release 1.0 on, requests before."""
    found: list[type[Exception]] = []
    for library, name in (("httpx", "HTTPError"), ("requests", "RequestException")):
        with suppress(ImportError):
            found.append(getattr(import_module(library), name))
    return found
