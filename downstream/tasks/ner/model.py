"""The tagger of entities: a biLSTM-CRF (Peters et al. 2018) and its sizes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import torch
from allennlp_light.modules.conditional_random_field import ConditionalRandomField
from allennlp_light.modules.conditional_random_field.conditional_random_field import (
    allowed_transitions,
)
from msgspec import Meta
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from downstream.inputs.probe_inputs import ProbeInputs, valid_mask
from downstream.inputs.sentence import TaskSentence
from downstream.modules.tagging import BiLstm, transition_mask, viterbi
from downstream.probe.task import Probe, require_numbers
from downstream.settings import Dropout, Size, TrainingSettings
from downstream.tasks.ner.tags import bio_to_bioul, iob_to_bio


@dataclass(frozen=True)
class TaggedSentence:
    """A sentence and its BIO tags."""

    sentence: TaskSentence
    tags: list[str]


@dataclass(frozen=True, kw_only=True)
class NerSettings(TrainingSettings):
    """Hyper-parameters of the tagger."""

    hidden_size: Annotated[
        Size, Meta(description="units of the LSTM, each direction")
    ] = 200
    layers: Annotated[int, Meta(ge=1, le=100, description="layers of the LSTM")] = 2
    dropout: Annotated[
        Dropout, Meta(description="dropout before, between and after the LSTM's layers")
    ] = 0.5


class NerProbe(Probe[TaggedSentence, list[str]]):
    """biLSTM-CRF tagger. Predictions are BIO tags.

    Args:
        inputs: of a batch of sentences.
        settings: the hyper-parameters.
        types: of the entities that it can predict.
    """

    transition_mask: Tensor

    def __init__(
        self,
        *,
        inputs: ProbeInputs,
        settings: NerSettings,
        types: Sequence[str],
    ) -> None:
        super().__init__()
        self.inputs = inputs
        # B begins an entity, I is inside, L is its last word, U its only one.
        self.labels = ["O"]
        for name in types:
            self.labels += [f"{place}-{name}" for place in "BILU"]
        self._ids = {label: row for row, label in enumerate(self.labels)}
        self.dropout = torch.nn.Dropout(settings.dropout)
        self.lstm = BiLstm(
            input_size=inputs.size,
            hidden_size=settings.hidden_size,
            layers=settings.layers,
            dropout=settings.dropout,
        )
        self.output = torch.nn.Linear(self.lstm.output_size, len(self.labels))
        # allennlp_light calls the coding BIOUL.
        allowed = allowed_transitions("BIOUL", dict(enumerate(self.labels)))
        self.crf = ConditionalRandomField(
            len(self.labels), allowed, include_start_end_transitions=False
        )
        # It is made from the labels, so a saved probe does without it.
        mask = transition_mask(allowed, len(self.labels))
        self.register_buffer("transition_mask", mask, persistent=False)

    def logits(self, examples: Sequence[TaggedSentence]) -> tuple[Tensor, Tensor]:
        """float32 [B, T, K] scores of the labels, and the lengths, int64 [B] on the
        CPU.
        """
        sentences = [example.sentence for example in examples]
        x, lengths = self.inputs(sentences)  # [B, T, D]
        states = self.lstm(self.dropout(x), lengths)  # [B, T, 2H]
        return self.output(self.dropout(states)), lengths

    def loss(self, examples: Sequence[TaggedSentence]) -> Tensor:
        """Negative log-likelihood, summed over the sentences of the batch."""
        logits, lengths = self.logits(examples)
        rows = []
        for example in examples:
            ids = [self._ids[tag] for tag in bio_to_bioul(example.tags)]
            rows.append(torch.tensor(ids))
        labels = pad_sequence(rows, batch_first=True).to(logits.device)  # [B, T]
        return -self.crf(logits, labels, valid_mask(lengths, logits.device))

    def predict(self, examples: Sequence[TaggedSentence]) -> list[list[str]]:
        """The BIO tags of each sentence's best path."""
        logits, lengths = self.logits(examples)
        tags = len(self.labels)
        # Start and end are the last two rows of the mask.
        paths = viterbi(
            require_numbers(logits),
            lengths,
            transitions=self.crf.transitions + self.transition_mask[:tags, :tags],
            start=self.transition_mask[tags, :tags],
            end=self.transition_mask[:tags, tags + 1],
        )
        tagged = []
        for path in paths:
            tagged.append(iob_to_bio([self.labels[label] for label in path]))
        return tagged
