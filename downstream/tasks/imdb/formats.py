"""The formats of reviews in two classes."""

from downstream.readers.formats import Format

FORMATS = (
    Format(
        "JSON lines",
        '{"text": "Superb.<br />I liked it!", "label": "pos"}\n'
        '{"text": "I left.", "label": "neg"}\n',
        ".jsonl",
    ),
)
