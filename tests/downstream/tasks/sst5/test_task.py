"""The SST-5 task: trees are read, learned and scored."""

from pathlib import Path

from downstream.tasks.sst5.task import TASK, Phrase, Sst5ReaderOptions

TREES = """\
(4 (2 (2 The) (2 actors)) (3 (4 (2 are) (3 fantastic)) (2 .)))
(0 (2 It) (0 (1 (2 was) (0 terrible)) (2 .)))
(2 (2 Chomp) (2 (2 chomp) (2 !)))
"""
REPEATED = "(3 (2 so) (3 (2 so) (4 good)))\n(2 so)\n(3 (3 so) (4 good))\n(2 (2 so) (2 so))\n"

# words alone do not give the class away: two of them turn it round
TEN_TREES = """\
(4 (2 (2 The) (2 film)) (4 (2 is) (4 superb)))
(0 (2 (2 The) (2 film)) (0 (2 is) (0 awful)))
(1 (2 (2 The) (2 film)) (1 (2 is) (1 (2 not) (4 superb))))
(3 (2 (2 A) (2 plot)) (3 (2 with) (3 wit)))
(1 (2 (2 A) (2 plot)) (1 (2 without) (3 wit)))
(0 (2 It) (0 (2 fails) (2 .)))
(4 (2 It) (4 (2 never) (0 fails)))
(3 (2 Go) (2 .))
(2 (2 It) (2 (2 opens) (2 today)))
(2 Nothing)
"""


def read(path: Path, text: str, subtrees: str = "all", training: bool = True) -> list[Phrase]:
    path.write_text(text, encoding="utf-8")
    options = Sst5ReaderOptions(subtrees=subtrees)
    phrases = TASK.read(path, options, training=training)
    return TASK.training_examples(phrases, options) if training else phrases


def texts(phrases: list[Phrase]) -> list[str]:
    return [f"{phrase.label} {' '.join(phrase.sentence.words)}" for phrase in phrases]


def test_every_node_is_a_phrase_in_training_and_the_sentence_comes_first(tmp_path: Path) -> None:
    phrases = read(tmp_path / "trees.txt", TREES)
    assert texts(phrases)[:9] == [
        *("4 The actors are fantastic .", "2 The actors", "2 The", "2 actors", "3 are fantastic .", "4 are fantastic"),
        *("2 are", "3 fantastic", "2 ."),
    ]
    assert len(phrases) == 9 + 7 + 5
    assert [phrase.sentence.line for phrase in phrases] == [1] * 9 + [2] * 7 + [3] * 5


def test_sentences_alone_are_read_for_scoring(tmp_path: Path) -> None:
    expected = ["4 The actors are fantastic .", "0 It was terrible .", "2 Chomp chomp !"]
    for phrases in (read(tmp_path / "trees.txt", TREES, training=False), read(tmp_path / "trees.txt", TREES, "none")):
        assert texts(phrases) == expected


def test_distinct_phrases_are_read_once_for_each_label(tmp_path: Path) -> None:
    assert texts(read(tmp_path / "trees.txt", REPEATED, "distinct")) == [
        *("3 so so good", "2 so", "3 so good", "4 good", "3 so", "2 so so"),
    ]
    both = read(tmp_path / "trees.txt", REPEATED + REPEATED, "distinct")
    assert texts(both) == texts(read(tmp_path / "trees.txt", REPEATED, "distinct"))
    assert max(phrase.sentence.line for phrase in both) == 4, "the first of equal phrases stays"
