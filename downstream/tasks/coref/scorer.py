"""Scorer of coreference: which mentions and links are right?

Chains are counted as by the official CoNLL scorer (8.01, Pradhan et al. 2014):
MUC (Vilain et al. 1995), B³ (Bagga and Baldwin 1998) and CEAFφ4 (Luo 2005). A mention
is its first and last word; a chain is a list of mentions, each of which it has once.

Every metric is a row of four counts: numerator and denominator of recall, numerator and
denominator of precision. Rows of documents are summed before the division.

A mention of several chains of the key stays in each of them, and belongs to the last
one where a metric asks for its chain. Chains of the response share no mention.
"""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from downstream.metrics import ratio

Mention = tuple[int, int]
Chain = Sequence[Mention]

# The order of the rows of counts.
METRICS = ("MUC", "B³", "CEAFφ4", "mentions")


def count_chains(key: Sequence[Chain], response: Sequence[Chain]) -> np.ndarray:
    """float64 [4, 4]: the counts of each of `METRICS` for one document."""
    key_chain = chain_numbers(key)
    response_chain = chain_numbers(response)
    # The mentions that chains of the key (rows) share with chains of the response, and
    # those of them that belong to the row's chain.
    shared = np.zeros((len(key), len(response)))
    belonging = np.zeros_like(shared)
    for row, chain in enumerate(key):
        for mention in chain:
            if mention in response_chain:
                column = response_chain[mention]
                shared[row, column] += 1
                belonging[row, column] += key_chain[mention] == row
    of_key = np.array([len(chain) for chain in key], dtype=np.float64)
    of_response = np.array([len(chain) for chain in response], dtype=np.float64)
    # A chain of n mentions has n − 1 links.
    links = (belonging - 1).clip(min=0).sum()
    muc = [links, (of_key - 1).sum(), links, (of_response - 1).sum()]
    # For each mention, the share of its chain that is in its other chain.
    products = belonging * shared
    recall = (products / of_key[:, None]).sum()
    precision = (products / of_response).sum()
    b_cubed = [recall, of_key.sum(), precision, of_response.sum()]
    # φ4 is the Dice coefficient of two chains, under the best one-to-one alignment.
    dice = 2 * shared / (of_key[:, None] + of_response)
    best = dice[linear_sum_assignment(dice, maximize=True)].sum()
    ceaf = [best, len(key), best, len(response)]
    # Mentions that both sides have, whatever their chains.
    common = len(key_chain.keys() & response_chain.keys())
    mentions = [common, len(key_chain), common, len(response_chain)]
    return np.array([muc, b_cubed, ceaf, mentions], dtype=np.float64)


def chain_f1(counts: np.ndarray) -> np.ndarray:
    """Summed counts [..., 4] → F1 [...] in percent; 0 for an empty denominator."""
    recall = ratio(counts[..., 0], counts[..., 1])
    precision = ratio(counts[..., 2], counts[..., 3])
    return ratio(2 * precision * recall, precision + recall) / 100


def without_singletons(chains: Sequence[Chain]) -> list[Chain]:
    """The chains of two or more mentions."""
    return [chain for chain in chains if len(chain) > 1]


def chain_numbers(chains: Sequence[Chain]) -> dict[Mention, int]:
    """The number of the chain of each mention: of its last chain, if it has several."""
    return {mention: number for number, chain in enumerate(chains) for mention in chain}
