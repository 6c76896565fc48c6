"""Saved probes: trained probes on disk.

`probe.json` holds the task, the settings, the vocabulary, the kind of inputs and the line of results, and
`probe.safetensors` the weights. The word vectors and features that it reads are named by fingerprint, not copied.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError

from downstream.inputs.kinds import INPUT_KINDS
from downstream.inputs.probe_inputs import InputSources, ProbeInputs
from downstream.probe.settings import TrainingSettings
from downstream.probe.task import Probe, Task
from downstream.results.records import encoder_identity, word_vectors_identity
from elmoc.errors import InputError
from elmoc.files.records import check_version, read_json, write_json
from elmoc.files.writing import atomic_path

FORMAT, VERSION = "elmoc-probe", 2


@dataclass(frozen=True, kw_only=True)
class SavedProbe:
    """All that scoring a trained probe on other data needs, and the line of results of its training."""

    path: Path
    task: str
    kind: str
    seed: int
    settings: dict[str, Any]
    vocabulary: dict[str, Any]
    record: dict[str, Any]

    def save(self, probe: Probe[Any, Any]) -> None:
        """Write the directory; `probe.json` comes last, so that a directory with it is whole."""
        weights = {name: weight.detach().cpu().contiguous() for name, weight in probe.state_dict().items()}
        with atomic_path(self.path / "probe.safetensors") as partial:
            safetensors.torch.save_file(weights, partial)
        content = {name: value for name, value in asdict(self).items() if name != "path"}
        write_json(self.path / "probe.json", {"format": FORMAT, "version": VERSION, **content})

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
        self.check_sources(sources.describe())
        settings = self.settings_of(task)
        probe = task.build(vocabulary=self.vocabulary, inputs=ProbeInputs(sources), settings=settings)
        path = self.path / "probe.safetensors"
        try:
            probe.load_state_dict(safetensors.torch.load_file(path))
        except (OSError, SafetensorError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise InputError(f"{path} cannot be read ({reason}): train the probe again") from None
        return probe

    def record_of(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Its line of results, for a run that has the same settings, data and inputs; raises `InputError` if not.

        facts  of the run's lines of results, which hold before training
        """
        for name in ("task", "inputs", "split", "settings", "reader", "fingerprints"):
            if self.record[name] != facts[name]:
                what = "data" if name == "fingerprints" else name
                raise InputError(
                    f"{self.path} was trained with other {what} ({self.record[what]}) than this run has: choose "
                    "another directory for --save, or remove it"
                )
        self.check_sources(facts)
        return self.record | {"dataset": facts["dataset"]}

    def check_sources(self, described: Mapping[str, Any]) -> None:
        """Raise an `InputError` unless `features` and `vectors`, as described, are those of the training."""
        for name, identity in (("features", encoder_identity), ("vectors", word_vectors_identity)):
            trained, given = self.record[name], described[name]
            if trained is not None and given is not None and identity(trained) != identity(given):
                raise InputError(
                    f"{self.path} was trained on other {name} ({identity(trained)}) than those given "
                    f"({identity(given)})"
                )


def read_probe(path: Path) -> SavedProbe:
    """Read a probe directory; raises `InputError` when it is missing, incomplete or foreign."""
    content = read_json(path / "probe.json", advice="train the probe again")
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{path / 'probe.json'} is not of the format {FORMAT}: give a directory that --save wrote")
    check_version(path / "probe.json", content, format=FORMAT, version=VERSION, advice="train the probe again")
    try:
        saved = SavedProbe(path=path, **{name: content[name] for name in content.keys() - {"format", "version"}})
        whole = all(isinstance(part, dict) for part in (saved.settings, saved.vocabulary, saved.record))
    except TypeError:
        whole = False
    if not whole or saved.kind not in INPUT_KINDS:
        raise InputError(f"{path / 'probe.json'} lacks fields or has unknown ones: train the probe again")
    return saved
