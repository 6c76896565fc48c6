"""The README's picture: what features gain over word vectors alone, by the words that
the encoder has read.

    python -m experiments.gain_by_words docs/gain_by_words.png
"""

import sys
from pathlib import Path

from matplotlib.figure import Figure

from elmoc.looking.figures import save_figure

# One training of small.toml, quick suite, development parts.
MILLION_WORDS = (0, 10.9, 53.8, 79.4)
GAINS = {
    "semantic roles (PropBank EWT, F1)": (0, 6.04, 8.11, 8.38),
    "entities (WNUT-17, F1)": (0, 3.66, 5.53, 6.20),
    "coreference (OntoGUM, F1)": (0, 7.36, 4.98, 4.19),
    "sentiment (SST-5, accuracy)": (0, 1.11, 2.24, 2.01),
    "inference (SNLI 5,000 pairs, accuracy)": (0, -1.08, 0.93, 1.17),
}


def main() -> None:
    """Draw the gains of every task to the file that the command line names."""
    figure = Figure(figsize=(8.4, 2.9), layout="constrained")
    axes = figure.subplots()
    axes.axhline(0, color="0.7", linewidth=1)
    for task, gains in GAINS.items():
        axes.plot(MILLION_WORDS, gains, marker="o", markersize=4, label=task)
    axes.set_xlabel("million words read in training")
    axes.set_ylabel("gain over word vectors alone")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    save_figure(figure, Path(sys.argv[1]))


if __name__ == "__main__":
    main()
