"""The pipeline: three stages that give what one after the other gives, and that end together."""

import signal
import threading
import time
from collections.abc import Iterator
from itertools import count

import pytest

from elmoc.features.dumping.pipeline import Channel, run_pipeline


def twice(item: int) -> Iterator[int]:
    yield item
    yield item * 10


def test_results_come_in_order_and_threads_end() -> None:
    found: list[int] = []
    run_pipeline(range(50), twice, found.append)
    assert found == [each for item in range(50) for each in twice(item)]
    assert threading.active_count() == 1 or not [t for t in threading.enumerate() if t.name in ("read", "write")]


def test_stages_overlap_and_queues_are_short() -> None:
    """The last stage is the slowest; the first is never more than two items and what they hold ahead of it."""
    read, written = [], []
    ahead: list[int] = []

    def source() -> Iterator[int]:
        for item in range(12):
            time.sleep(0.01)
            read.append(item)
            ahead.append(len(read) - len(written))
            yield item

    def work(item: int) -> Iterator[int]:
        time.sleep(0.01)
        yield item

    def sink(item: int) -> None:
        time.sleep(0.03)
        written.append(item)

    run_pipeline(source(), work, sink)
    assert written == list(range(12))
    assert 2 <= max(ahead) <= 6


@pytest.mark.parametrize("stage", ["source", "work", "sink"])
@pytest.mark.parametrize("error", [ValueError("broken"), KeyboardInterrupt()])
def test_an_error_anywhere_ends_all(stage: str, error: BaseException) -> None:
    def failing(item: int, at: str) -> int:
        if at == stage and item >= 3:
            raise error
        return item

    def endless() -> Iterator[int]:
        item = 0
        while True:
            yield failing(item, "source")
            item += 1

    with pytest.raises(type(error)):
        run_pipeline(endless(), lambda item: [failing(item, "work")], lambda item: failing(item, "sink"))
    assert not [thread for thread in threading.enumerate() if thread.name in ("read", "write")]


def test_an_interrupt_at_the_end_waits_for_what_is_being_written() -> None:
    written, main = [], threading.main_thread().ident
    assert main is not None

    def sink(item: int) -> None:
        for _ in range(3):  # the others have ended, or wait
            time.sleep(0.05)
            signal.pthread_kill(main, signal.SIGINT)
        time.sleep(0.05)
        written.append(item)

    with pytest.raises(KeyboardInterrupt):
        run_pipeline([1], lambda item: [item], sink)
    assert written == [1]


@pytest.mark.timeout(60)
def test_further_interrupts_while_it_ends_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stop, further, written = Channel.stop, [signal.SIGINT] * 3, []

    def interrupted(channel: Channel[int]) -> None:
        stop(channel)
        if further:
            signal.raise_signal(further.pop())

    def work(item: int) -> list[int]:
        if item == 3:
            signal.raise_signal(signal.SIGINT)
        return [item]

    monkeypatch.setattr(Channel, "stop", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_pipeline(count(), work, written.append)
    assert not further
    assert written == list(range(len(written)))[:3]
    assert not [thread for thread in threading.enumerate() if thread.name in ("read", "write")]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
