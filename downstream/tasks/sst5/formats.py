"""The formats of sentences in five classes."""

from downstream.readers.formats import Format

FORMATS = (
    Format(
        "trees of the Stanford Sentiment Treebank",
        "(3 (2 This) (3 (3 works) (2 .)))\n"
        "(1 (2 It) (1 (1 (2 is) (1 dull)) (2 .)))\n"
        "(2 (2 It) (2 ends))\n",
    ),
)
