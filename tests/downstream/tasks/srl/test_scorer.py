"""Counts of arguments: those of srl-eval.pl, worked out by hand from its rules."""

import pytest
from downstream.readers.columns import Span
from downstream.tasks.srl.scorer import count_arguments


def spans(text: str) -> list[Span]:
    """`ARG0:0-1 V:2` as spans."""
    found = []
    for part in text.split():
        label, _, places = part.partition(":")
        first, _, last = places.partition("-")
        found.append(Span(label, int(first), int(last or first)))
    return found


@pytest.mark.parametrize(
    ("gold", "predicted", "counts"),
    [
        # label and both boundaries must be right; V is left out
        ("ARG0:0-1 V:2 ARG1:3-5", "ARG0:0-1 V:2 ARG1:3-5", (2, 2, 2)),
        ("ARG0:0-1 V:2 ARG1:3-5", "ARG0:0-1 V:2 ARG1:3-4 ARG2:5", (1, 2, 3)),
        ("ARG0:0-1 V:2 ARG1:3-5", "ARG1:0-1 V:2", (0, 2, 1)),
        ("V:2", "V:2-3", (0, 0, 0)),
        ("V:2", "", (0, 0, 0)),
        # C-V is a piece of V, with a V before it or without
        ("V:2 ARG1:3 C-V:4", "V:2 ARG1:3", (1, 1, 1)),
        ("V:2", "C-V:1 V:2", (0, 0, 0)),
        # all pieces, or none
        ("ARG1:0 V:1 C-ARG1:2-3", "ARG1:0 V:1 C-ARG1:2-3", (1, 1, 1)),
        ("ARG1:0 V:1 C-ARG1:2-3", "ARG1:0 V:1 C-ARG1:3", (0, 1, 1)),
        ("ARG1:0 V:1 C-ARG1:2-3", "ARG1:0 V:1", (0, 1, 1)),
        ("ARG1:0 V:1 C-ARG1:2-3", "ARG1:0 V:1 ARG1:2-3", (0, 1, 2)),
        ("ARG1:0 V:1 C-ARG1:3 C-ARG1:5", "ARG1:0 V:1 C-ARG1:3-5", (0, 1, 1)),
        # pieces join the last span of their role
        ("ARG1:0 V:1 C-ARG1:2 ARG1:3 C-ARG1:5 C-ARG1:7", "ARG1:0 V:1 C-ARG1:2 ARG1:3 C-ARG1:5", (1, 2, 2)),
        ("ARG1:0 ARG1:3 C-ARG1:5", "ARG1:3 C-ARG1:5", (1, 2, 1)),
        # a C-X that nothing precedes counts as X; one that follows another role does not join it
        ("ARG1:3", "C-ARG1:3", (1, 1, 1)),
        ("C-ARG2:0 V:1 C-ARG2:3 ARG2:5", "ARG2:0 V:1 C-ARG2:3 ARG2:5", (2, 2, 2)),
        ("ARG0:0 ARG1:3", "ARG0:0 C-ARG1:3", (2, 2, 2)),
        # the same role twice is two arguments
        ("ARGM-TMP:0 V:1 ARGM-TMP:2", "ARGM-TMP:0 V:1", (1, 2, 1)),
        # R-X is neither X nor a piece of it
        ("ARG0:0 R-ARG0:1 V:2", "ARG0:0 V:2", (1, 2, 1)),
        ("ARG0:0 R-ARG0:1 V:2", "ARG0:0 ARG0:1 V:2", (1, 2, 2)),
        ("ARG0:0 R-ARG0:1 V:2", "ARG0:0 C-ARG0:1 V:2", (0, 2, 1)),
        # nothing at all
        ("", "", (0, 0, 0)),
        ("", "ARG0:0", (0, 0, 1)),
    ],
)
def test_one_proposition(gold: str, predicted: str, counts: tuple[float, ...]) -> None:
    assert count_arguments([spans(gold)], [spans(predicted)]).tolist() == list(counts)


def test_propositions_are_compared_one_by_one() -> None:
    gold = [spans("ARG0:0 V:1 ARG1:2"), spans("ARG0:2 V:3")]
    assert count_arguments(gold, gold).tolist() == [3, 3, 3]
    # the spans of both are found, but each with the other predicate
    assert count_arguments(gold, gold[::-1]).tolist() == [0, 3, 3]
