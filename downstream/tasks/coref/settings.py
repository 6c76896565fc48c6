"""Settings of the coreference probe."""

from dataclasses import dataclass

from downstream.probe.settings import MOST_UNITS, TrainingSettings, dropout_setting, size_setting
from elmoc.settings import setting


@dataclass(frozen=True, kw_only=True)
class CorefSettings(TrainingSettings):
    """Hyper-parameters of the coreference probe."""

    hidden_size: int = size_setting(200, "units of the LSTM, each direction")
    layers: int = size_setting(3, "layers of the LSTM", most=100)
    head_size: int = setting(
        0,
        help="project the inputs to this size for the head attention (0: only to unit length)",
        least=0,
        most=MOST_UNITS,
    )
    span_width: int = size_setting(30, "most words of a span", most=10_000)
    span_ratio: float = setting(0.4, help="spans kept, a word of the document", least=0, most=10_000)
    antecedents: int = size_setting(50, "antecedents of a span that are scored in full")
    depth: int = size_setting(2, "how often antecedents are scored: representations are refined in between", most=100)
    feed_forward_size: int = size_setting(150, "units of each layer of the scorers")
    feed_forward_layers: int = size_setting(2, "hidden layers of the scorers", most=100)
    feature_size: int = size_setting(20, "size of the embeddings of width, distance, speaker and genre")
    training_sentences: int = size_setting(50, "train longer documents on random windows of this number of sentences")
    lexical_dropout: float = dropout_setting(0.5, "dropout on the inputs")
    lstm_dropout: float = dropout_setting(0.4, "dropout on what each layer of the LSTM gives")
    dropout: float = dropout_setting(0.2, "dropout in the scorers")
