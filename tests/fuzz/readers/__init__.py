"""The registry: every reader of files and command lines of the project, by name."""

from tests.fuzz.readers import (
    command_lines,
    data_scripts,
    directories,
    downstream,
    elmoc,
    interop,
    pretrain,
    unfinished_features,
)

READERS = {
    reader.name: reader
    for room in (directories, elmoc, unfinished_features, interop, pretrain, downstream, data_scripts, command_lines)
    for reader in room.READERS
}
