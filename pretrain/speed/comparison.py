"""How fast is each contestant at one number of streams?

Every contestant warms up alone, which shows its memory. Then they take turns, an update each and its products right
after, so that a machine that is busy for a while is so for all. Last, one update of each is watched.
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
from pretrain.data.loader import Batch
from pretrain.setup import TrainingSetup
from pretrain.speed.contestants import BASELINE, Contestant
from pretrain.speed.memory import PeakMemory
from pretrain.speed.products import time_products
from pretrain.speed.streaming import first_batches, seconds_a_window, streamed_and_resident
from pretrain.speed.time_split import shares
from pretrain.speed.timing import spread, timed

BATCHES = 4
"""So many windows are read again and again, so that no contestant waits for data."""


@dataclass
class Entry:
    """A contestant and what was measured of it.

    updates     seconds of each timed update
    products    for each timed update, the seconds of one of each of its products, in all directions
    """

    contestant: Contestant
    peak_bytes: int | None
    updates: list[float] = field(default_factory=list)
    products: list[list[float]] = field(default_factory=list)

    def time_update(self, batch: Batch) -> None:
        """Time an update, and then its products alone."""
        contestant, device = self.contestant, self.contestant.setup.device
        self.updates.append(timed(lambda: contestant.update(batch), device)[0])
        self.products.append(time_products(contestant.products, contestant.runner, device, contestant.dtype))


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
    train = setup.config.train
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
        results = {name: result(entry, entries.get(BASELINE), next(batches)) for name, entry in entries.items()}
        for each in results.values():
            rate = flops_per_word * each["words_per_second"]["median"]
            each["share_of_matrix_rate"] = rate / flops_per_second[each["precision"]]
        fastest = min(entries.values(), key=lambda entry: median(entry.updates)).contestant
        tables = None
        if setup.device.type == "cuda":
            try:
                tables = streamed_and_resident(fastest)
            except InputError as error:
                tqdm.write(f"not compared with whole tables on the device: {error}")
    return {
        "streams": train.streams,
        "words_per_update": setup.words_per_update,
        "data_seconds": seconds_a_window(setup),
        "contestants": results,
        "tables": None if tables is None else {"contestant": fastest.name} | tables,
    }


def warmed_up(name: str, setup: TrainingSetup, batches: Iterator[Batch], warm_up: int, progress: tqdm) -> Entry:
    """A contestant after its first updates (its products, too, are multiplied once), with the memory they took."""
    peak = PeakMemory(setup.device)
    try:
        contestant = Contestant(name, setup)
        for _ in range(warm_up):
            contestant.update(next(batches))
            progress.update()
    except torch.OutOfMemoryError:
        raise InputError(
            f"{name} with {setup.config.train.streams} streams is more than the memory of {setup.device}: take "
            "fewer --streams, or leave it out of --contestants"
        ) from None
    taken = peak.bytes()
    time_products(contestant.products, contestant.runner, setup.device, contestant.dtype)
    return Entry(contestant, taken)


def result(entry: Entry, baseline: Entry | None, batch: Batch) -> dict[str, Any]:
    """The report on a contestant; `batch` is for the update that is watched."""
    contestant, words = entry.contestant, entry.contestant.setup.words_per_update
    seconds = median(entry.updates)
    bounds = [
        sum(product.count * each for product, each in zip(contestant.products, times, strict=True))
        for times in entry.products
    ]
    ratios = None
    if baseline is not None:
        ratios = [theirs / mine for theirs, mine in zip(baseline.updates, entry.updates, strict=True)]
    return {
        "precision": contestant.precision,
        "words_per_second": spread([words / each for each in entry.updates]),
        f"ratio_to_{BASELINE}": None if ratios is None else spread(ratios),
        "seconds_per_million_words": 1e6 * seconds / words,
        "share_of_bound": spread([bound / update for bound, update in zip(bounds, entry.updates, strict=True)]),
        "bound_seconds": median(bounds),
        "update_seconds": seconds,
        "split_seconds": {part: share * seconds for part, share in shares(contestant, batch).items()},
        "peak_bytes": entry.peak_bytes,
        "products": [
            {
                "name": product.name,
                "rows": product.rows,
                "inner": product.inner,
                "columns": product.columns,
                "count": product.count,
                "seconds": median(times),
                "flops_per_second": len(contestant.runner.directions) * product.flops / median(times),
            }
            for product, times in zip(contestant.products, zip(*entry.products, strict=True), strict=True)
        ],
    }
