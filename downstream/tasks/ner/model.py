"""Model of named entity recognition: the biLSTM-CRF of Peters et al. (2018).

Inputs → dropout → biLSTM → dropout → CRF over BIOUL tags.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from allennlp_light.modules.conditional_random_field import ConditionalRandomField
from allennlp_light.modules.conditional_random_field.conditional_random_field import allowed_transitions
from seqeval.metrics.sequence_labeling import get_entities
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from downstream.inputs.probe_inputs import ProbeInputs, valid_mask
from downstream.inputs.sentence import Sentence
from downstream.modules.bilstm import BiLstm
from downstream.modules.character_cnn import CharacterCnn
from downstream.modules.viterbi import viterbi
from downstream.probe.settings import TrainingSettings, dropout_setting, size_setting
from downstream.probe.task import Probe, require_numbers
from elmoc.settings import setting


@dataclass(frozen=True)
class TaggedSentence:
    """A sentence and its BIO tags."""

    sentence: Sentence
    tags: list[str]


@dataclass(frozen=True, kw_only=True)
class NerSettings(TrainingSettings):
    """Hyper-parameters of the tagger."""

    hidden_size: int = size_setting(200, "units of the LSTM, each direction")
    layers: int = size_setting(2, "layers of the LSTM", most=100)
    dropout: float = dropout_setting(0.5, "dropout before, between and after the LSTM's layers")
    characters: bool = setting(False, help="read each word's characters, too")
    character_size: int = size_setting(16, "numbers of a character's embedding")
    character_filters: int = size_setting(128, "filters of the character CNN")
    character_width: int = size_setting(3, "characters under a filter", most=1_000)


class NerProbe(Probe[TaggedSentence, list[str]]):
    """biLSTM-CRF tagger; `types` are the entity types it can predict. Predictions are BIO tags.

    characters  those that have an embedding of their own in the character CNN, where the settings ask for one
    """

    transition_mask: Tensor

    def __init__(
        self, *, inputs: ProbeInputs, settings: NerSettings, types: Sequence[str], characters: Sequence[str]
    ) -> None:
        super().__init__()
        self.inputs = inputs
        self.characters: CharacterCnn | None = None
        size = inputs.size
        if settings.characters:
            self.characters = CharacterCnn(
                characters=characters,
                size=settings.character_size,
                filters=settings.character_filters,
                widths=[settings.character_width],
            )
            size += self.characters.output_size
        self.labels = ["O", *(f"{place}-{name}" for name in types for place in "BILU")]
        self._ids = {label: row for row, label in enumerate(self.labels)}
        self.dropout = torch.nn.Dropout(settings.dropout)
        self.lstm = BiLstm(
            input_size=size, hidden_size=settings.hidden_size, layers=settings.layers, dropout=settings.dropout
        )
        self.output = torch.nn.Linear(self.lstm.output_size, len(self.labels))
        allowed = allowed_transitions("BIOUL", dict(enumerate(self.labels)))
        self.crf = ConditionalRandomField(len(self.labels), allowed, include_start_end_transitions=False)
        mask = torch.full((len(self.labels) + 2, len(self.labels) + 2), -torch.inf)  # the last two: start and end
        mask[tuple(torch.tensor(allowed).T)] = 0.0
        self.register_buffer("transition_mask", mask, persistent=False)  # 0 where a transition is allowed, else −∞

    def logits(self, examples: Sequence[TaggedSentence]) -> tuple[Tensor, Tensor]:
        """float32 [B, T, K] scores of the labels, and the lengths, int64 [B] on the CPU."""
        sentences = [example.sentence for example in examples]
        x, lengths = self.inputs(sentences)  # [B, T, D]
        if self.characters is not None:
            x = torch.cat([x, self.characters(sentences)], dim=2)
        states = self.lstm(self.dropout(x), lengths)  # [B, T, 2H]
        return self.output(self.dropout(states)), lengths

    def loss(self, examples: Sequence[TaggedSentence]) -> Tensor:
        """Negative log-likelihood, summed over the sentences of the batch."""
        logits, lengths = self.logits(examples)
        labels = pad_sequence(
            [torch.tensor([self._ids[tag] for tag in bio_to_bioul(example.tags)]) for example in examples],
            batch_first=True,
        ).to(logits.device)  # [B, T]
        return -self.crf(logits, labels, valid_mask(lengths, logits.device))

    def predict(self, examples: Sequence[TaggedSentence]) -> list[list[str]]:
        """The BIO tags of each sentence's best path."""
        logits, lengths = self.logits(examples)
        tags = len(self.labels)
        paths = viterbi(
            require_numbers(logits),
            lengths,
            transitions=self.crf.transitions + self.transition_mask[:tags, :tags],
            start=self.transition_mask[tags, :tags],
            end=self.transition_mask[:tags, tags + 1],
        )
        return [bioul_to_bio([self.labels[label] for label in path]) for path in paths]


def bio_to_bioul(tags: list[str]) -> list[str]:
    """BIO → BIOUL: the last word of an entity is L, an entity of one word is U."""
    return tag_entities(tags, first="B", inside="I", last="L", single="U")


def bioul_to_bio(tags: list[str]) -> list[str]:
    """BIOUL → BIO."""
    return [{"U": "B", "L": "I"}.get(tag[0], tag[0]) + tag[1:] for tag in tags]


def tag_entities(tags: list[str], *, first: str, inside: str, last: str, single: str) -> list[str]:
    """Tags of the entities in `tags`: the letters of the first, the inner and the last words, and of a single one."""
    coded = ["O"] * len(tags)
    for name, begin, end in get_entities(tags):
        places = [single] if begin == end else [first, *[inside] * (end - begin - 1), last]
        coded[begin : end + 1] = [f"{place}-{name}" for place in places]
    return coded
