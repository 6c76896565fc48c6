"""Names of rows: what are encoders, word vectors called in the table of
results, so that no two are called alike?
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from downstream.inputs.options import SEPARATOR
from downstream.results.records import Result, encoder_identity

# What stands in a cell without content.
NONE = "–"
# Characters of a fingerprint that tell encoders, or word vectors, of one name apart.
_SHORT = 8


def encoder_names(results: Iterable[Result]) -> dict[str, str]:
    """Identity of each encoder → a name that no other encoder has.

    It names the directory or file of the layer states, and the probe's settings for
    them. The weights and the options of the dump tell encoders of one name apart.
    """
    names: dict[str, str] = {}
    more: dict[str, str] = {}
    for result in results:
        if result.features is None:
            continue
        features = result.features
        identity = str(result.encoder)
        name = _origin_name(features)
        for setting, value in result.state_settings.items():
            name += f" {setting} {value}"
        names[identity] = name
        dump = str(features.get("model", ""))[:_SHORT] or encoder_identity(features)
        layers = ",".join(features.get("layers", []))
        for option, value in (
            ("layers", layers),
            ("carry_state", features.get("carry_state")),
            ("pooling", features.get("pooling")),
        ):
            if value:
                dump += f" {option} {value}"
        more[identity] = dump
    return _told_apart(names, more)


def _origin_name(features: Mapping[str, object]) -> str:
    """The name of the directory of a model, or of a feature file."""
    if "directory" not in features:
        return Path(str(features.get("file"))).stem
    path = Path(str(features["directory"]))
    # The model of a run is called by the run.
    return path.parent.name if path.name == "model" else path.name


def vectors_names(results: Iterable[Result]) -> dict[str, str]:
    """Fingerprint of word vectors → the names of their files."""
    names: dict[str, str] = {}
    for result in results:
        if result.vectors is not None:
            origins = str(result.vectors["origin"]).split(SEPARATOR)
            files = [Path(each).name for each in origins]
            names[str(result.vectors["fingerprint"])] = SEPARATOR.join(files)
    more = {fingerprint: fingerprint[:_SHORT] for fingerprint in names}
    return _told_apart(names, more)


def _told_apart(names: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """The names, equal ones with more behind them."""
    taken = list(names.values())
    told = {}
    for identity, name in names.items():
        is_shared = taken.count(name) > 1
        told[identity] = f"{name} {more[identity]}" if is_shared else name
    return told
