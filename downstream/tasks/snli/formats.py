"""The formats of pairs of sentences."""

from downstream.readers.formats import Format

FORMATS = (
    Format(
        "SNLI's and MultiNLI's JSON lines",
        '{"gold_label": "neutral", "sentence1": "A dog ran.", "sentence2": "Rain."}\n'
        '{"gold_label": "-", "sentence1": "A dog ran.", "sentence2": "It slept."}\n',
        ".jsonl",
    ),
    Format(
        "tab-separated",
        "gold_label\tsentence1\tsentence2\n"
        "neutral\tA dog ran.\tIt is big.\n"
        "entailment\tA dog ran.\tIt moved.\n",
    ),
    Format(
        "comma-separated",
        "premise,hypothesis,label\n"
        '"Well, a dog ran.",It is big.,neutral\n'
        "A dog ran.,It moved.,entailment\n",
        ".csv",
    ),
)
