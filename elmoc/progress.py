"""Progress bars: how often they are redrawn on a terminal, and in a log file."""

import sys
from typing import Any

from tqdm import tqdm


def progress_bar(**options: Any) -> tqdm:
    """A tqdm bar that redraws twice a second on a terminal, and every half minute where the output is a file."""
    interval = 0.5 if sys.stderr.isatty() else 30.0
    return tqdm(mininterval=interval, maxinterval=interval, dynamic_ncols=True, **options)
