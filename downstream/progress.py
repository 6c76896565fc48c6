"""How does a long step show its progress, on a terminal and in a log file?"""

import sys
from typing import Any

from tqdm import tqdm


def progress_bar(steps: Any, **options: Any) -> Any:
    """A tqdm bar over `steps`; where standard error is no terminal it is written once a minute only."""
    return tqdm(steps, mininterval=0.2 if sys.stderr.isatty() else 60, **options)
