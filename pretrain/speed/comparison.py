"""Comparison: the speed of every contestant at one number of streams.

Each contestant warms up alone, which shows its memory. Then they take turns, an update each and its products right
after, so that a machine that is busy for a while is busy for all.
"""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import cycle
from statistics import median
from typing import Any

import torch
from tqdm import tqdm

from elmoc.errors import InputError
from pretrain.data.batches import Batch
from pretrain.setup import TrainingSetup
from pretrain.speed.contestants import BASELINE, Contestant, untimed_updates
from pretrain.speed.matrix_products import seconds_of_products
from pretrain.speed.memory import PeakMemory
from pretrain.speed.streaming import first_batches, seconds_a_window, streamed_and_resident
from pretrain.speed.timing import spread, timed

BATCHES = 4
"""Windows that are read again and again, so that no contestant waits for data."""


@dataclass
class Entry:
    """A contestant and what was measured of it: for each timed update its seconds, and those of its products alone."""

    contestant: Contestant
    peak_bytes: int | None
    updates: list[float] = field(default_factory=list)
    products: list[float] = field(default_factory=list)

    def time_products(self) -> float:
        """Seconds that the products of an update take alone."""
        contestant = self.contestant
        return seconds_of_products(
            contestant.products, contestant.train_step.threads, contestant.setup.execution.device, contestant.dtype
        )

    def time_update(self, batch: Batch) -> None:
        """Time an update, and then its products alone."""
        self.updates.append(timed(lambda: self.contestant.update(batch), self.contestant.setup.execution.device)[0])
        self.products.append(self.time_products())

    def result(self, baseline: "Entry | None", flops_per_word: int, flops_per_second: float) -> dict[str, Any]:
        """The report on the contestant; its ratios are to `baseline`, update by update."""
        words = self.contestant.setup.data.words_per_update
        speed = spread([words / each for each in self.updates])
        ratios = None
        if baseline is not None:
            ratios = spread([theirs / mine for theirs, mine in zip(baseline.updates, self.updates, strict=True)])
        return {
            "precision": self.contestant.precision,
            "words_per_second": speed,
            f"ratio_to_{BASELINE}": ratios,
            "share_of_matrix_rate": flops_per_word * speed["median"] / flops_per_second,
            "share_of_bound": spread([one / other for one, other in zip(self.products, self.updates, strict=True)]),
            "bound_seconds": median(self.products),
            "update_seconds": median(self.updates),
            "peak_bytes": self.peak_bytes,
        }


def compare(
    setup: TrainingSetup,
    names: list[str],
    *,
    updates: int,
    warm_up: int,
    flops_per_word: int,
    flops_per_second: dict[str, float],
    progress: tqdm,
) -> dict[str, Any]:
    """The report on the contestants `names` with the streams of `setup`.

    `flops_per_second` is the best matrix rate in each precision.
    """
    batches = cycle(first_batches(setup, BATCHES))
    with ExitStack() as stack:
        entries = {}
        for name in names:
            entries[name] = warmed_up(name, setup, batches, warm_up, progress)
            stack.enter_context(closing(entries[name].contestant))
        for _ in range(updates):
            for entry in entries.values():
                entry.time_update(next(batches))
                progress.update()
        results = {
            name: entry.result(entries.get(BASELINE), flops_per_word, flops_per_second[entry.contestant.precision])
            for name, entry in entries.items()
        }
        fastest = min(entries.values(), key=lambda entry: median(entry.updates)).contestant
        tables = None
        if setup.execution.device.type == "cuda":
            try:
                tables = {"contestant": fastest.name} | streamed_and_resident(fastest)
            except InputError as error:
                tqdm.write(f"not compared with whole tables on the device: {error}")
    return {
        "streams": setup.data.streams,
        "words_per_update": setup.data.words_per_update,
        "data_seconds": seconds_a_window(setup),
        "contestants": results,
        "tables": tables,
    }


def warmed_up(name: str, setup: TrainingSetup, batches: Iterator[Batch], warm_up: int, progress: tqdm) -> Entry:
    """A contestant after its first updates (its products, too, are multiplied once), with the memory they took."""
    peak = PeakMemory(setup.execution.device)
    try:
        contestant = Contestant(name, setup)
        for _ in range(untimed_updates(name, warm_up)):
            contestant.update(next(batches))
            progress.update()
    except torch.OutOfMemoryError:
        raise InputError(
            f"{name} with {setup.data.streams} streams is more than the memory of {setup.execution.device}: take "
            "fewer --streams, or leave it out of --contestants"
        ) from None
    entry = Entry(contestant, peak.bytes())
    entry.time_products()
    return entry
