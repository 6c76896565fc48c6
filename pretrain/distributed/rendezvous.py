"""Rendezvous: how the processes of a run find each other and part, also when `torchrun` has started them again."""

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from datetime import timedelta

import torch.distributed as dist

from pretrain.distributed.errors import collective_errors, exit_with
from pretrain.distributed.peer_watch import PeerWatch
from pretrain.distributed.processes import TIMEOUT, Processes

PAUSE = 0.1
"""Seconds between two looks into the store."""


@contextmanager
def connect() -> Iterator[Processes]:
    """The processes of this run, as `torchrun` describes them in the environment; connected while the block lasts.

    Only rank 0 has a standard output, and an `InputError` of another one names its rank.
    """
    environment = os.environ
    rank, world_size = int(environment.get("RANK", "0")), int(environment.get("WORLD_SIZE", "1"))
    processes = Processes(
        rank=rank,
        world_size=world_size,
        local_rank=int(environment.get("LOCAL_RANK", "0")),
        local_world_size=int(environment.get("LOCAL_WORLD_SIZE", "1")),
        restarted=int(environment.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0,
    )
    if world_size == 1:
        if "TORCHELASTIC_RUN_ID" in environment:
            # the id is "none" unless torchrun was given one; torchrun's own process lives through restarts
            processes.launch = f"{environment['TORCHELASTIC_RUN_ID']} {os.getppid()}"
        yield processes
        return
    try:
        with redirect_stdout(None) if rank else nullcontext():
            with collective_errors():
                store, _, _ = next(dist.rendezvous("env://", timeout=TIMEOUT))
                lasting = dist.PrefixStore("elmoc", store)  # lives as long as torchrun
                store = rendezvous(lasting, rank, world_size, TIMEOUT)
                dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size, timeout=TIMEOUT)
            watch = PeerWatch(rank, world_size)
            processes.restarted = any(processes.all_gather(processes.restarted))
            if rank == 0:
                if not processes.restarted or not lasting.check(["launch"]):  # killed before their first rendezvous
                    lasting.set("launch", uuid.uuid4().hex)
                processes.launch = lasting.get("launch").decode()
            yield processes
            with collective_errors():
                dist.barrier()
    except BaseException as error:
        exit_with(error, rank)
    watch.end()
    dist.destroy_process_group()


def rendezvous(store: dist.Store, rank: int, world_size: int, timeout: timedelta) -> dist.Store:
    """The part of a store that only the processes of this start use; a `dist.DistError` when one of them is missing.

    `torchrun` keeps its store when it starts processes again, and in it the addresses of those that are gone; the
    restarts that it counts may differ from machine to machine. So rank 0 makes up a name for this start, and each of
    the others takes it up once it is answered under that name.
    """
    name = uuid.uuid4().hex
    if rank == 0:
        store.set("start", name)
        present = [store.get(f"{name}/{other}").decode() for other in range(1, world_size)]  # each waits for its rank
        store.set(f"{name}/present", " ".join(present))
        return dist.PrefixStore(name, store)
    deadline = time.monotonic() + timeout.total_seconds()
    while time.monotonic() < deadline:
        start = store.get("start").decode()  # perhaps one that is over
        store.set(f"{start}/{rank}", name)
        if store.check([f"{start}/present"]) and name in store.get(f"{start}/present").decode().split():
            return dist.PrefixStore(start, store)
        time.sleep(PAUSE)
    raise dist.DistError(f"rank 0 has not answered for {timeout}")
