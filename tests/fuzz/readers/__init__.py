"""The registry: every reader of files and command lines of the project, by name."""

from tests.fuzz.readers import data_scripts, downstream, elmoc, pretrain

READERS = {
    reader.name: reader for room in (elmoc, pretrain, downstream, data_scripts) for reader in room.READERS
}
