"""The SST-5 task: trees are read, learned and scored."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from downstream.inputs.sentence import TaskSentence
from downstream.tasks.sst5.task import TASK, Phrase, Sst5ReaderOptions

TREES = """\
(4 (2 (2 The) (2 actors)) (3 (4 (2 are) (3 fantastic)) (2 .)))
(0 (2 It) (0 (1 (2 was) (0 terrible)) (2 .)))
(2 (2 Chomp) (2 (2 chomp) (2 !)))
"""

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


def example(label: int) -> Phrase:
    return Phrase(TaskSentence(("x",), "f", 1), label, root=True)


@pytest.fixture
def ten_trees(tmp_path: Path) -> Path:
    path = tmp_path / "ten.txt"
    path.write_text(TEN_TREES, encoding="utf-8")
    return path


def test_every_node_is_a_phrase_in_training_and_the_sentence_comes_first(tmp_path: Path) -> None:
    phrases = read(tmp_path / "trees.txt", TREES)
    assert texts(phrases)[:9] == [
        *("4 The actors are fantastic .", "2 The actors", "2 The", "2 actors", "3 are fantastic .", "4 are fantastic"),
        *("2 are", "3 fantastic", "2 ."),
    ]
    assert len(phrases) == 9 + 7 + 5
    assert [phrase.sentence.line for phrase in phrases] == [1] * 9 + [2] * 7 + [3] * 5
    assert [row for row, phrase in enumerate(phrases) if phrase.root] == [0, 9, 16]
    assert TASK.describe(phrases) == "3 sentences, 12 tokens, labels from 0: 1 0 1 0 1; 21 phrases, 38 tokens"


def test_sentences_alone_are_read_for_scoring(tmp_path: Path) -> None:
    expected = ["4 The actors are fantastic .", "0 It was terrible .", "2 Chomp chomp !"]
    for phrases in (
        read(tmp_path / "trees.txt", TREES, training=False),
        read(tmp_path / "trees.txt", TREES, "none"),
    ):
        assert texts(phrases) == expected
        assert all(phrase.root for phrase in phrases)
        assert TASK.describe(phrases) == "3 sentences, 12 tokens, labels from 0: 1 0 1 0 1"


def test_distinct_phrases_are_read_once_for_each_label(tmp_path: Path) -> None:
    trees = "(3 (2 so) (3 (2 so) (4 good)))\n(2 so)\n(3 (3 so) (4 good))\n(2 (2 so) (2 so))\n"
    assert texts(read(tmp_path / "trees.txt", trees, "distinct")) == [
        *("3 so so good", "2 so", "3 so good", "4 good", "3 so", "2 so so"),
    ]
    both = read(tmp_path / "trees.txt", trees + trees, "distinct")
    assert texts(both) == texts(read(tmp_path / "trees.txt", trees, "distinct"))
    assert max(phrase.sentence.line for phrase in both) == 4, "the first of equal phrases stays"


def test_spelling_is_that_of_the_pretraining_text_and_words_stay_whole(tmp_path: Path) -> None:
    tree = "(2 (2 (2 ``) (2 -LRB-)) (2 (2 (2 writer\\/director) (2 8\u00a01\\/2)) (2 (2 '') (2 -RRB-))))\n\n"
    (root,) = read(tmp_path / "trees.txt", "\n" + tree, training=False)
    assert root.sentence.words == ('"', "(", "writer/director", "8_1/2", '"', ")")
    assert (root.sentence.file, root.sentence.line) == (str(tmp_path / "trees.txt"), 2)
    with gzip.open(tmp_path / "trees.txt.gz", "wt", encoding="utf-8") as file:
        file.write(tree)
    (same,) = TASK.read(tmp_path / "trees.txt.gz", TASK.reader, training=False)
    assert same.sentence.words == root.sentence.words


def test_accuracy_worked_by_hand() -> None:
    gold = [example(label) for label in (0, 1, 2, 3, 4)]
    predictions = [
        [0.4, 0.3, 0.1, 0.1, 0.1],  # right
        [0.3, 0.3, 0.2, 0.1, 0.1],  # 0 for 1: of equal ones the first; negative all the same
        [0.1, 0.1, 0.6, 0.1, 0.1],  # right
        [0.2, 0.2, 0.3, 0.3, 0.0],  # 2 for 3; more negative than positive
        [0.0, 0.0, 0.3, 0.4, 0.3],  # 3 for 4; positive
    ]
    probabilities = [dict(enumerate(row)) for row in predictions]
    counts = np.array([TASK.count(*pair) for pair in zip(gold, probabilities, strict=True)])
    assert counts.tolist() == [[1, 1], [0, 1], [1, 1], [0, 1], [0, 1]]
    assert TASK.metrics(counts.sum(0))["accuracy"] == pytest.approx(40)
    resampled = np.stack([counts.sum(0), 2 * counts[0], counts[1] + counts[2]])
    np.testing.assert_allclose(TASK.metrics(resampled)[TASK.metric], [40, 100, 50])
