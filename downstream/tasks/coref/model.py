"""The coarse-to-fine model of Lee et al. (2018): sentences → LSTM → spans and their
mention scores → the best spans → antecedents from coarse to fine, with higher-order
inference → chains.

Its character CNN is left out; the head attention has the word vectors of the LSTM, not
others of a window of 2 words.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize, pad

from downstream.inputs.probe_inputs import ProbeInputs
from downstream.inputs.sentence import TaskSentence
from downstream.modules.lstm import HighwayBiLstm
from downstream.probe.task import Probe, require_numbers
from downstream.readers.conll2012 import Document
from downstream.tasks.coref.antecedents import AntecedentScorer, antecedent_loss
from downstream.tasks.coref.scorer import Mention, chain_numbers
from downstream.tasks.coref.spans import CorefSettings, SpanScorer

# Names of documents that tell the genre: `bn/cnn/00/cnn_0000` (OntoNotes),
# `GUM_academic_art`.
_GENRE = re.compile(r"#begin document \((?:GUM_([^_/)]+)_|([^/)]+)/)")


@dataclass(frozen=True)
class CorefDocument:
    """A document and its gold chains, singletons among them; words are counted from 0
    through the whole document.

    speakers: of each word.
    """

    document: Document
    sentences: list[TaskSentence]
    speakers: list[str]
    chains: list[list[Mention]]

    @property
    def genre(self) -> str:
        """What the document's name tells of its genre; "" where it does not."""
        match = _GENRE.match(self.document.heading)
        return "" if match is None else match[1] or match[2]


