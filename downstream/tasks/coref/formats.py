"""The formats of documents with chains of mentions."""

from downstream.readers.formats import Format

FORMATS = (
    Format(
        "CoNLL-2012 `*_gold_conll`, OntoGUM, LitBank: chains in the last column",
        "#begin document (bn/a); part 000\n"
        "bn/a 0 0 Ana NNP (TOP(S* - - - Eve (PERSON) * (12)\n"
        "bn/a 0 1 left VBD *)) leave 01 1 Eve * (V*) -\n"
        "\n"
        "bn/a 0 0 She PRP (TOP*) - - - Eve * (12)\n"
        "\n"
        "#end document\n",
        ".conll",
    ),
    Format(
        "document, part, number, word, chains",
        "#begin document (a)\n"
        "a\t0\t0\tAna\t(0)\n"
        "a\t0\t1\tleft\t-\n"
        "\n"
        "a\t0\t0\tShe\t(0)\n"
        "#end document\n",
        ".conll",
    ),
)
