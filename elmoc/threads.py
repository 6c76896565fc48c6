"""How do a command's threads wait for each other?"""

import os


def wait_without_spinning() -> None:
    """Have OpenMP's threads sleep while they wait, unless the user says otherwise; to be called before PyTorch loads.

    By default they spin, which on a busy machine takes the core that the awaited thread needs: a feature dump beside
    one other process took over six times as long.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
