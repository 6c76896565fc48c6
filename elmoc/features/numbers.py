"""Numbers: layer states in the type in which a feature file holds them."""

import numpy as np

from elmoc.errors import InputError
from elmoc.files.arrays import all_finite


def converted(states: np.ndarray, dtype: str, what: str) -> np.ndarray:
    """The layer states of a sentence in the type of the file.

    Numbers that are too large for it or not finite are an `InputError`, in which the sentence is called `what`.
    """
    which = f"the states of {what}"
    if not all_finite(states):
        raise InputError(f"{which} are not finite: the model or its word vectors are damaged, get them again")
    try:
        with np.errstate(over="raise"):
            return states.astype(dtype, copy=False)
    except FloatingPointError:
        largest, advice = f"{np.finfo(dtype).max:,.0f}", "write float32"
        if dtype == "float32":
            largest, advice = f"{np.finfo(dtype).max:.1e}", "they cannot be layer states, make them again"
        raise InputError(f"{which} are too large for {dtype}, which ends at {largest}: {advice}") from None
