"""What is a trained probe on disk?

`probe.json` holds the task, the settings, the vocabulary, the kind of inputs and the line of results, and
`probe.safetensors` the weights. The word vectors and features that it reads are named by fingerprint, not copied.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError

from downstream.inputs.probe_inputs import InputSources, ProbeInputs
from downstream.probe.settings import TrainingSettings
from downstream.probe.task import Probe, Task
from downstream.results.reading import encoder_identity, word_vectors_identity
from elmoc.errors import InputError
from elmoc.files import atomic_path, read_json, write_json

FORMAT, VERSION = "elmoc-probe", 2


@dataclass(frozen=True)
class SavedProbe:
    """A trained probe: all that scoring it on other data needs, and the line of results of its training."""

    path: Path
    task: str
    kind: str
    seed: int
    settings: dict[str, Any]
    vocabulary: dict[str, Any]
    record: dict[str, Any]

    def settings_of(self, task: Task[Any, Any]) -> TrainingSettings:
        """The hyper-parameters of its training; raises `InputError` where this elmoc has others."""
        try:
            return type(task.published)(**self.settings)
        except TypeError:
            raise InputError(
                f"{self.path / 'probe.json'} has other settings than this elmoc knows: train the probe again"
            ) from None

    def rebuild(self, task: Task[Any, Any], sources: InputSources) -> Probe[Any, Any]:
        """The probe with its trained weights, reading from `sources`, which must be those it was trained on."""
        self.check_sources(
            features=None if sources.states is None else sources.states.describe(),
            vectors=None if sources.words is None else sources.words.describe(),
        )
        settings = self.settings_of(task)
        probe = task.build(vocabulary=self.vocabulary, inputs=ProbeInputs(sources), settings=settings)
        path = self.path / "probe.safetensors"
        try:
            probe.load_state_dict(safetensors.torch.load_file(path))
        except (OSError, SafetensorError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise InputError(f"{path} cannot be read ({reason}): train the probe again") from None
        return probe

    def check_sources(self, *, features: dict[str, Any] | None, vectors: dict[str, Any] | None) -> None:
        """Raise an `InputError` unless these features and word vectors are those that the probe was trained on."""
        for name, given, identity in (
            ("features", features, encoder_identity),
            ("vectors", vectors, word_vectors_identity),
        ):
            trained = self.record[name]
            if trained is not None and given is not None and identity(trained) != identity(given):
                raise InputError(
                    f"{self.path} was trained on other {name} ({identity(trained)}) than those given "
                    f"({identity(given)})"
                )


def save_probe(
    path: Path,
    probe: Probe[Any, Any],
    *,
    task: str,
    kind: str,
    seed: int,
    settings: dict[str, Any],
    vocabulary: dict[str, Any],
    record: dict[str, Any],
) -> None:
    """Write a probe directory; `probe.json` comes last, so that a directory with it is whole."""
    weights = {name: weight.detach().cpu().contiguous() for name, weight in probe.state_dict().items()}
    with atomic_path(path / "probe.safetensors") as partial:
        safetensors.torch.save_file(weights, partial)
    saved = SavedProbe(
        path=path, task=task, kind=kind, seed=seed, settings=settings, vocabulary=vocabulary, record=record
    )
    content = {name: value for name, value in asdict(saved).items() if name != "path"}
    write_json(path / "probe.json", {"format": FORMAT, "version": VERSION, **content})


def read_probe(path: Path) -> SavedProbe:
    """Read a probe directory; raises `InputError` when it is missing, incomplete or foreign."""
    content = read_json(path / "probe.json")
    if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
        raise InputError(f"{path / 'probe.json'} does not describe a probe: name a directory that --save has written")
    version = content.pop("version", None)
    if version != VERSION:
        raise InputError(f"{path / 'probe.json'} has version {version}, but this elmoc reads {VERSION}")
    try:
        saved = SavedProbe(path=path, **content)
        whole = all(isinstance(part, dict) for part in (saved.settings, saved.vocabulary, saved.record))
    except TypeError:
        whole = False
    if not whole:
        raise InputError(f"{path / 'probe.json'} lacks fields or has unknown ones: train the probe again")
    return saved
