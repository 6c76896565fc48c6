"""The formats of sentences with predicates and their arguments."""

from downstream.readers.formats import Format

FORMATS = (
    Format(
        "CoNLL-2012 `*_gold_conll` with propositions",
        "#begin document (bn/a); part 000\n"
        "bn/a 0 0 Ana NNP (TOP(S* - - - Eve (PERSON) (ARG0*) -\n"
        "bn/a 0 1 left VBD *)) leave 01 1 Eve * (V*) -\n"
        "\n"
        "#end document\n",
        ".conll",
    ),
    Format(
        "PropBank's own release, its words put in",
        "a.xml 0 0 Ana NNP (S* - - (ARG0*)\n"
        "a.xml 0 1 left VBD *) leave leave.01 (V*)\n",
        ".conll",
    ),
    Format(
        "CoNLL-2005: words, others or none, then its `props`",
        "Ana NNP - (A0*)\nleft VBD leave (V*)\n",
        ".props",
    ),
)
