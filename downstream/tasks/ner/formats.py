"""The formats of sentences with names of things."""

from downstream.readers.formats import Format

FORMATS = (
    Format(
        "a word, a tab, a tag: WNUT-17, Broad Twitter Corpus",
        "Ana\tB-PER\nleft\tO\nLima\tB-LOC\n",
    ),
    Format(
        "types alone, `B_PER` or `PER-B`: Few-NERD, CoreNLP",
        "Ana\tperson-artist\nleft\tO\nLima\tlocation-GPE\n",
    ),
    Format(
        "WikiANN: a language in front of each word",
        "en:Ana\tB-PER\nen:left\tO\nen:Lima\tB-LOC\n",
    ),
    Format(
        "CoNLL-2003; its lines of `-DOCSTART-` are left out",
        "Ana NNP B-NP B-PER\nleft VBD B-VP O\nLima NNP B-NP B-LOC\n",
    ),
    Format(
        "GermEval 2014: two layers of entities, the outer one",
        "# http://a.org\n1\tAna\tB-PER\tO\n2\tfehlt\tO\tO\n",
        options={"column": 2},
    ),
    Format(
        "LitBank: layers of entities, the outer one",
        "Ana\tB-PER\tO\tO\tO\nleft\tO\tO\tO\tO\n",
        options={"column": 1},
    ),
    Format(
        "OntoNotes, CoNLL-2012: brackets",
        "#begin document (bn/a); part 000\n"
        "bn/a 0 0 Ana NNP (TOP(S* - - - Eve (PERSON) * -\n"
        "bn/a 0 1 left VBD *)) leave 01 1 Eve * (V*) -\n"
        "\n"
        "#end document\n",
        options={"column": 10},
    ),
)
