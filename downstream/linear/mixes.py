"""Mixes of saved probes: how much of each layer their scalar mixes take."""

from collections.abc import Sequence
from pathlib import Path

from downstream.inputs.kinds import INPUT_KINDS
from downstream.probe.saved_probe import LayerMix, read_probe
from downstream.results.text_table import Column, TextTable
from elmoc.errors import InputError


def mix_table(paths: Sequence[Path]) -> TextTable:
    """A row for each probe: the softmax weights of the layers, which sum to 1, and the scale of the mix, γ."""
    mixes: list[tuple[Path, LayerMix]] = []
    for path in paths:
        saved = read_probe(path)
        if not INPUT_KINDS[saved.kind].states:
            raise InputError(f"{path} reads word vectors alone and mixes no layers: leave it out")
        mixes.append((path, saved.mix()))
    layers = list(dict.fromkeys(layer for _, mix in mixes for layer in mix.weights))
    return TextTable(
        "Weights of the layers in the scalar mixes of probes",
        [
            Column("probe", [str(path) for path, _ in mixes]),
            *(
                Column(f"layer {layer}", [_weight(mix, layer) for _, mix in mixes], right=True)
                for layer in sorted(layers, key=lambda name: (len(name), name))
            ),
            Column("γ", [f"{mix.scale:.3f}" for _, mix in mixes], right=True),
        ],
    )


def _weight(mix: LayerMix, layer: str) -> str:
    return f"{mix.weights[layer]:.3f}" if layer in mix.weights else "–"
