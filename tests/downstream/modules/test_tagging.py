"""The batched Viterbi search: the paths that the slow searches find."""

import pytest
import torch
from allennlp_light.modules.conditional_random_field import ConditionalRandomField
from allennlp_light.modules.conditional_random_field.conditional_random_field import allowed_transitions
from downstream.inputs.probe_inputs import valid_mask
from downstream.modules.tagging import Tags, viterbi

LABELS = ["O", *(f"{place}-{name}" for name in ("PER", "LOC") for place in "BILU")]


@pytest.mark.parametrize("seed", range(3))
def test_same_paths_as_allennlp_under_constraints(seed: int) -> None:
    torch.manual_seed(seed)
    tags = len(LABELS)
    pairs = allowed_transitions("BIOUL", dict(enumerate(LABELS)))
    crf = ConditionalRandomField(tags, pairs)
    transitions = Tags(["PER", "LOC"], "BILU").mask.clone()
    transitions[:tags, :tags] += crf.transitions.detach()
    transitions[tags, :tags] += crf.start_transitions.detach()
    transitions[:tags, tags + 1] += crf.end_transitions.detach()
    lengths = torch.tensor([7, 1, 4, 12, 2])
    logits = 2 * torch.randn(5, 12, tags)
    paths = viterbi(logits, lengths, transitions)
    assert paths == [path for path, _ in crf.viterbi_tags(logits, valid_mask(lengths, logits.device))]
