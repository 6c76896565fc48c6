"""A tiny random BERT in a directory, as Hugging Face's transformers writes it."""

from collections.abc import Sequence
from pathlib import Path

import torch
import transformers

MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def tiny_bert(folder: Path, lexicon: Sequence[str]) -> Path:
    """A BERT of three layers whose WordPieces are the letters of a lexicon and a few of its words."""
    letters = sorted({letter for word in lexicon for letter in word})
    pieces = [*MARKS, *letters, *(f"##{letter}" for letter in letters), *lexicon[2:20]]
    vocabulary = list(dict.fromkeys(pieces))
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    tokenizer = transformers.BertTokenizerFast(str(folder / "vocab.txt"), do_lower_case=False, model_max_length=16)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(2)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=20,
        # Differences between words, which a small random network hides.
        initializer_range=1.0,
    )
    transformers.BertModel(config).save_pretrained(folder)
    (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\n", encoding="utf-8")
    return folder
