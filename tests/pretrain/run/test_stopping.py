"""Stopping: a run whose output nobody reads, or whose terminal is closed, saves and stops."""

import pytest
from elmoc.model_directory import read_model_directory
from pretrain.run.directory import RunDirectory, read_metrics
from tests.pretrain.conftest import TinyRuns, last_checkpoint
from tests.warm import WarmProcess

# a run whose standard output, error or both go into a pipe that nobody reads from the second evaluation on
LEAVE = """
import os, sys
from pretrain.run import recorder
from pretrain.__main__ import main
reading, writing = os.pipe()
before = sys.stdout, sys.stderr
for stream in map(int, sys.argv[1].split(",")):
    os.dup2(writing, stream)
os.close(writing)
sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", buffering=1, closefd=False)
evaluate = recorder.Recorder.evaluate

def leave(self):
    if self._state.update == 4:
        os.close(reading)
    return evaluate(self)

recorder.Recorder.evaluate = leave
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("streams", ["1", "1,2"], ids=["stdout", "both"])
def test_a_reader_that_goes_away_asks_a_run_to_stop(runs: TinyRuns, streams: str) -> None:
    settings = {"evaluation__every_updates": 4}
    words = ["-c", LEAVE, streams, *runs.arguments("killed", **settings)]
    process = WarmProcess(words, log=runs.folder / "process")
    assert process.wait() == 130, process.stderr
    run = RunDirectory(runs.folder / "killed")
    assert last_checkpoint(run)["update"] == 4
    assert len(read_metrics(run.path, "evaluation")) == 2
    assert read_model_directory(run.path).training["updates"] == last_checkpoint(run)["best_update"]
    if streams == "1":
        assert "the run cannot print any more" in process.stderr
        assert process.stderr.endswith("\ninterrupted: give the same command again, with --resume if it had begun\n")
    runs.run("killed", "--resume", **settings)
    assert last_checkpoint(run)["update"] == 12
