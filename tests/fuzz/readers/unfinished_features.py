"""Readers of what a killed writer of features has left."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from elmoc.features.layouts.sentence import FeatureShape, Sentence
from elmoc.features.reader import FeatureFile
from elmoc.features.writer import write_features
from tests.fuzz.mutations.json_tree import JSON
from tests.fuzz.mutations.raw import RAW
from tests.fuzz.readers.reader import Reader

FILES = {"progress.json": JSON, "notes.jsonl": RAW, "changes.0": RAW}


def write_unfinished(path: Path, *, stop_after: int | None = None) -> None:
    """Write a feature file, or go on with it; or stop, and leave what was written up to the last checkpoint."""
    shape = FeatureShape(layers=2, width=4, dtype="float32", single=False)
    with suppress(KeyboardInterrupt), write_features(path, {"model": "m"}, shape=shape, resume=True) as writer:
        for index in range(writer.sentences, 5):
            writer.add(Sentence([f"w{index}", "."]), np.full((2, 2, 4), index, np.float32))
            writer.checkpoint()
            if index == stop_after:
                raise KeyboardInterrupt


def go_on(folder: Path) -> Any:
    """All sentences, as if nobody had stopped."""
    path = folder / "features/left.h5"
    write_unfinished(path)
    with FeatureFile(path) as features:
        found = [features.find([f"w{index}", "."]) for index in range(len(features))]
        return [features[index] for index in range(len(features))], found


READERS = tuple(
    Reader(
        name=f"unfinished features {file}",
        target=f"features/.left.h5.unfinished/{file}",
        mutations=mutations,
        read=go_on,
        names=(file,),
        writes=True,
        share=0.5,
    )
    for file, mutations in FILES.items()
)