class CorefProbe(Probe[CorefDocument, list[list[Mention]]]):
    """The coarse-to-fine model; predictions are chains of two or more mentions.

    With a head size of 0, as published, word vectors are brought to unit length (else
    products of two spans start far larger than the other parts of a pair), and the head
    attention reads them alone, or layer states of unit length where there are no word
    vectors. Dropout comes after, as bringing to unit length would undo its 1 / (1 − p).

    Args:
        inputs: of a batch of sentences.
        settings: the hyper-parameters.
        speakers: whether pairs of spans have a feature "same speaker".
        genres: have a feature each.
    """

    def __init__(
        self,
        *,
        inputs: ProbeInputs,
        settings: CorefSettings,
        speakers: bool,
        genres: Sequence[str],
    ) -> None:
        super().__init__()
        self.inputs = inputs
        self._settings = settings
        self._genres = {genre: number for number, genre in enumerate(genres, 1)}
        self.lexical_dropout = torch.nn.Dropout(settings.lexical_dropout)
        self.encoder = HighwayBiLstm(
            input_size=inputs.size,
            hidden_size=settings.hidden_size,
            layers=settings.layers,
            dropout=settings.lstm_dropout,
            coupled=settings.coupled,
        )
        self.heads = (
            torch.nn.Linear(inputs.size, settings.head_size)
            if settings.head_size
            else None
        )
        # Word vectors stand last.
        self._head_columns = sum(inputs.sizes[1:]) or inputs.size
        self.spans = SpanScorer(
            encoded_size=self.encoder.output_size,
            head_size=settings.head_size or self._head_columns,
            settings=settings,
        )
        self.antecedents = AntecedentScorer(
            span_size=self.spans.output_size,
            speakers=speakers,
            genres=len(genres),
            settings=settings,
        )
        # The LSTM has a start of its own.
        for part in (self.spans, self.antecedents):
            for module in part.modules():
                if isinstance(module, (torch.nn.Linear, torch.nn.Embedding)):
                    torch.nn.init.xavier_uniform_(module.weight)
        if genres:
            # Of an unknown genre: training without such documents does not change it.
            self.antecedents.features.get_parameter("genre.weight").data[0] = 0.0

    def score(
        self, example: CorefDocument, sentences: range
    ) -> tuple[list[Mention], Tensor, Tensor]:
        """The spans kept of some sentences of a document, by their words in the
        document, and what `AntecedentScorer` says about them.
        """
        chosen = example.sentences[sentences.start : sentences.stop]
        encoded, x = self._words(chosen)
        if self.heads:
            heads = self.heads(self.lexical_dropout(x))
        else:
            heads = self.lexical_dropout(normalize(x[:, -self._head_columns :], dim=1))
        # How many words a span may have that begins at each word of its sentence.
        rooms = [
            torch.arange(len(each.words), 0, -1, device=x.device) for each in chosen
        ]
        # As many spans as a share of the words, one at least.
        count = max(1, int(self._settings.span_ratio * len(x)))
        spans, represented = self.spans(encoded, heads, torch.cat(rooms), count)
        # Spans count words from the first of the chosen sentences.
        before = sum(len(each.words) for each in example.sentences[: sentences.start])
        starts = spans.starts + before
        ends = spans.ends + before
        # The speaker of a span is that of its first word.
        _, speakers = np.unique(example.speakers, return_inverse=True)
        antecedents, scores = self.antecedents(
            represented,
            spans.scores,
            torch.tensor(speakers, device=x.device)[starts],
            self._genres.get(example.genre, 0),
        )
        mentions = zip(starts.tolist(), ends.tolist(), strict=True)
        return list(mentions), antecedents, scores

    def loss(self, examples: Sequence[CorefDocument]) -> Tensor:
        """The antecedents' negative log-likelihood, summed over the spans of a
        document, mean over the documents.
        """
        losses = []
        for example in examples:
            mentions, antecedents, scores = self.score(
                example, self._window(len(example.sentences))
            )
            numbers = chain_numbers(example.chains)
            clusters = [numbers.get(mention, -1) for mention in mentions]
            gold = torch.tensor(clusters, device=scores.device)
            losses.append(antecedent_loss(antecedents, scores, gold))
        return torch.stack(losses).mean()

    def predict(self, examples: Sequence[CorefDocument]) -> list[list[list[Mention]]]:
        """The chains of each document: every span joins the chain of its best
        antecedent, if that scores above 0.
        """
        predictions = []
        for example in examples:
            mentions, antecedents, scores = self.score(
                example, range(len(example.sentences))
            )
            # Column 0 of the scores stands for no antecedent.
            best = require_numbers(scores).argmax(dim=1, keepdim=True)  # [K, 1]
            links = pad(antecedents, (1, 0), value=-1).gather(1, best)
            predictions.append(chains_of_links(mentions, links.flatten().tolist()))
        return predictions

    def _words(self, sentences: Sequence[TaskSentence]) -> tuple[Tensor, Tensor]:
        """The words of the sentences as the LSTM gives them, [N, 2H], and as it reads
        them before dropout, [N, D].

        Sentences of like length are encoded together: a document has long ones and
        short ones, and most of one padded batch would be padding.
        """
        cut: dict[int, tuple[Tensor, Tensor]] = {}
        for rows in like_length([len(sentence.words) for sentence in sentences]):
            x, lengths = self.inputs([sentences[row] for row in rows])  # [B, T, D]
            if self.heads is None:
                x = self.inputs.with_unit_words(x)
            states = self.encoder(self.lexical_dropout(x), lengths)  # [B, T, 2H]
            padded = zip(rows, lengths.tolist(), states, x, strict=True)
            for row, length, state, words in padded:
                cut[row] = (state[:length], words[:length])
        encoded, inputs = zip(*[cut[row] for row in sorted(cut)], strict=True)
        return torch.cat(encoded), torch.cat(inputs)

    def _window(self, sentences: int) -> range:
        """All the sentences; in training, a random window of a long document's."""
        size = self._settings.training_sentences
        if not self.training or sentences <= size:
            return range(sentences)
        # PyTorch's generator is seeded by the run, as that of dropout is.
        first = int(torch.randint(sentences - size + 1, ()))
        return range(first, first + size)


def like_length(lengths: Sequence[int]) -> list[list[int]]:
    """The numbers of the sentences in groups, in which none is more than twice as long
    as another.
    """
    groups: list[list[int]] = []
    for row in sorted(range(len(lengths)), key=lambda row: lengths[row]):
        if groups and lengths[row] <= 2 * lengths[groups[-1][0]]:
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def chains_of_links(
    mentions: Sequence[Mention], links: Sequence[int]
) -> list[list[Mention]]:
    """The chains of mentions in textual order, each linked to an earlier one by number,
    or to none (−1).
    """
    chains: dict[int, list[Mention]] = {}
    roots: list[int] = []
    for number, link in enumerate(links):
        # Links go backwards, so the root of the other mention is known.
        root = number if link < 0 else roots[link]
        roots.append(root)
        chains.setdefault(root, []).append(mentions[number])
    return [chain for chain in chains.values() if len(chain) > 1]
