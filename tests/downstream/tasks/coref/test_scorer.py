"""MUC, B³ and CEAFφ4: the counts of the official scorer."""

from itertools import permutations

import numpy as np
import pytest
from downstream.metrics import ratio
from downstream.tasks.coref.scorer import METRICS, Chain, Mention, chain_f1, count_chains, without_singletons


def chains(text: str) -> list[list[Mention]]:
    """`a bc` → two chains: every letter is another mention of one word, a capital one of two words from there."""
    return [
        [(ord(letter.lower()), ord(letter.lower()) + letter.isupper()) for letter in chain] for chain in text.split()
    ]


def scores(key: list[Chain], response: list[Chain]) -> dict[str, tuple[float, ...]]:
    """Metric → precision, recall, F1, none of them in percent."""
    counts = count_chains(key, response)
    parts = (ratio(counts[:, 2], counts[:, 3]), ratio(counts[:, 0], counts[:, 1]), chain_f1(counts))
    return {name: tuple(part[row] / 100 for part in parts) for row, name in enumerate(METRICS)}


# key, response; then numerator and denominator of recall and of precision: MUC, B³, CEAFφ4, mentions.
# The keys `a bc def` and the responses to it are the official scorer's test cases 1 to 9 with its figures for CEAFφ4.
WORKED = [
    ("a bc def", "a bc def", (3, 3, 3, 3), (6, 6, 6, 6), (3, 3, 3, 3), (6, 6, 6, 6)),
    # mentions and a chain that the response lacks
    ("a bc def", "a de", (1, 3, 1, 1), (1 + 4 / 3, 6, 3, 3), (1.8, 3, 1.8, 2), (3, 6, 3, 3)),
    # mentions that are not in the key: x, y, z
    (
        *("a bc def", "a bcx defy z", (3, 3, 3, 5)),
        *((6, 6, 1 + 4 / 3 + 9 / 4, 9), (1 + 4 / 5 + 6 / 7, 3, 1 + 4 / 5 + 6 / 7, 4), (6, 6, 6, 9)),
    ),
    # both
    ("a bc def", "a bcx dy z", (1, 3, 1, 3), (1 + 2 + 1 / 3, 6, 1 + 4 / 3 + 1 / 2, 7), (2.2, 3, 2.2, 4), (4, 6, 4, 7)),
    # B is another mention than b though they share a word, in the aligned chain and in another
    (
        *("a bc def", "a bcxB dy z", (1, 3, 1, 4)),
        *((1 + 2 + 1 / 3, 6, 1 + 1 + 1 / 2, 8), (1 + 4 / 6 + 2 / 5, 3, 1 + 4 / 6 + 2 / 5, 4), (4, 6, 4, 8)),
    ),
    (
        *("a bc def", "a bcx dy Bz", (1, 3, 1, 4)),
        *((1 + 2 + 1 / 3, 6, 1 + 4 / 3 + 1 / 2, 8), (2.2, 3, 2.2, 4), (4, 6, 4, 8)),
    ),
    # everything in one chain, nothing in any
    ("abc de", "abcde", (3, 3, 3, 4), (5, 5, 9 / 5 + 4 / 5, 5), (6 / 8, 2, 6 / 8, 1), (5, 5, 5, 5)),
    ("abc de", "", (0, 3, 0, 0), (0, 5, 0, 0), (0, 2, 0, 0), (0, 5, 0, 0)),
    ("", "ab", (0, 0, 0, 1), (0, 0, 0, 2), (0, 0, 0, 1), (0, 0, 0, 2)),
    ("", "", (0, 0, 0, 0), (0, 0, 0, 0), (0, 0, 0, 0), (0, 0, 0, 0)),
    # nested mentions (A holds a) of two chains, and of one
    ("Ac ad", "ac Ad", (0, 2, 0, 2), (2, 4, 2, 4), (1, 2, 1, 2), (4, 4, 4, 4)),
    ("Aac", "Aa", (1, 2, 1, 1), (4 / 3, 3, 2, 2), (4 / 5, 1, 4 / 5, 1), (2, 3, 2, 2)),
    # crossing mentions (A and B share a word)
    ("Ac Bd", "AB cd", (0, 2, 0, 2), (2, 4, 2, 4), (1, 2, 1, 2), (4, 4, 4, 4)),
    # b is in two chains of the key: it belongs to the last one, but stays in both
    ("ab bc", "ab", (0, 2, 0, 1), (1 + 1 / 2, 4, 1 + 1 / 2, 2), (1, 2, 1, 1), (2, 3, 2, 2)),
    ("ab bc", "bc", (1, 2, 1, 1), (2, 4, 2, 2), (1, 2, 1, 1), (2, 3, 2, 2)),
]


