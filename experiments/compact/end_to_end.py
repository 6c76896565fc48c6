"""Word vectors that are trained end to end in a language model, whose input and softmax
share them: a full table, a factorised one, and ALONE (Takase and Kobayashi 2020,
Section 3.2, which has them in translation).

    python -m experiments.compact.end_to_end OUT --vectors FILE --words LEXICON
    --data DIR

Text, model and OUT are those of `experiments.compact.tying`.
"""

from experiments.compact.common import Options, run_table
from experiments.compact.tying import NEWS, TrainedText
from pretrain import CONFIGS

CONFIG = CONFIGS / "lm/lm_small_wt.toml"
# Adam, and larger batches: four epochs are enough to compare.
HOW = (
    "optimiser.kind=adam",
    "optimiser.gradient_norm=5",
    # At 3e-3 tied vectors learn nothing but frequencies for 800 updates.
    "schedule.base=2e-3",
    "schedule.decay_start=0.4",
    "schedule.decay_end=2",
    "schedule.minimum=0.5",
    "schedule.linear_warmup_updates=100",
    "schedule.linear_cooldown=0.6",
    "train.streams=64",
    "train.epochs=4",
    "evaluation.every_updates=700",
)
# Numbers of ALONE's base vector: the width of the model, as in its Section 2.3.
WIDTH = 200
# Of about as many numbers as a half, and a quarter, of a table of 10,000 words.
INNER_SIZES = (2_500, 1_250)
RANKS = (98, 49)


def rows() -> dict[str, list[str]]:
    """What is set in each training, by the name of its row."""
    made: dict[str, list[str]] = {"table": []}
    for rank in RANKS:
        made[f"factorised{rank}"] = ["kind=factorised", f"rank={rank}"]
    for size in INNER_SIZES:
        sizes = ["kind=alone", f"base_size={WIDTH}", f"inner_size={size}"]
        for kind in ("real", "binary"):
            made[f"alone{size}{kind}"] = [*sizes, f"filter={kind}"]
        made[f"alone{size}fixed"] = [*sizes, "fixed_base=true"]
    return made


def end_to_end(options: Options) -> None:
    """Print the table."""
    trained = TrainedText(options.out, "bbc", options.data / NEWS)
    for name, settings in rows().items():
        sets = [*HOW, *(f"input_layer.{each}" for each in settings)]
        print(f"{name:14} {trained.perplexity(name, CONFIG, sets)}", flush=True)


if __name__ == "__main__":
    run_table(end_to_end, "Perplexity with word vectors that are trained.")
