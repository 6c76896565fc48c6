"""Names of rows: what are encoders and word vectors called in the table of results, so
that no two are called alike?
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from downstream.inputs.options import SEPARATOR
from downstream.results.records import Result, encoder_facts

# What stands in a cell without content.
NONE = "–"


def told_apart(names: Sequence[str], facts: Sequence[Mapping[str, str]]) -> list[str]:
    """The names; equal ones are followed by the facts in which they differ.

    Args:
        names: of anything.
        facts: of each, by what they are about.
    """
    told = []
    for name, own in zip(names, facts, strict=True):
        pairs = zip(names, facts, strict=True)
        alike = [others for other_name, others in pairs if other_name == name]
        for about, fact in own.items():
            if any(others.get(about) != fact for others in alike):
                name += f", {fact}"
        told.append(name)
    return told


def encoder_names(results: Iterable[Result]) -> dict[str | None, str]:
    """Identity of each encoder → a name that no other encoder has.

    It names the directory or file of the layer states. Encoders of one name are told
    apart by the weights, the options of the dump, and the probe's settings for them.
    """
    encoders = {each.encoder: each for each in results if each.features is not None}
    names = []
    facts = []
    for result in encoders.values():
        features = result.features or {}
        names.append(encoder_name(Path(features.get("directory") or features["file"])))
        known = encoder_facts(features) | result.state_settings
        facts.append(
            {about: f"{about} {_shown(each)}" for about, each in known.items()}
        )
    return dict(zip(encoders, told_apart(names, facts), strict=True))


def encoder_name(path: Path) -> str:
    """The name of a model directory or a feature file; RUN/model is called by the run.

    Args:
        path: absolute.
    """
    if path.name == "model":
        return path.parent.name
    return path.stem if path.suffix in (".h5", ".hdf5") else path.name


def _shown(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def vectors_names(results: Iterable[Result]) -> dict[str | None, str]:
    """Fingerprint of word vectors → the names of their files."""
    names: dict[str | None, str] = {}
    for result in results:
        if result.vectors is not None:
            origins = result.vectors["origin"].split(SEPARATOR)
            files = [Path(each).name for each in origins]
            names[result.word_vectors] = SEPARATOR.join(files)
    facts = [{"fingerprint": str(each)} for each in names]
    return dict(zip(names, told_apart(list(names.values()), facts), strict=True))
