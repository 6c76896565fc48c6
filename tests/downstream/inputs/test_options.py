"""Options of inputs: layers are chosen by their numbers in the encoder."""

import pytest
from downstream.inputs.options import layer_rows
from elmoc.errors import InputError


@pytest.mark.parametrize("state_layers", ["0,3", "", "2,0", "1,1", "-1", "0,", "x"])
def test_layers_that_cannot_be(state_layers: str) -> None:
    with pytest.raises(InputError, match="--state-layers"):
        layer_rows(state_layers, ["0", "1", "2"])


@pytest.mark.parametrize(
    ("names", "top", "one", "missing"),
    [(["2", "0"], [0], None, "1"), (["1", "2"], [1], [0], "0"), (["9", "10", "1"], [1], [2], "2")],
)
def test_layers_are_chosen_by_their_numbers_in_the_encoder(
    names: list[str], top: list[int], one: list[int] | None, missing: str
) -> None:
    assert layer_rows("all", names) == list(range(len(names)))
    assert layer_rows("top", names) == top
    if one is not None:
        assert layer_rows("1", names) == one
    with pytest.raises(InputError, match="--state-layers"):
        layer_rows(missing, names)
    assert layer_rows("0,2", ["2", "0", "1"]) == [1, 0]
    assert layer_rows("top", ["average"]) == layer_rows("average", ["average"]) == [0]
