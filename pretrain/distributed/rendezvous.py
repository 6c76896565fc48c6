"""How do the processes of a run find each other, also when `torchrun` has started them again?

`torchrun` keeps its store when it starts processes again, and in it the addresses of those that are gone; the restarts
that it counts may differ from machine to machine. So the first process makes up a name for this start, and each of the
others takes it up once it is answered under that name.
"""

import time
import uuid
from datetime import timedelta

import torch.distributed as dist

PAUSE = 0.1
"""Seconds between two looks into the store."""


def rendezvous(store: dist.Store, rank: int, size: int, timeout: timedelta) -> dist.Store:
    """The part of a store that only the processes of this start use; a `dist.DistError` when one of them is missing."""
    own = uuid.uuid4().hex
    if rank == 0:
        store.set("start", own)
        present = [store.get(f"{own}/{other}").decode() for other in range(1, size)]  # each waits until it is there
        store.set(f"{own}/present", " ".join(present))
        return dist.PrefixStore(own, store)
    deadline = time.monotonic() + timeout.total_seconds()
    while time.monotonic() < deadline:
        start = store.get("start").decode()  # perhaps one that is over
        store.set(f"{start}/{rank}", own)
        if store.check([f"{start}/present"]) and own in store.get(f"{start}/present").decode().split():
            return dist.PrefixStore(start, store)
        time.sleep(PAUSE)
    raise dist.DistError(f"the first process has not answered for {timeout}")