@pytest.mark.parametrize(("key", "response", "muc", "b_cubed", "ceaf", "mentions"), WORKED)
def test_counts_worked_by_hand(
    key: str,
    response: str,
    muc: tuple[float, ...],
    b_cubed: tuple[float, ...],
    ceaf: tuple[float, ...],
    mentions: tuple[float, ...],
) -> None:
    counts = dict(zip(METRICS, count_chains(chains(key), chains(response)).tolist(), strict=True))
    assert counts["MUC"] == pytest.approx(muc)
    assert counts["B³"] == pytest.approx(b_cubed)
    assert counts["CEAFφ4"] == pytest.approx(ceaf)
    assert counts["mentions"] == list(mentions)


def test_documents_are_summed_before_dividing() -> None:
    first, second = count_chains(chains("ab"), chains("ab")), count_chains(chains("abcd"), chains("ab"))
    f1 = chain_f1(np.stack([first + second, first]))
    assert f1.shape == (2, 4)
    assert f1[0, 0] == pytest.approx(200 / 3), "MUC: 2 of 2 and 2 of 4 links"
    assert f1[1].tolist() == [100] * 4
    assert chain_f1(np.zeros(4)) == 0


def test_singletons_are_left_out() -> None:
    assert without_singletons(chains("a bc d")) == chains("bc")


def plain_scores(key: list[Chain], response: list[Chain]) -> dict[str, tuple[float, float]]:
    """Metric → recall, precision, as the papers define them; no mention is repeated."""

    def vilain(left: list[Chain], right: list[Chain]) -> float:
        found = links = 0
        for chain in left:
            pieces = {next((row for row, other in enumerate(right) if mention in other), mention) for mention in chain}
            found += len(chain) - len(pieces)
            links += len(chain) - 1
        return found / links if links else 0.0

    def bagga(left: list[Chain], right: list[Chain]) -> float:
        shares = [
            len(set(chain) & next((set(other) for other in right if mention in other), set())) / len(chain)
            for chain in left
            for mention in chain
        ]
        return sum(shares) / len(shares) if shares else 0.0

    few, many = sorted((key, response), key=len)
    best = max(
        sum(2 * len(set(one) & set(other)) / (len(one) + len(other)) for one, other in zip(few, order, strict=False))
        for order in permutations(many)
    )
    return {
        "MUC": (vilain(key, response), vilain(response, key)),
        "B³": (bagga(key, response), bagga(response, key)),
        "CEAFφ4": (best / len(key) if key else 0.0, best / len(response) if response else 0.0),
    }


def test_scores_of_random_chains_are_the_papers() -> None:
    generator = np.random.default_rng(0)
    for _ in range(60):
        sides = []
        for _ in range(2):
            letters = generator.permutation(list("abcdefghij"))[: generator.integers(1, 10)]
            places = generator.integers(0, 4, size=len(letters))
            sides.append(chains(" ".join("".join(letters[places == place]) for place in range(4))))
        found = scores(*sides)
        for name, (recall, precision) in plain_scores(*sides).items():
            assert found[name][:2] == pytest.approx((precision, recall)), (name, sides)
