"""Formats: how the files of each task may look, by examples.

A test has every example read, and finds its first lines in docs/probes.md.
"""

# Task → name of a format, with the options of the reader that it needs → a small file.
FORMATS: dict[str, dict[str, str]] = {
    "snli": {
        "JSON lines of SNLI and MultiNLI": (
            '{"gold_label": "neutral", "sentence1": "A dog ran", "sentence2": "Rain"}\n'
            '{"gold_label": "-", "sentence1": "A dog ran", "sentence2": "It slept"}\n'
        ),
        "tabs: SNLI, MultiNLI, XNLI": (
            "gold_label\tsentence1\tsentence2\nneutral\tA dog ran.\tIt is big.\nentailment\tA dog ran.\tIt moved.\n"
        ),
        "exports of hubs": (
            "premise,hypothesis,label\n"
            '"Well, a dog ran.",It is big.,1\n'
            "A dog ran.,It moved.,0\n"
            "A dog ran.,It slept.,2\n"
        ),
    },
    "ner": {
        "a word, a tab, a tag: WNUT-17, Broad Twitter Corpus": ("Ana\tB-PER\nleft\tO\nLima\tB-LOC\n"),
        "types alone, `B_PER` or `PER-B`: Few-NERD, CoreNLP": ("Ana\tperson-artist\nleft\tO\nLima\tlocation-GPE\n"),
        "WikiANN: a language in front of each word": ("en:Ana\tB-PER\nen:left\tO\nen:Lima\tB-LOC\n"),
        "CoNLL-2003; its lines of `-DOCSTART-` are left out": (
            "Ana NNP B-NP B-PER\nleft VBD B-VP O\nLima NNP B-NP B-LOC\n"
        ),
        "GermEval 2014: two layers of entities, the outer one: `--column 2`": (
            "# http://a.org\n1\tAna\tB-PER\tO\n2\tfehlt\tO\tO\n"
        ),
        "LitBank: layers of entities, the inner one: `--column 1`": ("Ana\tB-PER\tO\tO\tO\nleft\tO\tO\tO\tO\n"),
        "OntoNotes, CoNLL-2012: brackets: `--column 10`": (
            "#begin document (bn/a); part 000\n"
            "bn/a 0 0 Ana NNP (TOP(S* - - - Eve (PERSON) * -\n"
            "bn/a 0 1 left VBD *)) leave 01 1 Eve * (V*) -\n"
            "\n"
            "#end document\n"
        ),
        "rows of data hubs (JSON lines, a JSON array, Parquet); `--tag-names` has the names of numbers": (
            '{"tokens": ["Ana", "left", "Lima"], "ner_tags": ["B-PER", "O", "B-LOC"]}\n'
        ),
    },
    "sst5": {
        "trees of the Stanford Sentiment Treebank": (
            "(3 (2 This) (3 (3 works) (2 .)))\n(1 (2 It) (1 (1 (2 is) (1 dull)) (2 .)))\n(2 (2 It) (2 ends))\n"
        ),
        "exports of hubs": (
            '{"text": "This works .", "label": 3, "label_text": "positive"}\n'
            '{"text": "It ends .", "label": 2, "label_text": "neutral"}\n'
        ),
    },
    "imdb": {
        "JSON lines": ('{"text": "Superb.<br />I liked it!", "label": "pos"}\n{"text": "I left.", "label": "neg"}\n'),
        "exports of hubs": ('review,sentiment\n"Superb, I liked it!",positive\nI left.,negative\n'),
    },
    "srl": {
        "CoNLL-2012 `*_gold_conll` with propositions": (
            "#begin document (bn/a); part 000\n"
            "bn/a 0 0 Ana NNP (TOP(S* - - - Eve (PERSON) (ARG0*) -\n"
            "bn/a 0 1 left VBD *)) leave 01 1 Eve * (V*) -\n"
            "\n"
            "#end document\n"
        ),
        "PropBank's own release, its words put in": (
            "a.xml 0 0 Ana NNP (S* - - (ARG0*)\na.xml 0 1 left VBD *) leave leave.01 (V*)\n"
        ),
        "CoNLL-2005: words, others or none, then its `props`": ("Ana NNP - (A0*)\nleft VBD leave (V*)\n"),
    },
    "coref": {
        "CoNLL-2012 `*_gold_conll`, OntoGUM, LitBank: chains in the last column": (
            "#begin document (bn/a); part 000\n"
            "bn/a 0 0 Ana NNP (TOP(S* - - - Eve (PERSON) * (12)\n"
            "bn/a 0 1 left VBD *)) leave 01 1 Eve * (V*) -\n"
            "\n"
            "bn/a 0 0 She PRP (TOP*) - - - Eve * (12)\n"
            "\n"
            "#end document\n"
        ),
        "document, part, number, word, chains": (
            "#begin document (a)\na\t0\t0\tAna\t(0)\na\t0\t1\tleft\t-\n\na\t0\t0\tShe\t(0)\n#end document\n"
        ),
        "JSON lines of e2e-coref, which `elmoc dump-features` takes, too": (
            '{"doc_key": "bn/a", "sentences": [["Ana", "left"], ["She", "ran"]], "clusters": [[[0, 0], [2, 2]]]}\n'
        ),
    },
}
