"""Rows of the paper's tables of speed (Li et al. 2019, Tables 4 and 5): output layers, encoders, and its figures.

Its large Transformer has the sizes of BERT base, and GPT those of its paper (Section 5.2.2), which are the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from elmoc.encoders import DIRECTIONS, EncoderSizes
from elmoc.encoders.lstm import LstmSizes
from elmoc.encoders.plain_lstm import PlainLstmSizes
from elmoc.encoders.transformer import TransformerSizes
from pretrain import CONFIGS
from pretrain.config import RunConfig, load_config
from pretrain.output_layers import OutputLayerSettings
from pretrain.output_layers.adaptive import AdaptiveSettings
from pretrain.output_layers.contrastive import ContrastiveSettings
from pretrain.output_layers.full_softmax import FullSoftmaxSettings
from pretrain.output_layers.sampled import FixedSettings, SampledSettings

SIZES = ("paper", "small")
VOCABULARIES = {"40K": 40_000, "800K": 793_471, "2000K": 2_000_000}
"""The second is that of One Billion Word, which the paper rounds."""
SUBWORDS = 32_000
UNITS_OF_A_WORD = 1.1
"""Subwords that a word has (Li et al. 2019, Section 5.2.1)."""


@dataclass(frozen=True)
class Row:
    """An output layer over a vocabulary.

    vocabulary: a name in `VOCABULARIES` where it matters, "" where it does not.
    steps_of_a_word: what an encoder reads for a word.
    paper: of Table 4 the parameters in millions, the largest batch, and the ratios S1, S2 and S3; None for those that
        the paper does not have. The first row has seconds in place of ratios.
    """

    name: str
    vocabulary: str
    settings: OutputLayerSettings
    steps_of_a_word: float = 1.0
    paper: tuple[float, int, float, float, float] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """That of the output layer, and with its vocabulary, where there is one."""
        return (self.name, f"{self.name}:{self.vocabulary}") if self.vocabulary else (self.name,)

    @property
    def types(self) -> int:
        """Of the corpus that it is measured on."""
        return VOCABULARIES[self.vocabulary or "800K"]


def base_config(size: str) -> RunConfig:
    """That of ELMo-C at a size."""
    return load_config(CONFIGS / "elmo_c.toml" if size == "paper" else CONFIGS / "twins/small_elmo_c.toml")


def output_layers(size: str) -> list[Row]:
    """The rows of Table 4, the continuous output layer first, and the contrastive one beside them."""
    adaptive, sampled = (
        load_config(CONFIGS / f"{name}.toml" if size == "paper" else CONFIGS / f"twins/small_{name}.toml").output_layer
        for name in ("elmo_a", "elmo")
    )
    assert isinstance(adaptive, AdaptiveSettings)
    assert isinstance(sampled, SampledSettings)
    # with the cut-offs of the paper's larger vocabularies there would be one cluster alone
    of_40k = adaptive if size == "small" else replace(adaptive, cutoffs=(20_000,), reduction=1.0)
    return [
        Row("CONT", "", base_config(size).output_layer, paper=(76, 640, 0.47, 115.28, 34.58)),
        Row("CONTRASTIVE", "", ContrastiveSettings()),
        Row("FIXED", "", FixedSettings(samples=sampled.samples), paper=(76, 512, 1.17, 1.24, 1.24)),
        Row("SUBWORD", "", FullSoftmaxSettings(types=SUBWORDS), UNITS_OF_A_WORD, paper=(92, 320, 1.09, 1.53, 1.55)),
        Row("ADAPTIVE", "40K", of_40k, paper=(97, 384, 1.08, 1.30, 1.34)),
        Row("ADAPTIVE", "800K", adaptive, paper=(196, 256, 1.16, 1.47, 1.89)),
        Row("ADAPTIVE", "2000K", adaptive, paper=(213, 192, 1.25, 1.82, 2.49)),
        Row("SAMPLED", "40K", sampled, paper=(96, 512, 1.07, 1.18, 1.30)),
        Row("SAMPLED", "800K", sampled, paper=(483, 256, 1.15, 1.35, 1.91)),
        Row("SAMPLED", "2000K", sampled, paper=(1102, 64, 1.16, 2.35, 16.09)),
    ]


@dataclass(frozen=True)
class Encoder:
    """A column of Table 5.

    paper: by output layer, seconds of CONT for a million words on four cards, and what others take of its time.
    window, directions: what is trained; of GPT the forward model alone, as in the paper.
    """

    sizes: EncoderSizes
    paper: Mapping[str, float | str]
    window: int = 20
    directions: tuple[str, ...] = DIRECTIONS


def encoders(size: str) -> dict[str, Encoder]:
    """The columns of Table 5.

    At the small size plain LSTMs have an eighth of the paper's width, Transformers a quarter and a third of its layers,
    ELMo's LSTM half the projection and a quarter of the cell; GPT's window is a quarter.
    """
    paper = size == "paper"

    def of(*figures: float | str) -> dict[str, float | str]:
        return dict(zip(("CONT", "FIXED", "SUBWORD", "ADAPTIVE", "SAMPLED"), figures, strict=True))

    def transformer(layers: int, width: int, heads: int) -> TransformerSizes:
        share = 1 if paper else 4
        return TransformerSizes(
            projection_size=width // share,
            layers=layers if paper else max(1, layers // 3),
            heads=heads if paper else heads // 2,
            feedforward_size=4 * width // share,
        )

    hidden = 2048 if paper else 256
    elmo = base_config(size).encoder
    assert isinstance(elmo, LstmSizes)
    return {
        "LSTM": Encoder(PlainLstmSizes(projection_size=hidden, layers=1), of(3.97, 1.93, 2.32, 4.58, 2.50)),
        "LSTMx2": Encoder(PlainLstmSizes(projection_size=hidden, layers=2), of(10.42, 1.32, 1.49, 2.20, 1.60)),
        "TRANS BASE": Encoder(transformer(6, 512, 8), of(15.87, 1.52, 1.78, 2.62, 2.91)),
        "ELMo": Encoder(elmo, of(34.58, 1.24, 1.55, 1.89, 1.91)),
        "TRANS LARGE": Encoder(transformer(12, 768, 12), of(48.55, 1.37, 1.72, 3.28, "OOM")),
        "GPT": Encoder(
            transformer(12, 768, 12),
            of(43.53, 1.14, 1.44, 2.33, 8.31),
            window=512 if paper else 128,
            directions=DIRECTIONS[:1],
        ),
    }
